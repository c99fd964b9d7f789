"""Flags of `spyre-compile` that follow from the options of `compile`."""

from __future__ import annotations

import argparse
from dataclasses import Field, fields
from typing import Any

from spyre_mlir.errors import InputError
from spyre_mlir.options import CompileOptions, about


def option_flags() -> list[Field[Any]]:
    """Return the options that have flags in a compiler of files."""
    return [entry for entry in fields(CompileOptions) if about(entry).flag]


def flag(entry: Field[Any]) -> str:
    """The flag of an option: ``--share-files`` for ``share_files``, ``--no-regions`` for ``regions``, which is on."""
    return f"--{'no-' if entry.default is True else ''}{entry.name.replace('_', '-')}"


def add_option(parser: argparse.ArgumentParser, entry: Field[Any]) -> None:
    """Adds the flag of an option, with its meaning for ``--help``."""
    option = about(entry)
    text = option.meaning.replace("``", "").replace("`", "").replace("%", "%%")
    if option.choices:
        text = f"{text} (default {entry.default})"
        parser.add_argument(flag(entry), choices=option.choices, default=entry.default, help=text)
    elif option.read is not None:
        parser.add_argument(flag(entry), metavar=_form(entry), type=_reader(entry), default=entry.default, help=text)
    else:
        turns, text = ("store_false", f"turn this off: {text}") if entry.default is True else ("store_true", text)
        parser.add_argument(flag(entry), dest=entry.name, action=turns, help=text)


def _form(entry: Field[Any]) -> str:
    """The form of a flag's text."""
    if entry.default is None:
        return "NUMBER"
    return "NAME,…" if isinstance(entry.default, tuple) else "NAME=NUMBER,…"


def _reader(entry: Field[Any]) -> Any:
    """Return the function by which argparse reads a flag's text; its errors name the flag."""

    def read(text: str) -> object:
        option = about(entry)
        assert option.read is not None
        try:
            return option.read(text)
        except InputError as error:
            raise argparse.ArgumentTypeError(error.message) from error

    return read


def chosen_options(arguments: argparse.Namespace) -> CompileOptions:
    """Return the options set by the flags of a command line."""
    return CompileOptions(**{entry.name: getattr(arguments, entry.name) for entry in option_flags()})
