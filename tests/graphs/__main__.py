"""Judges random programs: `python -m tests.graphs COUNT [--first SEED] [--jobs N]`; exit code 1 if any is wrong."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from multiprocessing import get_context

from tests.graphs.judge import Verdict, judge, quiet


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="how many programs")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    counts, shares, steps, unstable = Counter[str](), Counter[str](), 0, 0
    seeds = range(options.first, options.first + options.count)
    with get_context("spawn").Pool(options.jobs, quiet, maxtasksperchild=25) as pool:
        for done, verdict in enumerate(pool.imap_unordered(judge, seeds), 1):
            if done % 100 == 0:
                print(f"{done} of {options.count}", file=sys.stderr, flush=True)
            counts[verdict.status] += 1
            shares.update(verdict.traits)
            steps, unstable = steps + verdict.steps, unstable + verdict.unstable
            if verdict.status != "ok":
                show(verdict)
    print(f"{dict(counts)}, {steps / options.count:.1f} steps each, {unstable} unstable elements")
    print(", ".join(f"{count / options.count:.0%} {trait}" for trait, count in sorted(shares.items())))
    return 1 if counts["wrong"] or counts["crash"] else 0


def show(verdict: Verdict) -> None:
    print(f"seed {verdict.seed}: {verdict.status}: {verdict.detail}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
