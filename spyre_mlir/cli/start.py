"""Entry points of the tools: they load the tool lazily, so that an interrupt during loading ends as any later one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

INTERRUPTED = 130


def _start(module: str, argv: Sequence[str] | None) -> int:
    try:
        loaded = import_module(f"spyre_mlir.cli.{module}")
        run = loaded.run if hasattr(loaded, "run") else loaded.main
        return run(argv)
    except KeyboardInterrupt:
        os.write(2, b"error: interrupted\n")
        return INTERRUPTED


def spyre_opt(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-opt."""
    return _start("opt", argv)


def spyre_compile(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-compile."""
    return _start("compile", argv)


def spyre_run(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-run."""
    return _start("run", argv)


def spyre_translate(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-translate."""
    return _start("translate", argv)


if __name__ == "__main__":
    sys.exit(_start(sys.argv[1], sys.argv[2:]))
