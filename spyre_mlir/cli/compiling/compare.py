"""`spyre-compile --compare BEFORE AFTER`: the predicted time of two compiled programs side by side."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from spyre_mlir.cli.support.output import PendingOutput

if TYPE_CHECKING:
    from spyre_mlir.report.figures import Figures

_ALLOWED = ("compare", "report", "json", "verbose", "memory_limit")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flag of this module."""
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar=("BEFORE", "AFTER"),
        help="compare the predicted time of two bundle directories or files of --json, also as the page --report and "
        "the file --json; compile nothing",
    )


def wanted(arguments: argparse.Namespace) -> bool:
    """Return whether two programs are to be compared."""
    return arguments.compare is not None


def check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Refuse options that have no meaning with `--compare`."""
    for name, value in vars(arguments).items():
        if name not in _ALLOWED and value != parser.get_default(name):
            what = "a model" if name == "model" else f"--{name.replace('_', '-')}"
            parser.error(f"--compare compiles nothing, so {what} means nothing beside it")


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison, and write its page and its figures if they are asked for.

    Raises:
        ReadError: one of the two is no report and no bundle.
        InputError: the reports are of different profiles, or a file cannot be written.
    """
    from spyre_mlir.backend.whole_files.whole_file import save_text
    from spyre_mlir.report.comparison import Comparison

    for path in filter(None, (arguments.report, arguments.json)):
        PendingOutput(path)  # a file that cannot be written is refused before anything is read
    comparison = Comparison(*(_figures(Path(place)) for place in arguments.compare))
    if arguments.report is not None:
        comparison.page(arguments.report)
    if arguments.json is not None:
        save_text(Path(arguments.json), comparison.json())
    sys.stdout.write(f"{comparison}\n")
    return 0


def _figures(place: Path) -> Figures:
    from spyre_mlir.report.figures import read_figures

    if not place.is_dir():
        return read_figures(place)
    from spyre_mlir.api import load
    from spyre_mlir.backend.stored import check_one_program
    from spyre_mlir.compiled import CompiledModel

    check_one_program(place)
    loaded = load(place, check=False)
    assert isinstance(loaded, CompiledModel)
    return loaded.report().figures
