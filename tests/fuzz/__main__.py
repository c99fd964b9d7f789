"""Damaged files and command lines through every tool: `python -m tests.fuzz 10000 [--first SEED]`.

Prints how the cases of each kind ended, and every case that ended otherwise than done or in a named error; the same
seeds are the same cases. Returns 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

from tests.fuzz.cases import corpus
from tests.fuzz.worker import Outcome, outcomes, preload

NAMES = {0: "done", 1: "input error", 2: "unsupported", 3: "fault"}


def main() -> int:
    """Runs the seeds."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=10_000)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    bad: list[Outcome] = []
    table: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        files = corpus(Path(folder))
        preload()
        with suppress(KeyboardInterrupt):  # what was found so far is told
            for one in outcomes(range(options.first, options.first + options.count), files):
                how = NAMES.get(one.code if one.code is not None else -1, "wrong") if one.good else "wrong"
                table.setdefault(one.kind, Counter())[how] += 1
                if not one.good:
                    bad.append(one)
                    print(f"seed {one.seed} ({one.kind}): {' '.join(one.command)[:200]}\n    {one.message}", flush=True)
    for kind, counts in sorted(table.items()):
        print(f"{kind:16} " + ", ".join(f"{count:,} {how}" for how, count in counts.most_common()))
    print(f"{sum(c.total() for c in table.values()):,} cases, {len(bad):,} wrong")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
