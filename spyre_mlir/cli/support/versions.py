"""The version of the tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, NoReturn


class ShowVersion(argparse.Action):
    """The flag `--version`: the version is looked up when it is asked for, which takes longer than parsing flags."""

    def __init__(self, *args: Any, libraries: Sequence[str] = (), **kwargs: Any) -> None:
        """Takes no values, and leaves none; versions of `libraries` are shown, too."""
        self._libraries = libraries
        super().__init__(*args, **kwargs | {"nargs": 0, "dest": argparse.SUPPRESS, "help": "show the version and stop"})

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        """Print name and version of the tool, and stop."""
        from importlib.metadata import version

        built_on = ", ".join(f"{name} {version(name)}" for name in self._libraries)
        sys.stdout.write(f"{parser.prog} {installed_version()}{f' ({built_on})' if built_on else ''}\n")
        parser.exit()


def installed_version() -> str:
    """Return the version of the installed package; a word where a mere checkout runs."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("spyre-mlir")
    except PackageNotFoundError:
        return "(not installed)"
