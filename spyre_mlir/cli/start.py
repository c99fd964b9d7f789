"""Entry points of the tools: they load the tool lazily, so that an interrupt during loading ends as any later one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

INTERRUPTED = 130
TOOLS = {
    "compile": "a PyTorch program to a bundle, or to one of the levels",
    "opt": "passes on IR text",
    "run": "a program of any level, or a bundle, on the hardware model",
    "lsp": "a language server for IR text in editors",
    "translate": "SuperDSC files to text and back, their check, and KTIR",
}


def start(module: str, argv: Sequence[str] | None) -> int:
    """Run a tool; returns the exit code."""
    try:
        loaded = import_module(f"spyre_mlir.cli.{module}")
        run = loaded.run if hasattr(loaded, "run") else loaded.main
        return run(argv)
    except KeyboardInterrupt:
        os.write(2, b"error: interrupted\n")
        return INTERRUPTED


def spyre_opt(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-opt."""
    return start("opt", argv)


def spyre_compile(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-compile."""
    return start("compile", argv)


def spyre_run(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-run."""
    return start("run", argv)


def spyre_translate(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-translate."""
    return start("translate", argv)


def spyre_lsp(argv: Sequence[str] | None = None) -> int:
    """Entry point of spyre-lsp."""
    return start("lsp", argv)


if __name__ == "__main__":
    sys.exit(start(sys.argv[1], sys.argv[2:]))
