"""Prints digests of everything the compiler writes; a refactoring is held to them by comparing two checkouts.

    git worktree add ../before <commit>
    PYTHONPATH=$PWD/../before .venv/bin/python tools/digests.py > before.txt
    .venv/bin/python tools/digests.py --inputs ../before > after.txt && diff before.txt after.txt

One line per output: `lit FILE RUN CODE OUTPUT` for the tools' part of every RUN line, `example FILE CODE OUTPUT` for
every program in `examples/`, `zoo MODEL FILE` for each public file of a model's bundle, for its text at every level and
for its results in exact numerics. Texts count as `tools/respell.py` spells them, and so do the lit files of another
checkout. Models are compiled without regions. `--only lit|examples|zoo` and `--models a,b` narrow it down, and `--keep
DIR` keeps the texts, for a diff of what differs.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import inspect
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from respell import respelled

ROOT = Path(os.environ.get("PYTHONPATH") or Path(__file__).resolve().parent.parent)
BIN = Path(sys.executable).parent
OWN_FILES = ("manifest.json", "levels")  # hold prose, places and text of the levels, which may be spelled anew
HOST_PROGRAM = "program.mlir"  # a text of ours, which counts as it is spelled now


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


class Texts:
    """Digests of texts in the new spelling, without the names of folders; kept if asked for."""

    def __init__(self, keep: Path | None, folders: list[Path]) -> None:
        self.keep, self.folders = keep, folders

    def digest(self, name: str, text: str, *folders: Path) -> str:
        """Digest of a text, which is kept by this name."""
        for folder in (*folders, *self.folders):
            text = text.replace(str(folder), "")
        text = respelled(text)
        if self.keep is not None:
            (self.keep / name.replace("/", "__")).write_text(text, encoding="utf-8")
        return digest(text.encode())


def lit_lines(texts: Texts, inputs: Path, scratch: Path) -> Iterator[str]:
    """Exit code and digest of the output of every RUN line, without filecheck."""
    tool = re.compile(r"^spyre-(opt|compile|run|translate)$")
    for path in sorted((inputs / "tests" / "lit").rglob("*.mlir")):
        name = str(path.relative_to(inputs))
        copied = scratch / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8")
        copied.write_text(text if inputs == ROOT else respelled(text), encoding="utf-8")
        for number, line in enumerate(re.findall(r"^\s*//\s*RUN:\s*(.*)$", text, re.MULTILINE)):
            stages = [stage.strip() for stage in line.split("|") if not stage.strip().startswith("filecheck")]
            words = [shlex.split(stage) for stage in stages]
            if any(word.startswith("mlir-opt") for stage in words for word in stage):
                continue
            with tempfile.TemporaryDirectory() as folder:
                shell = " | ".join(command(stage, tool, copied, folder) for stage in words)
                code, output = run(["bash", "-c", shell])
                yield f"lit {name} {number} {code} {texts.digest(f'{name}.{number}', output, Path(folder))}"


def example_lines(texts: Texts, inputs: Path) -> Iterator[str]:
    """Exit code and digest of the output of every example."""
    for path in sorted((ROOT / "examples").glob("*.py")):
        code, output = run([sys.executable, str(path)])
        yield f"example {path.name} {code} {texts.digest(path.name, output)}"
    for path in sorted((inputs / "examples").glob("*.mlir")):
        code, output = run([sys.executable, "-m", "spyre_mlir.cli.run", str(path), "--numerics", "exact"])
        yield f"example {path.name} {code} {texts.digest(path.name, output)}"


def run(words: list[str]) -> tuple[int, str]:
    """Exit code and output of a command with the package of the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, check=False, cwd=ROOT, env=environment)
    return done.returncode, done.stdout.decode("utf-8", "replace")


def command(words: list[str], tool: re.Pattern[str], path: Path, scratch: str) -> str:
    """A stage of a RUN line for bash."""
    words = [word for word in words if word != "not"]
    merge = " 2>&1" if "2>&1" in words else ""
    words = [word.replace("%s", str(path)).replace("%t", f"{scratch}/t") for word in words if word != "2>&1"]
    if found := tool.match(words[0]):
        words[:1] = [sys.executable, "-m", f"spyre_mlir.cli.{found[1]}"]
    return shlex.join(words) + merge


def zoo_lines(texts: Texts, wanted: list[str]) -> Iterator[str]:
    """Digests of the bundle, the texts and the results of every model of the zoo."""
    import torch
    from torch.utils._pytree import tree_leaves

    import spyre_mlir
    from spyre_mlir.pipeline import LEVELS
    from tests.models.zoo import ZOO, build

    warnings.simplefilter("ignore")
    flat = {"regions": False} if "regions" in inspect.signature(spyre_mlir.compile).parameters else {}
    for name in wanted or sorted(ZOO):
        model, inputs = build(name)
        compiled = spyre_mlir.compile(model, copy.deepcopy(inputs), host_fallback="allow", **flat)
        with tempfile.TemporaryDirectory() as scratch:
            bundle = compiled.save(Path(scratch) / "bundle")
            for path in sorted(bundle.rglob("*")):
                file = path.relative_to(bundle)
                if path.is_file() and file.parts[0] not in OWN_FILES:
                    text = path.read_text(encoding="utf-8") if file.name == HOST_PROGRAM else None
                    own = digest(path.read_bytes()) if text is None else texts.digest(f"{name}.{file}", text)
                    yield f"zoo {name} {file} {own}"
        for level in LEVELS:
            yield f"zoo {name} {level} {texts.digest(f'{name}.{level}.mlir', compiled.mlir(level))}"
        results = [leaf for leaf in tree_leaves(compiled(*copy.deepcopy(inputs))) if isinstance(leaf, torch.Tensor)]
        held = b"".join(leaf.contiguous().flatten().view(torch.uint8).numpy().tobytes() for leaf in results)
        yield f"zoo {name} results {digest(held)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("lit", "examples", "zoo"))
    parser.add_argument("--models", default="", help="names of zoo models, with commas between")
    parser.add_argument("--inputs", type=Path, default=ROOT, help="checkout whose lit files and examples are taken")
    parser.add_argument("--keep", type=Path, help="directory for the texts")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    inputs: Path = options.inputs.resolve()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        texts = Texts(options.keep, [scratch, ROOT, inputs])
        lines = {
            "lit": lit_lines(texts, inputs, scratch),
            "examples": example_lines(texts, inputs),
            "zoo": zoo_lines(texts, [name for name in options.models.split(",") if name]),
        }
        for line in chain.from_iterable(lines[part] for part in lines if options.only in (None, part)):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
