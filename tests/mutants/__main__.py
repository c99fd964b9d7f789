"""`python -m tests.mutants 500` draws mutants, runs them, and prints who noticed each kind; `-v` shows every one.

`--public` leaves out what our manifest says beyond the public files: which tensor each operand is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.mutants.base import llama_layer
from tests.mutants.draw import KINDS, draw
from tests.mutants.judge import EQUIVALENT, FAULT, STATIC, VERDICTS, Judge, Verdict


def table(verdicts: Sequence[Verdict]) -> str:
    """A row per kind: who noticed, and how many of those that are not equivalent need no comparison."""
    lines = ["  ".join(f"{word:>10}" for word in ("kind", "drawn", *VERDICTS, "unaided", "named"))]
    for kind in (*KINDS, "all"):
        own = [v for v in verdicts if kind in (v.mutant.kind, "all")]
        counts = [sum(v.verdict == word for v in own) for word in VERDICTS]
        named = [v.named for v in own if v.named is not None]
        numbers = [f"{share(own):.1%}", f"{sum(named)}/{len(named)}"]
        lines.append("  ".join(f"{word:>10}" for word in (kind, len(own), *counts, *numbers)))
    return "\n".join(lines)


def share(verdicts: Sequence[Verdict]) -> float:
    """Of those that are not equivalent, the part that a static check or a fault notices."""
    wrong = [v for v in verdicts if v.verdict != EQUIVALENT]
    return sum(v.verdict in (STATIC, FAULT) for v in wrong) / max(1, len(wrong))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table; returns 1 if a mutant was missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--public", action="store_true")
    parser.add_argument("--unnamed", action="store_true", help="do not ask verify() for the kernel it blames")
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        image = llama_layer(Path(folder) / "bundle", names=not options.public)
        drawn = draw(image, options.count, options.seed)
        judge = Judge(image, naming=not options.unnamed)
        verdicts: list[Verdict] = []
        for mutant in drawn:
            verdicts.append(judge.verdict(mutant))
            if options.verbose:
                last = verdicts[-1]
                sys.stdout.write(f"{last.verdict:>10} {last.named} {mutant}: {last.why.splitlines()[0]}\n")
                if last.named is False:
                    sys.stdout.write(f"    {last.blamed}\n")
                sys.stdout.flush()
    sys.stdout.write(table(verdicts) + "\n")
    return int(any(v.verdict == "missed" for v in verdicts))


if __name__ == "__main__":
    sys.exit(main())
