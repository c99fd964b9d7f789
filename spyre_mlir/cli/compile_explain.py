"""`spyre-compile MODEL --explain OP`: the plans of the kernels of an operation, without files."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program
    from spyre_mlir.options import CompileOptions
    from spyre_mlir.pipeline import PassWatcher

# What shows something else, or says where something is written.
_OTHER = ("output", "emit", "target", "split", "info", "graph")
_JSON = "json"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flag of this module."""
    parser.add_argument(
        "--explain",
        metavar="OP",
        help="print the plans of the kernels of an operation (softmax), hardware function (batchmatmul), line "
        "(model.py:7), module, file (sdsc_3) or value (%%5), the next best ones, and their prices by engine; also as "
        "the file --json",
    )


def wanted(arguments: argparse.Namespace) -> bool:
    """Return whether plans are to be explained."""
    return arguments.explain is not None


def check(parser: argparse.ArgumentParser, arguments: argparse.Namespace, of_bundles: Sequence[str]) -> None:
    """Refuse whatever has no meaning with `--explain`, such as all options of bundles but `--json`."""
    for name in (*_OTHER, *(option for option in of_bundles if option != _JSON)):
        if getattr(arguments, name) != parser.get_default(name):
            parser.error(f"--explain writes no bundle, so --{name.replace('_', '-')} means nothing beside it")


def explained(program: Program, options: CompileOptions, op: str, path: str | None, watch: PassWatcher) -> str:
    """Explain kernels, and write the explanation to a file if one is given; return the text.

    Raises:
        InputError: no kernel goes by this name, or the file cannot be written.
    """
    from pathlib import Path

    from spyre_mlir.backend.whole_file import save_text
    from spyre_mlir.report.explanation.explaining import explain

    found = explain(program.name, program.module, options, op, watch)
    if path is not None:
        save_text(Path(path), found.json())
    return f"{found}\n"
