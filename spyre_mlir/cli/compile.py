"""`spyre-compile`: a saved PyTorch program becomes a bundle directory."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from spyre_mlir.cli.report import ToolArgumentParser, guarded


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = ToolArgumentParser(prog="spyre-compile", description="Compile a saved PyTorch program for Spyre.")
    parser.add_argument("model", metavar="MODEL.pt2", help="a program saved by torch.export.save")
    parser.add_argument("-o", "--output", metavar="DIR", help="the bundle directory to write")
    parser.add_argument(
        "--emit", metavar="LEVEL", help="print a level instead: aten, spyre.loop, spyre.kernel, superdsc"
    )
    parser.add_argument(
        "--addresses",
        choices=("symbolic", "concrete"),
        default="symbolic",
        help="symbolic binds addresses at run time (default); concrete writes them into the files",
    )
    arguments = parser.parse_args(argv)
    if (arguments.output is None) == (arguments.emit is None):
        parser.error("give either -o DIR or --emit LEVEL")
    return arguments


@guarded("spyre-compile")
def run(argv: Sequence[str] | None = None) -> int:
    """Compiles one program; see ``spyre-compile --help``."""
    arguments = _arguments(argv)
    from spyre_mlir.pipeline import check_level

    if arguments.emit is not None:
        check_level(arguments.emit)
    from spyre_mlir.api import compile_program

    compiled = compile_program(Path(arguments.model), addresses=arguments.addresses)
    if arguments.emit is not None:
        sys.stdout.write(compiled.mlir(arguments.emit) + "\n")
        return 0
    directory = compiled.save(arguments.output)
    sys.stdout.write(f"{compiled.report()}\nwrote {directory}\n")
    return 0


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    sys.exit(run(argv))


if __name__ == "__main__":
    main()
