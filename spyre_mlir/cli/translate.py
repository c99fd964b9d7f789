"""`spyre-translate`: SuperDSC JSON and bundles to MLIR and back, their check beyond the schema, kernels to KTIR."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spyre_mlir.cli.support.endings import DONE, INPUT_ERROR, ToolArgumentParser, add_verbosity, guarded, log_to_stderr
from spyre_mlir.cli.support.findings import findings_json, print_findings
from spyre_mlir.cli.support.memory_limit import add_memory_limit, limit_memory
from spyre_mlir.cli.support.output import PendingOutput, json_place
from spyre_mlir.cli.translate_ktir import deliver, ktir_module, pending_ktir
from spyre_mlir.errors import EmitError, InputError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_STREAM = "-"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = ToolArgumentParser(
        prog="spyre-translate",
        description="Translate between SuperDSC JSON and the superdsc dialect, without loss, check SuperDSC files, "
        "or write kernels as KTIR.",
    )
    parser.add_argument(
        "input",
        nargs="?",
        default=_STREAM,
        metavar="FILE|DIR",
        help="the file or bundle directory to read; - is standard input",
    )
    direction = parser.add_mutually_exclusive_group(required=True)
    direction.add_argument("--superdsc-to-mlir", action="store_true", help="read SuperDSC JSON or a bundle, write MLIR")
    direction.add_argument("--mlir-to-superdsc", action="store_true", help="read MLIR, write SuperDSC JSON or a bundle")
    direction.add_argument("--target", choices=("ktir",), help="read MLIR at the level spyre.kernel, write KTIR")
    direction.add_argument("--check", action="store_true", help="list every rule that a file or a bundle violates")
    parser.add_argument(
        "-o",
        "--output",
        default=_STREAM,
        metavar="FILE|DIR",
        help="the file to write (default: standard output), or the directory for a bundle",
    )
    parser.add_argument("--older-spaces", action="store_true", help="KTIR: memory spaces as before August 2026")
    parser.add_argument("--split", action="store_true", help="KTIR: a module per function, NAME.mlir in a directory")
    parser.add_argument("--print-op-generic", action="store_true", help="write MLIR in the generic format")
    parser.add_argument(
        "--json",
        metavar="FILE.json",
        help="--check: also write what it found; - is stdout, and the rest goes to stderr",
    )
    add_memory_limit(parser)
    add_verbosity(parser)
    return parser.parse_args(argv)


@guarded("spyre-translate")
def main(argv: Sequence[str] | None = None) -> int:
    """Translate or check one file or one bundle; return the exit code."""
    options = _arguments(argv)
    log_to_stderr(options.verbose)
    limit_memory(options.memory_limit)
    _refuse_idle(options)
    if options.check:
        with json_place(options.json) as file:
            return _check(options.input, None if file is None else PendingOutput(file))
    if options.target is not None:
        pending = pending_ktir(options.output, split=options.split)
        module = ktir_module(*_read(options.input))
        said = deliver(module, pending, split=options.split, older_spaces=options.older_spaces)
        sys.stdout.write(said if pending is None else "")
        return DONE
    module = _read_module(options.input) if options.mlir_to_superdsc else None
    to_directory = options.output != _STREAM and Path(options.output).suffix != ".json"
    if module is not None and to_directory and _is_bundle(module):
        return _write_bundle(module, options.output, options.input)
    if module is None:
        return _deliver(options.output, lambda: _mlir(options.input, generic=options.print_op_generic))
    return _deliver(options.output, lambda: _superdsc(module, options.input))


def _refuse_idle(options: argparse.Namespace) -> None:
    """Refuses options that mean nothing in this direction."""
    if options.check and options.output != _STREAM:
        raise InputError("--check writes no file", hint="leave out -o; --json FILE.json writes what it found")
    if options.json is not None and not options.check:
        raise InputError("--json is for the findings of --check", hint="add --check, or leave it out")
    for name in ("split", "older_spaces"):
        flag = f"--{name.replace('_', '-')}"
        if getattr(options, name) and options.target is None:
            raise InputError(f"{flag} is about KTIR", hint=f"add --target=ktir, or leave out {flag}")
    if options.print_op_generic and not options.superdsc_to_mlir:
        hint = "add --superdsc-to-mlir; spyre-opt --print-op-generic prints any module"
        raise InputError("--print-op-generic is about the MLIR of SuperDSC files", hint=hint)


def _deliver(output: str, make: Callable[[], str]) -> int:
    """Writes a text as a whole: an output that cannot be written is refused before the work."""
    pending = None if output == _STREAM else PendingOutput(output)
    result = make()
    if pending is None:
        sys.stdout.write(result)
    else:
        pending.deliver(result)
    return DONE


def _read(path: str) -> tuple[bytes, str]:
    if path == _STREAM:
        return sys.stdin.buffer.read(), "<stdin>"
    with open(path, "rb") as file:
        return file.read(), path


def _mlir(path: str, *, generic: bool) -> str:
    """MLIR text of a SuperDSC file or of a bundle directory."""
    from xdsl.dialects.builtin import ModuleOp

    from spyre_mlir.backend.json_file import suggesting
    from spyre_mlir.backend.read import read_json
    from spyre_mlir.backend.translate import directory_to_module
    from spyre_mlir.text.render import decode, module_text
    from spyre_mlir.universe import make_context

    if path != _STREAM and Path(path).is_dir():
        module = directory_to_module(Path(path), make_context())
    else:
        text, name = _read(path)
        with suggesting("name a SuperDSC file; spyre-translate --check FILE lists what is wrong with it"):
            module = ModuleOp([read_json(decode(text, name), name)])
    return module_text(module, generic=generic) + "\n"


def _read_module(path: str) -> ModuleOp:
    from spyre_mlir.text.render import parse_module, verify_module
    from spyre_mlir.universe import make_context

    text, name = _read(path)
    module = parse_module(text, make_context(), name)
    verify_module(module)
    return module


def _is_bundle(module: ModuleOp) -> bool:
    from spyre_mlir.dialects.ir.functions import functions_by_name
    from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION

    return BUNDLE_FUNCTION in functions_by_name(module)


def _write_bundle(module: ModuleOp, output: str, name: str) -> int:
    from spyre_mlir.backend.translate import module_to_directory

    module_to_directory(module, Path(output), name)
    return DONE


def _superdsc(module: ModuleOp, name: str) -> str:
    from spyre_mlir.backend.write import write_json
    from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp

    sdscs = [op for op in module.walk() if isinstance(op, SdscOp)]
    if len(sdscs) != 1:
        names = ", ".join(f"@{op.sym_name.data}" for op in sdscs[:3]) + (" …" if len(sdscs) > 3 else "")
        raise EmitError(
            f"a SuperDSC file holds one superdsc.sdsc, this module has {len(sdscs)}{f': {names}' if names else ''}",
            where=name,
            hint="give every superdsc.sdsc a file of its own, or write a bundle with -o DIR"
            if sdscs
            else "lower the module to the superdsc level",
        )
    return write_json(sdscs[0])


def _check(path: str, pending: PendingOutput | None) -> int:
    """Print the violations in a file, a bundle or standard input, and write them to `pending`; 1 if one is an error."""
    from spyre_mlir.backend.check import Severity, check_path, check_text
    from spyre_mlir.text.render import decode
    from spyre_mlir.universe import make_context

    if path == _STREAM:
        text, name = _read(path)
        findings = check_text(decode(text, name), name)
    else:
        findings = check_path(Path(path), make_context())
    print_findings(findings)
    if pending is not None:
        pending.deliver(findings_json(findings))
    return INPUT_ERROR if any(finding.severity is Severity.ERROR for finding in findings) else DONE


if __name__ == "__main__":
    sys.exit(main())
