"""`python -m tests.op_cases [NAMES] [--jobs N]` runs cases, keeps their outcomes, and writes the page.

NAMES are parts of case ids; none means all. `--resume` leaves out cases that passed before, `--large` also runs those
that are listed for their size, `--page` only writes the page.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.op_cases.cases import Case, cases
from tests.op_cases.judge import NO_PROGRAM, PASSED, run
from tests.op_cases.listed import LARGEST
from tests.op_cases.page import FILE, page_text
from tests.op_cases.results import load, save
from tests.side_by_side import side_by_side

SAVE_EVERY = 25
CASES_PER_PROCESS = 100


def chosen(names: Iterable[str], *, resume: bool, large: bool) -> list[Case]:
    """The cases that are asked for: the smallest of every op of every group, then the others, small ones first."""
    wanted = tuple(names)
    smallest = {(c.group, c.op): c.id for c in sorted(cases(), key=lambda case: -case.elements)}
    first = set(smallest.values())
    done = {name for name, o in load().items() if o.status in (PASSED, NO_PROGRAM)} if resume else set[str]()
    return [
        case
        for case in sorted(cases(), key=lambda case: (case.id not in first, case.elements))
        if case.id not in done
        and (not wanted or any(name in case.id for name in wanted))
        and (large or case.elements <= LARGEST)
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 if a case that is not listed fails."""
    from tests.op_cases.listed import reason

    parser = argparse.ArgumentParser(prog="python -m tests.op_cases", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    for flag in ("resume", "large", "page"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = parser.parse_args(argv)
    outcomes, found = load(), Counter[str]()
    todo = [] if options.page else chosen(options.names, resume=options.resume, large=options.large)
    for number, (case, outcome) in enumerate(side_by_side(run, todo, options.jobs, CASES_PER_PROCESS)):
        outcomes[case.id] = outcome
        good = outcome.status in (PASSED, NO_PROGRAM)
        found["passed" if good else "listed" if reason(case) else "failed"] += 1
        if not good:
            sys.stdout.write(f"{case.id}: {outcome.status}, {outcome.ulps:g} ulps: {outcome.why}\n")
            sys.stdout.flush()
        if number % SAVE_EVERY == 0:
            save(outcomes)
    save(outcomes)
    FILE.write_text(page_text(outcomes), encoding="utf-8")
    sys.stdout.write(f"{found['passed']} passed, {found['failed']} failed, {found['listed']} listed\n")
    return int(found["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
