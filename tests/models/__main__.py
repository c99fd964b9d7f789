"""`python -m tests.models [NAMES] [--jobs N]` examines programs of the zoo, keeps their rows, and writes the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.models.page import FILE, load, page_text, row_of, save
from tests.models.zoo import ZOO
from tests.side_by_side import side_by_side


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 if a program disagrees or does not compile."""
    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAMES")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args(argv)
    names = [] if options.page else [name for name in ZOO if not options.names or name in options.names]
    rows = load()
    for name, row in side_by_side(row_of, names, options.jobs, per_process=4):
        rows[name] = row
        sys.stdout.write(f"{name}: {row.trouble or 'agrees'}\n")
        sys.stdout.flush()
        save(rows)
    FILE.write_text(page_text(rows), encoding="utf-8")
    return int(any(rows[name].trouble for name in names))


if __name__ == "__main__":
    sys.exit(main())
