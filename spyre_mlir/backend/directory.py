"""Bundle directories: the public files, and beside them the host program and the tensors it was made with.

Public: ``bundle.mlir`` and one ``sdsc_….json`` per operation. Ours: ``program.mlir`` (what goes to the device, the
launch, what comes back) and ``data.safetensors`` (weights and constants by name, in host form).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.backend.read import read_json
from spyre_mlir.backend.write import write_json
from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.dialects.superdsc.describe import describe
from spyre_mlir.dialects.superdsc.descriptor import Descriptor
from spyre_mlir.dialects.superdsc.ops import SdscOp
from spyre_mlir.errors import EmitError, InputError, ReadError
from spyre_mlir.text.render import module_text, parse_module, verify_module

BUNDLE_FILE = "bundle.mlir"
PROGRAM_FILE = "program.mlir"
DATA_FILE = "data.safetensors"
BUNDLE_FUNCTION = "sdsc_bundle"

Array = NDArray[Any]


def split_module(module: ModuleOp) -> tuple[ModuleOp, ModuleOp, dict[str, SdscOp]]:
    """The host program, the bundle function, and the SuperDSCs of a module, by file name.

    Raises:
        EmitError: the module is not at the superdsc level.
    """
    sdscs = [op for op in module.ops if isinstance(op, SdscOp)]
    launches = [op for op in module.walk() if isinstance(op, SdscExecuteOp)]
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
    if BUNDLE_FUNCTION not in functions or len(launches) != len(sdscs):
        raise EmitError(
            f"a bundle needs a function @{BUNDLE_FUNCTION} that runs every SuperDSC once; this module has "
            f"{len(sdscs)} SuperDSCs and {len(launches)} launches",
            hint="lower it to the superdsc level",
        )
    files = {launch.sdsc_filename.data: sdsc for launch, sdsc in zip(launches, sdscs, strict=True)}
    host = [f.clone() for name, f in functions.items() if name != BUNDLE_FUNCTION]
    program = ModuleOp(Region(Block(host)), attributes=dict(module.attributes), sym_name=module.sym_name)
    return program, ModuleOp([functions[BUNDLE_FUNCTION].clone()]), files


def write_bundle(directory: Path, module: ModuleOp, values: Mapping[str, Array]) -> None:
    """Writes a bundle directory as a whole or not at all.

    Args:
        directory: made, or replaced if it is a bundle directory or empty.
        module: at the superdsc level.
        values: weights and constants by name.

    Raises:
        InputError: the directory holds something else, or cannot be written.
        EmitError: the module cannot be written as files.
    """
    program, bundle, files = split_module(module)
    texts = {PROGRAM_FILE: module_text(program) + "\n", BUNDLE_FILE: module_text(bundle) + "\n"}
    texts |= {name: write_json(op) for name, op in files.items()}
    check_replaceable(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    except OSError as error:
        raise _unwritable(directory, error) from error
    try:
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        _write_values(made / DATA_FILE, values)
        made.chmod(0o755)
        _replace(made, directory)
    except OSError as error:
        raise _unwritable(directory, error) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _unwritable(directory: Path, error: OSError) -> InputError:
    return InputError(
        f"the bundle cannot be written: {error.strerror}",
        where=str(directory),
        hint="name a directory that can be made",
    )


def check_replaceable(directory: Path) -> None:
    """Raises InputError if something other than a bundle stands where one is to be written."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise InputError(
            "a file stands where the bundle directory should be made",
            where=str(directory),
            hint="name another directory",
        )
    names = {p.name for p in directory.iterdir()}
    if names and BUNDLE_FILE not in names:
        raise InputError(
            "the directory is neither empty nor a bundle, and is left as it is",
            where=str(directory),
            hint="name another directory",
        )


