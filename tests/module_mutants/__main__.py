"""`python -m tests.module_mutants` changes a line in each of 40 modules and runs the mirrored test file of each alone.

Prints a row per mutant: what changed, and the test that noticed. Fails if fewer than nine in ten are noticed.
It works on copies; this checkout is only read.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

from tests.module_mutants.draw import Mutant, draw, mirrored
from tests.paths import ROOT

LEAST = 0.9
# Of one run: seconds of processor time and kilobytes; the clock is for what waits without end.
LIMITED, STUCK = 'ulimit -t 200; ulimit -v 12000000; exec "$@"', 3600
PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".*_cache", "*.egg-info")
NAMED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: `killer` is the test that noticed it, or how the run ended, or empty if it survived."""

    mutant: Mutant
    killer: str

    def __str__(self) -> str:
        mutant, word = self.mutant, "killed" if self.killer else "survived"
        change = f"{mutant.before.strip()}  →  {mutant.after.strip()}"
        return f"{word:8}  {mutant.module}:{mutant.line}  {change}  {self.killer.rpartition('/')[2]}"


class Tree:
    """A copy of a checkout, in which modules change."""

    def __init__(self, root: Path, copy: Path) -> None:
        shutil.copytree(root, copy, ignore=LEFT_OUT)
        self.root = copy

    def failure(self, tests: Sequence[str]) -> str:
        """The first failure of tests, or nothing."""
        run = partial(subprocess.run, capture_output=True, text=True, check=False, timeout=STUCK)
        environment = {**os.environ, "PYTHONPATH": str(self.root), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        try:
            done = run(["sh", "-c", LIMITED, "sh", *PYTEST, *tests], cwd=self.root, env=environment)
        except subprocess.TimeoutExpired:
            return "waits without end"
        if done.returncode == 0:
            return ""
        named = NAMED.search(done.stdout)
        return named[1] if named else f"exit code {done.returncode}"

    def outcome(self, mutant: Mutant) -> Outcome:
        """Runs the mirrored test file on a mutant."""
        path = self.root / mutant.module
        source = path.read_text(encoding="utf-8")
        compiled = Path(cache_from_source(str(path)))  # goes by seconds and size, which a mutant may share
        try:
            compiled.unlink(missing_ok=True)
            path.write_text(mutant.applied(source), encoding="utf-8")
            return Outcome(mutant, self.failure([str(mirrored(Path(mutant.module)))]))
        finally:
            path.write_text(source, encoding="utf-8")
            compiled.unlink(missing_ok=True)


def outcomes(root: Path, drawn: Sequence[Mutant], jobs: int = 1) -> Iterator[Outcome]:
    """What becomes of mutants, in their order; the tests that notice must pass without any mutant."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        trees = [Tree(root, Path(folder) / str(number)) for number in range(jobs)]
        free = SimpleQueue[Tree]()
        for tree in trees:
            free.put(tree)

        def outcome(mutant: Mutant) -> Outcome:
            tree = free.get()
            try:
                return tree.outcome(mutant)
            finally:
                free.put(tree)

        killers: set[str] = set()
        for one in pool.map(outcome, drawn):
            killers |= {one.killer} if ".py" in one.killer else set()
            yield one
        if killers and (failed := trees[0].failure(sorted(killers))):
            raise SystemExit(f"fails without any mutant: {failed}")


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the rows; returns 1 if too few mutants were noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.module_mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="another one draws other mutants")
    parser.add_argument("--count", type=int, default=40, help="every module gets one before any gets a second one")
    parser.add_argument("--module", default="spyre_mlir", metavar="PATH", help="a module or a folder of the package")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(argv)
    drawn, killed = draw(ROOT, options.count, options.seed, options.module), 0
    for outcome in outcomes(ROOT, drawn, options.jobs):
        killed += bool(outcome.killer)
        print(outcome, flush=True)
    print(f"{killed} of {len(drawn)} killed")
    return int(killed < LEAST * len(drawn))


if __name__ == "__main__":
    sys.exit(main())
