"""`--dim NAME=NUMBER`: values for the symbols of a program with dynamic shapes."""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.cli.support.endings import TakesArguments
from spyre_mlir.errors import InputError


def add_dims(parser: TakesArguments) -> None:
    """Adds the flag."""
    parser.add_argument(
        "--dim",
        metavar="NAME=NUMBER",
        action="append",
        default=[],
        help="value of a symbol of a program with dynamic shapes, as s0=33; may be given again",
    )


def read_dims(texts: Sequence[str]) -> dict[str, int]:
    """Return values by symbol.

    Raises:
        InputError: a text is no ``NAME=NUMBER``, or a symbol comes twice.
    """
    sizes: dict[str, int] = {}
    for text in texts:
        name, _, number = text.partition("=")
        if not (number.isascii() and number.isdigit()):
            raise InputError(f"--dim is NAME=NUMBER, got {text!r}", hint="for example --dim s0=33")
        if name in sizes:
            raise InputError(f"--dim gives {name} twice, {sizes[name]} and {number}", hint="give it once")
        sizes[name] = int(number)
    return sizes
