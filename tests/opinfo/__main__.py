"""`python -m tests.opinfo NAME ...`: what the compiler makes of samples from PyTorch's OpInfo database.

A name is an entry with all its variants, as softmax or linalg.norm, or a core overload, as aten::sort.default.
With --run DIR and no names everything runs; DIR keeps the results, and another run goes on where this one stopped.
A name may be a row there, as softmax/float16; --update FILE then writes the counts of the rows of DIR, and no others.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.opinfo.judge import SECONDS, judge
from tests.opinfo.run import Plan, row_cases, run
from tests.opinfo.samples import DTYPES, SAMPLES, named
from tests.opinfo.store import Store
from tests.opinfo.summary import BAD, failures_text, update_summary, worse_than, write_summary


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.opinfo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--dtype", help=f"of {', '.join(DTYPES)}, separated by commas, or all (of one op: float32)")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="at most so many of an op at a dtype")
    parser.add_argument("--device", action="store_true", help="also run in device numerics; a whole run always does")
    parser.add_argument("--levels", action="store_true", help="also run at every level")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="time limit of a sample")
    parser.add_argument("--run", type=Path, metavar="DIR", help="run everything, and keep the results there")
    parser.add_argument("--shard", default="0/1", metavar="I/N", help="the part I, from 0, of N parts of the run")
    parser.add_argument("--first", type=int, default=SAMPLES, help="this run tries only so many samples of each row")
    parser.add_argument("--fresh", action="store_true", help="try again what another state of the code judged")
    parser.add_argument("--again", default="", metavar="STATUS,…", help="as --fresh, for samples of these statuses")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many")
    parser.add_argument("--core", action="store_true", help="run the core overloads only")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="write the counts of DIR by op and dtype")
    parser.add_argument("--update", type=Path, metavar="FILE", help="write the counts of the rows of DIR into FILE")
    parser.add_argument("--against", type=Path, metavar="FILE", help="fail if DIR has samples worse than FILE says")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write what fails in DIR")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if options.run is None:
        return one_by_one(options)
    store = Store(options.run, options.shard)
    if options.minutes > 0:
        whole_run(options, store)
    if options.summary is not None:
        write_summary(store, options.summary)
    if options.update is not None:
        update_summary(store, options.update)
    if options.failures is not None:
        options.failures.write_text(failures_text(store), encoding="utf-8")
    worse = {} if options.against is None else worse_than(store, options.against)
    for key, what in worse.items():
        print(f"{key}: {what}")
    return int(bool(worse))


def whole_run(options: argparse.Namespace, store: Store) -> None:
    part, parts = map(int, options.shard.split("/"))
    dtypes = () if options.core else tuple(DTYPES) if options.dtype in (None, "all") else options.dtype.split(",")
    plan = Plan(
        dtypes=tuple(dtypes),
        count=options.samples,
        first=options.first,
        shard=(part, parts),
        again=frozenset(filter(None, options.again.split(","))),
        fresh=options.fresh,
        seconds=options.seconds,
        minutes=options.minutes,
        only=tuple(n for pattern in options.names for n in ([pattern] if is_row(pattern) else found(pattern))),
    )
    counts: Counter[str] = Counter()
    for record in run(plan, store):
        counts[record["status"]] += 1
        if record["status"] in BAD:
            print(record["status"], record["key"], record["detail"].split("\n", 1)[0][:150], flush=True)
    print(", ".join(f"{n} {status}" for status, n in counts.most_common()) or "nothing to do")


def is_row(pattern: str) -> bool:
    """Whether a name is an entry at one dtype, as linalg.norm/float16."""
    return pattern.rpartition("/")[2] in DTYPES


def found(pattern: str) -> list[str]:
    return [pattern] if pattern.startswith("aten::") else named(pattern)


def one_by_one(options: argparse.Namespace) -> int:
    dtypes = list(DTYPES) if options.dtype == "all" else (options.dtype or "float32").split(",")
    bad = 0
    for pattern in options.names:
        if not found(pattern):
            print(f"{pattern}: no such entry")
        for name in found(pattern):
            for case in (c for d in dtypes for c in row_cases(name, d, options.samples)):
                outcome = judge(case, device=options.device, levels=options.levels, seconds=options.seconds)
                print(outcome.line(), flush=True)
                bad += outcome.status in (*BAD, "refused")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
