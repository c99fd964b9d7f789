"""`python -m tests.clients [NAMES] [--jobs N]` examines models of packages, keeps their rows, and writes the page.

A name is that of a package, such as timm, or of one model, such as timm/resnet18. Packages that are not installed are
named and left as their rows are.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.clients.catalogue import CATALOGUE, DISTRIBUTIONS, version_of
from tests.clients.page import FILE, load, page_text, save
from tests.side_by_side import side_by_side


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 if a model disagrees or does not compile, or a package is not installed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.clients", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAMES", help="all of them if there is none")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args(argv)
    unknown = [name for name in options.names if name not in CATALOGUE and name not in DISTRIBUTIONS]
    if unknown:
        parser.error(f"no package or model has the name {unknown[0]}; packages are {', '.join(DISTRIBUTIONS)}")
    names = [] if options.page else _chosen(options.names)
    absent = {CATALOGUE[name].package for name in names if not version_of(CATALOGUE[name].package)}
    for package in sorted(absent):
        sys.stdout.write(f"{package}: {DISTRIBUTIONS[package]} is not installed; try: pip install -e '.[clients]'\n")
    troubled = _examine([name for name in names if CATALOGUE[name].package not in absent], options.jobs)
    FILE.write_text(page_text(load()), encoding="utf-8")
    return int(troubled or bool(absent))


def _chosen(wanted: Sequence[str]) -> list[str]:
    return [name for name in CATALOGUE if not wanted or name in wanted or CATALOGUE[name].package in wanted]


def _examine(names: Sequence[str], jobs: int) -> bool:
    """Returns whether a row has trouble; rows are kept as they come, for a run may be stopped."""
    from tests.clients.examine import row_of

    rows = load()
    for name, row in side_by_side(row_of, names, jobs, per_process=4):
        rows[name] = row
        sys.stdout.write(f"{name}: {row.trouble or 'agrees'}\n")
        sys.stdout.flush()
        save(rows)
    return any(rows[name].trouble for name in names)


if __name__ == "__main__":
    sys.exit(main())
