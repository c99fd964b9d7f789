"""Explanations without files: the plans of the kernels of an operation, and the cards of a divided model.

`spyre-compile MODEL --explain OP`, and `spyre-compile FILE.py:FUNCTION --cards 1,2,4`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.cli.flags.option_flags import chosen_options
from spyre_mlir.errors import InputError

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program
    from spyre_mlir.options import CompileOptions
    from spyre_mlir.pipeline import PassWatcher

# What shows something else, or says where something is written.
_OTHER = ("output", "emit", "target", "split", "info", "graph")
_JSON = "json"
_OF_CARDS = ""  # --explain without an operation
_HINT = "--cards 1,2,4 with FILE.py:FUNCTION, a function that gives the model of this rank and its inputs"


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of this module."""
    parser.add_argument(
        "--explain",
        metavar="OP",
        nargs="?",
        const=_OF_CARDS,
        help="print the plans of the kernels of an operation (softmax), hardware function (batchmatmul), line "
        "(model.py:7), module, file (sdsc_3) or value (%%5), the next best ones, and their prices by engine; also as "
        "the file --json; beside --cards, without OP: also count the smaller numbers of cards that divide these, "
        "and say where the numbers of the cost model come from",
    )
    parser.add_argument(
        "--cards",
        metavar="N[,N...]",
        help="say what each of N cards holds of a model: bytes, time, link; MODEL is FILE.py:FUNCTION, which is called "
        "once per rank in a process group of N ranks, and gives the model of this rank and a tuple of inputs",
    )


def wanted(arguments: argparse.Namespace) -> bool:
    """Return whether plans are to be explained."""
    return arguments.explain is not None


def check(parser: argparse.ArgumentParser, arguments: argparse.Namespace, of_bundles: Sequence[str]) -> None:
    """Refuse options that have no meaning with `--explain`, such as all options of bundles but `--json`."""
    if arguments.explain == _OF_CARDS:
        parser.error("--explain takes an operation, as --explain softmax; without one it goes with --cards")
    for name in (*_OTHER, *(option for option in of_bundles if option != _JSON)):
        if getattr(arguments, name) != parser.get_default(name):
            parser.error(f"--explain writes no bundle, so --{name.replace('_', '-')} means nothing beside it")


def explained(program: Program, options: CompileOptions, op: str, path: str | None, watch: PassWatcher) -> str:
    """Explain kernels, and write the explanation to a file if one is given; return the text.

    Raises:
        InputError: no kernel goes by this name, or the file cannot be written.
    """
    from spyre_mlir.backend.whole_files.whole_file import save_text
    from spyre_mlir.report.explanation.explaining import explain

    found = explain(program.name, program.module, options, op, watch)
    if path is not None:
        save_text(Path(path), found.json())
    return f"{found}\n"


def counts_cards(arguments: argparse.Namespace) -> bool:
    """Return whether cards are to be counted."""
    return arguments.cards is not None


def check_cards(parser: argparse.ArgumentParser, arguments: argparse.Namespace, of_bundles: tuple[str, ...]) -> None:
    """Refuse options that have no meaning with `--cards`."""
    if arguments.explain not in (None, _OF_CARDS):
        parser.error(f"beside --cards, --explain takes no operation, and got {arguments.explain!r}; put MODEL first")
    for name in ("output", "emit", "target", "split", "info", "graph", "dump_dir", "dim", *of_bundles):
        if getattr(arguments, name) != parser.get_default(name):
            parser.error(f"--cards writes nothing, so --{name.replace('_', '-')} means nothing beside it")


def run_cards(arguments: argparse.Namespace) -> int:
    """Print what each card holds.

    Raises:
        InputError: there is no such function, or the numbers are none.
    """
    from spyre_mlir.ranks.cards import cards, origins, with_smaller

    numbers = arguments.cards.split(",")
    if not all(number.strip().isdigit() for number in numbers):
        raise InputError(f"--cards takes numbers with commas between them, got {arguments.cards!r}", hint=_HINT)
    make = _function(arguments.model)
    counts, chosen = [int(number) for number in numbers], chosen_options(arguments)
    if wanted(arguments):
        counts = with_smaller(counts)
    found = cards(make, counts, **vars(chosen))
    sys.stdout.write(f"{found}\n{origins()}\n" if wanted(arguments) else f"{found}\n")
    return 0


def _function(text: str) -> Callable[[], Any]:
    path, _, name = text.rpartition(":")
    file = Path(path)
    if not path:
        raise InputError("--cards wants a function that makes the model", where=text, hint=_HINT)
    if not file.is_file():
        raise InputError("there is no such file", where=path, hint=_HINT)
    found = spec_from_file_location(file.stem, file)
    if found is None or found.loader is None:
        raise InputError("this is no Python file", where=path, hint=_HINT)
    module = module_from_spec(found)
    sys.modules[file.stem] = module
    found.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        known = ", ".join(n for n, value in vars(module).items() if callable(value) and not n.startswith("_"))
        raise InputError(f"the file has no function {name!r}; it has {known}", where=path, hint=_HINT)
    return function
