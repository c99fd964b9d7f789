"""`spyre-translate`: SuperDSC JSON to MLIR and back, value for value and key for key; and kernels as KTIR."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from spyre_mlir.cli.ktir import translated
from spyre_mlir.cli.output import PendingOutput
from spyre_mlir.cli.report import ToolArgumentParser, add_verbosity, guarded, log_to_stderr
from spyre_mlir.errors import EmitError


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = ToolArgumentParser(
        prog="spyre-translate",
        description="Translate between SuperDSC JSON and the superdsc dialect, without loss; write kernels as KTIR.",
    )
    parser.add_argument("input", nargs="?", default="-", metavar="FILE", help="the file to read; - is standard input")
    direction = parser.add_mutually_exclusive_group(required=True)
    direction.add_argument("--superdsc-to-mlir", action="store_true", help="read SuperDSC JSON, write MLIR")
    direction.add_argument("--mlir-to-superdsc", action="store_true", help="read MLIR, write SuperDSC JSON")
    direction.add_argument("--target", choices=("ktir",), help="read MLIR at the level spyre.kernel, write KTIR")
    parser.add_argument("--older-spaces", action="store_true", help="KTIR: memory spaces as before August 2026")
    parser.add_argument(
        "-o", "--output", default="-", metavar="FILE", help="the file to write (default: standard output)"
    )
    parser.add_argument("--print-op-generic", action="store_true", help="write MLIR in the generic format")
    add_verbosity(parser)
    return parser.parse_args(argv)


@guarded("spyre-translate")
def main(argv: Sequence[str] | None = None) -> int:
    """Translates one file; returns the exit code."""
    options = _arguments(argv)
    log_to_stderr(options.verbose)
    pending = None if options.output == "-" else PendingOutput(options.output)
    text, name = _read(options.input)
    if options.target is not None:
        result = translated(text, name, older_spaces=options.older_spaces)
    elif options.superdsc_to_mlir:
        result = _mlir(text, name, generic=options.print_op_generic)
    else:
        result = _superdsc(text, name)
    if pending is None:
        sys.stdout.write(result)
    else:
        pending.write(result)
        pending.close()
        pending.commit()
    return 0


def _read(path: str) -> tuple[bytes, str]:
    if path == "-":
        return sys.stdin.buffer.read(), "<stdin>"
    with open(path, "rb") as file:
        return file.read(), path


def _mlir(text: bytes, name: str, *, generic: bool) -> str:
    from xdsl.dialects.builtin import ModuleOp

    from spyre_mlir.backend.read import read_json
    from spyre_mlir.text.render import decode, module_text

    return module_text(ModuleOp([read_json(decode(text, name), name)]), generic=generic) + "\n"


def _superdsc(text: bytes, name: str) -> str:
    from spyre_mlir.backend.write import write_json
    from spyre_mlir.dialects.superdsc.ops import SdscOp
    from spyre_mlir.text.render import parse_module, verify_module
    from spyre_mlir.universe import make_context

    module = parse_module(text, make_context(), name)
    verify_module(module)
    sdscs = [op for op in module.walk() if isinstance(op, SdscOp)]
    if len(sdscs) != 1:
        names = ", ".join(f"@{op.sym_name.data}" for op in sdscs[:3]) + (" …" if len(sdscs) > 3 else "")
        raise EmitError(
            f"a SuperDSC file holds one superdsc.sdsc, this module has {len(sdscs)}{f': {names}' if names else ''}",
            where=name,
            hint="give every superdsc.sdsc a file of its own" if sdscs else "lower the module to the superdsc level",
        )
    return write_json(sdscs[0])


if __name__ == "__main__":
    sys.exit(main())
