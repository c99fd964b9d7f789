"""The package and the site as others get them: versions that agree, pages that are all there, links within them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.paths import ROOT
from tools.site_links import inside, on_page_markdown

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCS = ROOT / "docs"


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name functions of its extensions."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def pages(entry: object) -> list[str]:
    if isinstance(entry, dict):
        return [page for value in entry.values() for page in pages(value)]
    return [page for value in entry for page in pages(value)] if isinstance(entry, list) else [str(entry)]


def test_the_versions_of_python_are_the_same_everywhere() -> None:
    prefix = "Programming Language :: Python :: "
    named = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if re.fullmatch(rf"{prefix}\d+\.\d+", c)]
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_the_workflow_does_what_the_script_does() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert ".ci/run" in [step.get("run") for step in workflow["jobs"]["test"]["steps"]]


def test_every_page_is_on_the_site() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)
    shown = pages(site["nav"])
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert len(shown) == len(set(shown)) and set(shown) <= there
    assert {page for page in there - set(shown) if not page.startswith("decisions/")} == set()


def test_the_source_distribution_holds_what_the_tests_read() -> None:
    lines = (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    taken = {word for line in lines if line.startswith(("graft", "include")) for word in line.split()[1:]}
    # The package, pyproject.toml, README.md and LICENSE are taken by setuptools.
    kept = {"spyre_mlir", "pyproject.toml", "README.md", "LICENSE", ".gitignore"}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    assert {path.partition("/")[0] for path in listed.stdout.splitlines()} - kept == taken


@pytest.mark.parametrize(
    ("page", "target", "stays"),
    [
        ("how-to.md", "reference/api.md#weights", True),
        ("decisions/0001-a.md", "../glossary.md", True),
        ("decisions/0001-a.md", "../../spyre_mlir/api.py", False),
        ("how-to.md", "../CONTRIBUTING.md", False),
    ],
)
def test_links_that_leave_the_pages(page: str, target: str, stays: bool) -> None:
    assert inside(page, target) == stays


def test_links_that_leave_become_text() -> None:
    class File:
        src_uri = "decisions/0001-a.md"

    class Page:
        file = File()

    text = "See [`api.py`](../../spyre_mlir/api.py), [a term](../glossary.md) and [xDSL](https://xdsl.dev)."
    wanted = "See `api.py`, [a term](../glossary.md) and [xDSL](https://xdsl.dev)."
    assert on_page_markdown(text, Page()) == wanted


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    for package in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; try: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    gallery = (tmp_path / "site" / "gallery" / "index.html").read_text(encoding="utf-8")
    shown = set(re.findall(r'(?:href|src)="((?:turned|straight|comparison)[^"]*)"', gallery))
    assert len(shown) == 9 and {name for name in shown if not (tmp_path / "site" / "gallery" / name).is_file()} == set()
    front = (tmp_path / "site" / "reference" / "python" / "index.html").read_text(encoding="utf-8")
    assert "LevelGraphs" in front
    headings = re.findall(r"<h2[^>]*>(.*?)<a", front, re.DOTALL)
    assert headings and all("(" not in re.sub("<[^>]*>", "", heading) for heading in headings), (
        "a signature is a heading"
    )
    assert not re.findall(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)', front), "the site loads from elsewhere"
