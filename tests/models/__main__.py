"""`python -m tests.models [NAMES] [--jobs N]` examines programs of the zoo, keeps their rows, and writes the page."""

from __future__ import annotations

import argparse
import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

import torch

from spyre_mlir.errors import SpyreError
from tests.models.page import FILE, Row, load, page_text, save
from tests.models.zoo import ZOO


def row_of(name: str) -> Row:
    """The row of a program; whatever goes wrong is what it says."""
    from tests.models.examine import COMPOSED, NATIVE, examined

    try:
        found = examined(name)
    except SpyreError as error:
        return Row(trouble=f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - the other programs are to run
        return Row(trouble=f"crash: {type(error).__name__}: {error}")
    return Row(
        found.kernels.get(NATIVE, 0),
        found.kernels.get(COMPOSED, 0),
        found.reasons,
        found.worst,
        found.device,
        found.emulated,
        found.certainty,
        round(found.seconds, 1),
        found.trouble,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Returns 1 if a program disagrees or does not compile."""
    parser = argparse.ArgumentParser(prog="python -m tests.models", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAMES")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args(argv)
    names = [] if options.page else [name for name in ZOO if not options.names or name in options.names]
    rows = load()
    how = {"mp_context": multiprocessing.get_context("spawn"), "max_tasks_per_child": 4}
    with ProcessPoolExecutor(options.jobs, initializer=torch.set_num_threads, initargs=(1,), **how) as pool:
        for name, row in zip(names, pool.map(row_of, names), strict=True):
            rows[name] = row
            sys.stdout.write(f"{name}: {row.trouble or 'agrees'}\n")
            sys.stdout.flush()
            save(rows)
    FILE.write_text(page_text(rows), encoding="utf-8")
    return int(any(rows[name].trouble for name in names))


if __name__ == "__main__":
    sys.exit(main())
