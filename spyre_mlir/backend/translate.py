"""The public files of a bundle directory as one module, and back: `bundle.mlir` and its SuperDSC files."""

from __future__ import annotations

from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError

from spyre_mlir.backend.directory import BUNDLE_FILE, write_texts
from spyre_mlir.backend.read import read_json
from spyre_mlir.backend.split import in_folder, launches, public_parts
from spyre_mlir.backend.stored import PROGRAM_FILE, launch_folders, read_module
from spyre_mlir.backend.whole_files.contained import contained
from spyre_mlir.backend.write import write_json
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION, SdscExecuteOp
from spyre_mlir.dialects.superdsc import JsonAttr, SdscOp
from spyre_mlir.dialects.target import module_like, set_target, spec_at
from spyre_mlir.errors import EmitError, ReadError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.text.render import module_text, parse_module

FILE = "superdsc.file"
"""Attribute of a `superdsc.sdsc` that names its file in the bundle."""


def directory_to_module(directory: Path, context: Context) -> ModuleOp:
    """Read the SuperDSC files and then the bundle functions of a directory into a module, each with its file name.

    A program of several launches has a folder for each; what the host does between them is no part of the module.

    Raises:
        ReadError: a file is missing, or is not what its name says.
    """
    program = directory / PROGRAM_FILE
    alone = (directory / BUNDLE_FILE).exists() or not program.exists()
    folders = launch_folders(directory, None if alone else read_module(program, context))
    sdscs: list[SdscOp] = []
    functions: list[Operation] = []
    symbols: set[str] = set()
    spec = SPYRE
    for name, folder in folders.items():
        bundle = _parsed(contained(folder, BUNDLE_FILE), context)
        spec = spec_at(bundle)
        launched = (op.sdsc_filename.data for op in bundle.walk() if isinstance(op, SdscExecuteOp))
        for file in dict.fromkeys([*launched, *sorted(one.name for one in folder.glob("sdsc_*.json"))]):
            op = read_json(contained(folder, file), spec=spec)
            op.attributes[FILE] = StringAttr(file)
            _make_unique(op, symbols)
            sdscs.append(op)
        for op in list(bundle.ops):
            op.detach()
            if isinstance(op, FuncOp) and op.sym_name.data == BUNDLE_FUNCTION:
                op.sym_name = StringAttr(name)
            functions.append(op)
    module = ModuleOp([*sdscs, *functions])
    set_target(module, spec)
    return module


def _parsed(path: Path, context: Context) -> ModuleOp:
    try:
        return parse_module(path.read_bytes(), context, str(path))
    except OSError as error:
        raise ReadError(f"cannot read the file: {error.strerror}", where=str(path)) from error
    except ParseError as error:
        raise ReadError(f"the file is no MLIR: {error.msg}", where=str(error.span.get_location())) from error


def _make_unique(op: SdscOp, symbols: set[str]) -> None:
    """Two files may have the same root key, two symbols of a module may not be called the same."""
    symbol, number = op.sym_name.data, 0
    while op.sym_name.data in symbols:
        number += 1
        op.root = JsonAttr.of(op.root_key)
        op.sym_name = StringAttr(f"{symbol}.{number}")
    symbols.add(op.sym_name.data)


def module_to_directory(module: ModuleOp, directory: Path, where: str) -> None:
    """Write the bundle function and the SuperDSCs of a module as the public files of a bundle.

    Args:
        module: a verified module.
        directory: made, or replaced if it is a bundle directory or empty.
        where: the module's name, for errors.

    Raises:
        EmitError: the module is no bundle, or two of its files have one name.
        InputError: the directory holds something else, or cannot be written.
    """
    sdscs = [op for op in module.ops if isinstance(op, SdscOp)]
    functions = [op.clone() for op in module.ops if isinstance(op, FuncOp)]
    known = all(op.sym_name.data.startswith(BUNDLE_FUNCTION) for op in functions)
    if not functions or len(sdscs) + len(functions) != len(list(module.ops)) or not known:
        others = [f"@{f.sym_name.data}" for f in functions if not f.sym_name.data.startswith(BUNDLE_FUNCTION)]
        others += [op.name for op in module.ops if not isinstance(op, (SdscOp, FuncOp))]
        raise EmitError(
            f"a bundle is a function @{BUNDLE_FUNCTION} and its SuperDSCs; this module has {len(functions)} functions "
            f"and {len(sdscs)} SuperDSCs" + (f", and {', '.join(others[:3])}" if others else ""),
            where=where,
            hint="spyre-compile -o DIR writes programs that have a host part",
        )
    parts = public_parts(module_like(module, functions))
    texts = {in_folder(folder, BUNDLE_FILE): module_text(part) + "\n" for folder, part in parts.items()}
    homes = {op.sdsc_filename.data: folder for folder, part in parts.items() for op in launches(part)}
    for op in sdscs:
        name = file_name(op)
        path = in_folder(homes.get(name, next(iter(parts))), name)
        if path in texts or Path(name).name != name or name in ("", ".", ".."):
            raise EmitError(
                f"@{op.sym_name.data} cannot be written as {name!r}", where=where, hint=f"give it another {FILE}"
            )
        texts[path] = write_json(op)
    write_texts(directory, texts)


def file_name(op: SdscOp) -> str:
    """Return the file name of an op: that of the file it was read from, or the one its root key implies."""
    given = op.attributes.get(FILE)
    if isinstance(given, StringAttr):
        return given.data
    index, _, function = op.root_key.partition("_")
    digits = index.isascii() and index.isdigit()
    return op.generation.file_name(int(index), function) if digits else f"sdsc_{op.sym_name.data}.json"