def write_texts(directory: Path, texts: Mapping[str, str]) -> None:
    """Writes the text files of a bundle directory as a whole or not at all.

    Args:
        directory: made, or replaced if it is a bundle directory or empty.
        texts: content by file name.

    Raises:
        InputError: the directory holds something else, or cannot be written.
    """
    check_replaceable(directory)
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    except OSError as error:
        raise _unwritable(directory, error) from error
    try:
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        made.chmod(0o755)
        _replace(made, directory)
    except OSError as error:
        raise _unwritable(directory, error) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _replace(made: Path, directory: Path) -> None:
    """Puts the finished directory in its place; an old one goes only when the new one stands."""
    if not directory.exists():
        made.rename(directory)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{directory.name}-old-", dir=directory.parent)) / "bundle"
    directory.rename(old)
    try:
        made.rename(directory)
    except OSError:
        old.rename(directory)
        raise
    finally:
        shutil.rmtree(old.parent, ignore_errors=True)


def _write_values(path: Path, values: Mapping[str, Array]) -> None:
    import numpy as np
    from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType] # the library has no full types

    save_file({name: np.ascontiguousarray(value) for name, value in values.items()}, os.fspath(path))
    path.chmod(0o644)  # the library makes it for its owner alone


@dataclass
class StoredBundle:
    """A bundle directory that has been read; JSON files are read when they first run.

    Attributes:
        directory: where it is.
        program: the host program, or None in a bundle that others wrote.
        bundle: the bundle function's module.
    """

    directory: Path
    program: ModuleOp | None
    bundle: ModuleOp
    _read: dict[str, Descriptor] = field(default_factory=dict[str, Descriptor])

    def descriptor(self, filename: str) -> Descriptor:
        """What a SuperDSC file says.

        Raises:
            ReadError: the file is missing, no SuperDSC, or contradicts itself.
        """
        if filename not in self._read:
            path = self.directory / filename
            try:
                self._read[filename] = describe(read_json(path))
            except ReadError as error:
                if str(path) not in (error.where or ""):
                    error.where = f"{path}: {error.where}" if error.where else str(path)
                error.hint = error.hint or "write the bundle again"
                raise
        return self._read[filename]

    def values(self) -> dict[str, Array]:
        """Weights and constants by name; none if the bundle has no data file.

        Raises:
            ReadError: the data file cannot be read.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType] # the library has no full types

        path = self.directory / DATA_FILE
        if not path.exists():
            return {}
        try:
            return load_file(os.fspath(path))
        except (SafetensorError, OSError) as error:
            raise ReadError(
                f"the tensors cannot be read: {error}", where=str(path), hint="write the bundle again"
            ) from error


def read_bundle(directory: Path, context: Context) -> StoredBundle:
    """Reads the programs of a bundle directory, and checks that the files it names are there.

    Raises:
        ReadError: a file is missing or is not what its name says.
    """
    if not directory.is_dir():
        raise ReadError("no such bundle directory", where=str(directory), hint="name a directory with a bundle.mlir")
    bundle = _read_module(directory / BUNDLE_FILE, context)
    program = _read_module(directory / PROGRAM_FILE, context) if (directory / PROGRAM_FILE).exists() else None
    for op in bundle.walk():
        if isinstance(op, SdscExecuteOp) and not (directory / op.sdsc_filename.data).is_file():
            raise ReadError(
                f"{BUNDLE_FILE} runs {op.sdsc_filename.data}, which is not there",
                where=str(directory),
                hint="write the bundle again",
            )
    return StoredBundle(directory, program, bundle)


def _read_module(path: Path, context: Context) -> ModuleOp:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ReadError(
            f"the file cannot be read: {error.strerror}", where=str(path), hint="write the bundle again"
        ) from error
    try:
        module = parse_module(text, context, str(path))
        verify_module(module)
    except ParseError as error:
        raise ReadError(
            f"the file is no MLIR: {error.msg}", where=str(error.span.get_location()), hint="write the bundle again"
        ) from error
    except VerifyException as error:
        raise ReadError(
            f"the program does not verify: {error}", where=str(path), hint="write the bundle again"
        ) from error
    return module
