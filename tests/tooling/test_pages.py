"""Every code block of the README, the tutorial and the API page runs and prints what the page says."""

from __future__ import annotations

import gc
import io
import os
import re
import shlex
import shutil
import subprocess
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch._dynamo

from spyre_mlir.torch_compile import forget
from tests.paths import ROOT
from tests.tooling.blocks import DEVELOPER, Block, pattern, read_blocks

FOLDERS = [ROOT / "docs" / "tutorial", ROOT / "docs" / "tools"]
# Pages of which some commands need other packages: the rest runs.
PARTLY = [ROOT / "docs" / "how-to.md", ROOT / "docs" / "reference" / "quantized.md"]
PAGES = [
    ROOT / "README.md",
    *(page for folder in FOLDERS for page in sorted(folder.glob("*.md"))),
    ROOT / "docs" / "gallery.md",
    ROOT / "docs" / "reference" / "api.md",
    ROOT / "docs" / "reference" / "bundle.md",
]
TOOLS = {f"spyre-{name}": name for name in ("opt", "compile", "run", "translate", "lsp")}
# Commands of other packages; tests/clients runs what they start.
ELSEWHERE = ("pip install ", "acelyzer ", "python -m spyre_mlir.torch_compile.sendnn ")
EXTRA = re.compile(r"\.\[([\w-]+)\]")
LINK = re.compile(r"\]\((?!https?://)([^)#]+)[^)]*\)")


@pytest.fixture
def page() -> Path | None:
    """The page whose blocks run; none where no page is given."""
    return None


@pytest.fixture
def workspace(tmp_path: Path, page: Path | None, python: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the checkout and may be written to, with our tools first on the path."""
    for name in ("examples", "docs", "dialects", "tools", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    blocks = "" if page is None else "".join(block.text for block in read_blocks(page))
    for name in ("spyre_mlir", "tests"):
        # Copies where blocks name paths in it: they add files. Compiled modules come along, with the times of sources.
        if re.search(rf"{name}/|cd {name}\b", blocks):
            shutil.copytree(ROOT / name, tmp_path / name)
        else:
            (tmp_path / name).symlink_to(ROOT / name)
    tools = tmp_path / "bin"
    tools.mkdir()
    commands = {tool: f"-m spyre_mlir.cli.{module} " for tool, module in TOOLS.items()} | {"python": ""}
    for name, words in commands.items():
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(python)} {words}"$@"\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_shell(block: Block, folder: Path, shell: str = "sh") -> str:
    """Runs the block as one script; it stops at the first command that fails."""
    lines = block.text.splitlines(keepends=True)
    for line in lines:
        if line.startswith(DEVELOPER):
            check_developer_command(line)
    script = "".join(line for line in lines if not line.startswith(DEVELOPER))
    done = subprocess.run([shell, "-e", "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_developer_command(command: str) -> None:
    word = shlex.split(command, comments=True)[2]
    assert f'    "{word}": (' in (ROOT / "tools" / "dev.py").read_text(), f"tools/dev.py has no command {word}"


def run_python(block: Block, names: dict[str, object], page: Path) -> str:
    stream = io.StringIO()
    with redirect_stdout(stream):
        exec(compile("\n" * block.line + block.text, str(page), "exec", dont_inherit=True), names)  # noqa: S102
    return stream.getvalue()


@pytest.fixture
def names(only_new_garbage: None) -> Iterator[dict[str, object]]:
    """The namespace of a page's Python blocks; what was compiled by other tests is forgotten."""
    torch._dynamo.reset()
    forget()
    names: dict[str, object] = {"__name__": "__page__"}
    yield names
    with warnings.catch_warnings():
        # Compiled models keep a temporary folder until they are collected.
        warnings.simplefilter("ignore", ResourceWarning)
        names.clear()
        gc.collect()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run_and_print_what_the_page_says(page: Path, workspace: Path, names: dict[str, object]) -> None:
    ran = 0
    for block in read_blocks(page):
        if block.language == "":  # a picture
            continue
        if block.language not in ("python", "sh"):
            pytest.fail(f"{page.name}:{block.line}: a {block.language} block that nothing prints")
        printed = run_shell(block, workspace) if block.language == "sh" else run_python(block, names, page)
        ran += 1
        check_output(block, printed, page)
    assert ran > 0


@pytest.mark.parametrize("page", PARTLY, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_without_other_packages_run(
    page: Path, workspace: Path, names: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(workspace))
    blocks = [block for block in read_blocks(page) if block.language in ("python", "sh")]
    for block in blocks:
        ours = block.language == "sh" and replace(block, text=own_commands(block.text))
        # Completions are those of bash.
        printed = run_shell(ours, workspace, "bash") if ours else run_python(block, names, page)
        check_output(block, printed, page)
    assert blocks


def own_commands(script: str) -> str:
    """The commands of a script that need no other package; the extras that the rest installs exist."""
    commands = script.replace("\\\n", " ").splitlines(keepends=True)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name for command in commands for name in EXTRA.findall(command)} <= set(extras)
    return "".join(command for command in commands if not command.startswith(ELSEWHERE))


def check_output(block: Block, printed: str, page: Path) -> None:
    matches = block.output is None or pattern(block.output).fullmatch(printed.rstrip("\n") + "\n") is not None
    if not matches:
        pytest.fail(f"{page.name}:{block.line}: the page says\n{block.output}\nbut the block prints\n{printed}")


@pytest.mark.parametrize(
    ("words", "last_line"),
    [(["levels.py", "spyre.kernel"], ""), (["run_a_file.py"], "the sum is right: True")],
    ids=["levels", "run_a_file"],
)
def test_examples_run(words: list[str], last_line: str, workspace: Path, python: list[str]) -> None:
    command = [*python, str(workspace / "examples" / words[0]), *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == last_line


def test_wrong_output_is_noticed() -> None:
    assert pattern("a … c\n…\nend").fullmatch("a b b c\nx\ny\nend\n")
    assert pattern("a\nend").fullmatch("a\nend\n")
    assert pattern("a … c").fullmatch("a b d\n") is None
    assert pattern("a").fullmatch("a\nb\n") is None


def test_output_belongs_to_the_block_before_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\necho 1\n```\n\n```text\n1\n```\n\nwords\n\n```text\nstray\n```\n")
    first, second = read_blocks(page)
    assert (first.language, first.output) == ("sh", "1\n")
    assert (second.language, second.text) == ("text", "stray\n")


@pytest.mark.parametrize("start", ["README.md", "docs/index.md"])
def test_links_lead_to_every_page(start: str) -> None:
    """But to the page of signatures, which has its text on the site alone, and to the front page of the site."""
    waiting, found = [ROOT / start], set[Path]()
    while waiting:
        page = waiting.pop()
        if page not in found and page.suffix == ".md":
            found.add(page)
            waiting += [(page.parent / link).resolve() for link in LINK.findall(page.read_text(encoding="utf-8"))]
    pages = {*(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "index.md", ROOT / "docs" / "reference" / "python.md"}
    assert sorted(str(page.relative_to(ROOT)) for page in pages - found) == []


@pytest.mark.parametrize(
    "page",
    [
        *PAGES,
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "dialects").rglob("*.md")),
    ],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert missing == []
