"""The tools by one name: `python -m spyre_mlir compile model.pt2`, which is `spyre-compile model.pt2`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from spyre_mlir.cli.start import TOOLS, start
from spyre_mlir.cli.support.versions import installed_version


def main(argv: Sequence[str]) -> int:
    """Run a tool; without one, list the tools. Returns the exit code."""
    if argv and argv[0] in TOOLS:
        return start(argv[0], argv[1:])
    listed = "\n".join(f"  {name:<10}{meaning}" for name, meaning in TOOLS.items())
    text = f"spyre-mlir {installed_version()}\n\n{listed}\n\nEach has --help: python -m spyre_mlir compile --help"
    if argv in ([], ["--help"], ["-h"], ["--version"]):
        print(text)
        return 0
    print(f"error: there is no tool {argv[0]}\n\n{text}", file=sys.stderr)
    return 1
