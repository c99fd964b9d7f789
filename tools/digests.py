"""Prints digests of everything the compiler writes; a refactoring is held to them by comparing two checkouts.

    git worktree add ../before <commit>
    PYTHONPATH=../before .venv/bin/python tools/digests.py > before.txt   # lit files and zoo of the old checkout
    .venv/bin/python tools/digests.py > after.txt && diff before.txt after.txt

One line per output: `lit FILE RUN CODE OUTPUT` for the tools' part of every RUN line, `zoo MODEL FILE` for each public
file of a model's bundle and for its results in exact numerics. `--only lit|zoo` and `--models a,b` narrow it down.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(os.environ.get("PYTHONPATH") or Path(__file__).resolve().parent.parent)
BIN = Path(sys.executable).parent
OWN_FILES = ("manifest.json", "levels")  # hold prose, places and text of the levels, which may be spelled anew


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def lit_lines() -> Iterator[str]:
    """Exit code and digest of the output of every RUN line, without filecheck."""
    tool = re.compile(r"^spyre-(opt|compile|run|translate)$")
    for path in sorted((ROOT / "tests" / "lit").rglob("*.mlir")):
        for number, line in enumerate(re.findall(r"^\s*//\s*RUN:\s*(.*)$", path.read_text(), re.MULTILINE)):
            with tempfile.TemporaryDirectory() as scratch:
                stages = [stage.strip() for stage in line.split("|") if not stage.strip().startswith("filecheck")]
                words = [shlex.split(stage) for stage in stages]
                if any(word.startswith("mlir-opt") for stage in words for word in stage):
                    continue
                shell = " | ".join(command(stage, tool, path, scratch) for stage in words)
                done = subprocess.run(["bash", "-c", shell], capture_output=True, check=False, cwd=ROOT)
                output = done.stdout.replace(scratch.encode(), b"").replace(str(ROOT).encode(), b"")
            yield f"lit {path.relative_to(ROOT)} {number} {done.returncode} {digest(output)}"


def command(words: list[str], tool: re.Pattern[str], path: Path, scratch: str) -> str:
    """A stage of a RUN line for bash."""
    words = [word for word in words if word != "not"]
    merge = " 2>&1" if "2>&1" in words else ""
    words = [word.replace("%s", str(path)).replace("%t", f"{scratch}/t") for word in words if word != "2>&1"]
    if found := tool.match(words[0]):
        words[:1] = [sys.executable, "-m", f"spyre_mlir.cli.{found[1]}"]
    return shlex.join(words) + merge


def zoo_lines(wanted: list[str]) -> Iterator[str]:
    """Digests of the bundle and of the results of every model of the zoo."""
    import torch
    from torch.utils._pytree import tree_leaves

    import spyre_mlir
    from tests.models.zoo import ZOO, build

    warnings.simplefilter("ignore")
    for name in wanted or sorted(ZOO):
        model, inputs = build(name)
        compiled = spyre_mlir.compile(model, copy.deepcopy(inputs), host_fallback="allow")
        with tempfile.TemporaryDirectory() as scratch:
            bundle = compiled.save(Path(scratch) / "bundle")
            for path in sorted(bundle.rglob("*")):
                if path.is_file() and path.relative_to(bundle).parts[0] not in OWN_FILES:
                    yield f"zoo {name} {path.relative_to(bundle)} {digest(path.read_bytes())}"
        results = [leaf for leaf in tree_leaves(compiled(*copy.deepcopy(inputs))) if isinstance(leaf, torch.Tensor)]
        held = b"".join(leaf.contiguous().flatten().view(torch.uint8).numpy().tobytes() for leaf in results)
        yield f"zoo {name} results {digest(held)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("lit", "zoo"))
    parser.add_argument("--models", default="", help="names of zoo models, with commas between")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.only != "zoo":
        for line in lit_lines():
            print(line, flush=True)
    if options.only != "lit":
        for line in zoo_lines([name for name in options.models.split(",") if name]):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
