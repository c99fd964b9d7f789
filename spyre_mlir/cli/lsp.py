"""spyre-lsp: a language server for IR text, which an editor starts and talks to by standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from spyre_mlir.cli.support.endings import ToolArgumentParser, guarded
from spyre_mlir.cli.support.versions import installed_version


@guarded("spyre-lsp")
def main(argv: Sequence[str] | None = None) -> int:
    """Serve one editor until it says goodbye; returns the exit code."""
    parser = ToolArgumentParser(
        prog="spyre-lsp",
        description="Language server for .mlir files: errors, documentation of ops, definitions of names. An editor "
        "starts it and talks to it by standard input and output. Needs pip install 'spyre-mlir[lsp]'.",
    )
    parser.add_argument("--stdio", action="store_true", help="editors pass it; there is no other way to talk")
    parser.parse_args(argv)
    from spyre_mlir.cli.language.server import make_server

    server = make_server(installed_version())
    # It closes what it talks through; and what anything else prints must not get in between.
    with os.fdopen(os.dup(0), "rb") as given, os.fdopen(os.dup(1), "wb") as said, redirect_stdout(sys.stderr):
        server.start_io(given, said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
