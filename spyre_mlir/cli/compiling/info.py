"""`spyre-compile --info` and `--graph`: inspection of a model without compiling it to files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from spyre_mlir.cli.flags.dims import read_dims
from spyre_mlir.cli.support.lists import print_list
from spyre_mlir.cli.support.output import PendingOutput
from spyre_mlir.errors import InputError

if TYPE_CHECKING:
    from spyre_mlir.report.models.graph import Graph

# What may stand beside them: where the model is, how much is told, and what decides what runs where.
_ALLOWED = ("model", "info", "graph", "verbose", "prefer_device", "memory_limit", "dim")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of this module."""
    parser.add_argument(
        "--info",
        action="store_true",
        help="list operations by support, tensors, and host steps; compile nothing",
    )
    parser.add_argument(
        "--graph", metavar="FILE", help="draw the model as FILE.svg or FILE.mmd (Mermaid); compile nothing"
    )


def wanted(arguments: argparse.Namespace) -> bool:
    """Return whether the model is only to be inspected."""
    return bool(arguments.info or arguments.graph is not None)


def check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Refuse options that have no meaning with `--info` and `--graph`."""
    flag = "--info" if arguments.info else "--graph"
    for name, value in vars(arguments).items():
        if name not in _ALLOWED and value != parser.get_default(name):
            parser.error(f"{flag} compiles nothing, so --{name.replace('_', '-')} means nothing beside it")


def drawing(path: str | None) -> tuple[PendingOutput, Callable[[Graph], str]] | None:
    """Return the file to draw into and the drawing function; None if no drawing is asked for.

    Raises:
        InputError: its name does not say which of the two forms is wanted.
    """
    if path is None:
        return None
    from spyre_mlir.report.models.graph import mermaid, svg

    draws = {".svg": svg, ".mmd": mermaid}.get(Path(path).suffix)
    if draws is None:
        raise InputError(
            "a drawing is SVG or Mermaid text, and this name says neither",
            where=path,
            hint="name a file that ends with .svg or .mmd",
        )
    return PendingOutput(path), draws


def look(arguments: argparse.Namespace) -> int:
    """Inspect a saved program.

    Raises:
        InputError: there is no such file.
    """
    from spyre_mlir.api import info as model_info
    from spyre_mlir.report.models.model_info import COLUMNS

    model = str(arguments.model)
    drawn, sizes = drawing(arguments.graph), read_dims(arguments.dim)
    if not Path(model).is_file():
        what = "this is no file" if Path(model).exists() else "there is no such file"
        raise InputError(what, where=model, hint="name a file that torch.export.save has written")
    found = model_info(model, prefer_device=arguments.prefer_device, sizes=sizes)
    if drawn is not None:
        pending, draws = drawn
        pending.deliver(draws(found.graph))
    if arguments.info:
        print_list(COLUMNS, found.rows())
    return 0
