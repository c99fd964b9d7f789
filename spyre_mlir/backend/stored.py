"""Reading of bundle directories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.backend.manifest import Manifest, read_manifest
from spyre_mlir.backend.split import folder_of, launches
from spyre_mlir.backend.tensors import map_tensor, read_tensors, tensor_names
from spyre_mlir.backend.twins import read_descriptor
from spyre_mlir.backend.whole_files.contained import contained
from spyre_mlir.dialects.places import Source, location_of
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION, TENSORS
from spyre_mlir.dialects.spyre.kernel import LaunchOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.dialects.target import set_target, spec_at
from spyre_mlir.errors import ReadError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.text.render import parse_module, verify_module

BUNDLE_FILE = "bundle.mlir"
PROGRAM_FILE = "program.mlir"
MANIFEST_FILE = "manifest.json"
WEIGHTS_FILE = "weights.safetensors"
DATA_FILE = "data.safetensors"
PARTS_FILE = "parts.json"  # of a model in parts, each a bundle directory of its own
SIZES_FILE = "sizes.json"  # of a model with symbols

Array = NDArray[Any]


@dataclass
class StoredBundle:
    """A bundle directory that has been read; JSON files and tensors are read when first needed.

    Attributes:
        directory: where it is.
        program: the host program, or None in a bundle that others wrote.
        bundle: module of the bundle functions, one per launch of the program; what they run has its place in the model
            as location.
        manifest: what the bundle is made from; empty in a bundle that others wrote.
        folders: where each SuperDSC file is.
    """

    directory: Path
    program: ModuleOp | None
    bundle: ModuleOp
    manifest: Manifest = field(default_factory=Manifest)
    folders: Mapping[str, Path] = field(default_factory=dict[str, Path])
    _read: dict[str, Descriptor] = field(default_factory=dict[str, Descriptor])
    _folder: tuple[int, int] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Remembers the folder, as another one may get its name before all files are read."""
        self._folder = _identity(self.directory)

    def descriptor(self, filename: str) -> Descriptor:
        """Return the descriptor of a SuperDSC file.

        Raises:
            ReadError: the file is missing, no SuperDSC, or contradicts itself.
        """
        if filename not in self._read:
            self._check_place()
            path = contained(self.folders.get(filename, self.directory), filename)
            try:
                self._read[filename] = read_descriptor(path, spec_at(self.bundle))
            except ReadError as error:
                if str(path) not in (error.where or ""):
                    error.where = f"{path}: {error.where}" if error.where else str(path)
                error.hint = error.hint or "write the bundle again"
                raise
        return self._read[filename]

    def values(self) -> dict[str, Array]:
        """Return tensors by name in the model's form; none if the bundle has no data file.

        Raises:
            ReadError: the data file cannot be read.
        """
        self._check_place()
        return read_tensors(contained(self.directory, DATA_FILE))

    def weights(self) -> dict[int, Callable[[], Array]]:
        """Return the stored device weights as [sticks, lanes]: per launch buffer, what maps its tensor."""
        return {number: partial(self._weight, key) for number, (_, key) in self.manifest.weights.items()}

    def _weight(self, key: str) -> Array:
        self._check_place()
        return map_tensor(contained(self.directory, WEIGHTS_FILE), key)

    def weight_names(self) -> set[str]:
        """Names of the weights stored in device form."""
        return {name for name, _ in self.manifest.weights.values()}

    def _check_place(self) -> None:
        """A file of another program beside those that were read would give wrong numbers."""
        if _identity(self.directory) not in (None, self._folder):  # of one that is gone, the missing file is told
            raise ReadError(
                "another bundle has been written in the place of the one that was read, whose files are needed now",
                where=str(self.directory),
                hint="load it again, and call it once before it is replaced",
            )


def _identity(directory: Path) -> tuple[int, int] | None:
    """Return what tells a folder from the one that replaces it; editing a file changes nothing about it."""
    try:
        found = directory.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def runs_exactly(directory: Path) -> bool:
    """Return whether a bundle directory has no weight in device form only, which exact numerics have no use for.

    Raises:
        ReadError: the manifest or the data file cannot be read.
    """
    manifest, data = read_manifest(contained(directory, MANIFEST_FILE)), contained(directory, DATA_FILE)
    sent = {name for name, _ in manifest.weights.values()}
    return not sent or (data.exists() and sent <= set(tensor_names(data)))


def read_bundle(directory: Path, context: Context, parsed: Mapping[Path, ModuleOp] | None = None) -> StoredBundle:
    """Read the programs of a bundle directory, and check that the files it names exist.

    Args:
        directory: the bundle.
        context: knows the dialects of its files.
        parsed: modules of files that the caller has read and verified, and has no more use for.

    Raises:
        ReadError: a file is missing or is not what its name says.
    """
    if not directory.is_dir():
        raise ReadError("no such bundle directory", where=str(directory), hint="name a directory with a bundle.mlir")
    check_one_program(directory)
    if not any((directory / name).exists() for name in (PROGRAM_FILE, BUNDLE_FILE)):
        message = f"this directory is no bundle: it has neither {BUNDLE_FILE} nor {PROGRAM_FILE}"
        raise ReadError(
            message, where=str(directory), hint="name the directory that save, or spyre-compile -o, has written"
        )
    program_file = contained(directory, PROGRAM_FILE)
    known = parsed or {}
    program = _module_of(directory / PROGRAM_FILE, program_file, context, known) if program_file.exists() else None
    manifest = read_manifest(contained(directory, MANIFEST_FILE))
    bundle, folders = _read_public(directory, program, context, known)
    named = [op.sdsc_filename.data for op in launches(bundle)]
    for file, folder in folders.items():
        _check_there(folder, file, BUNDLE_FILE, "runs")
    if manifest.weights:
        _check_there(directory, WEIGHTS_FILE, MANIFEST_FILE, "names")
    _tell_places(bundle, manifest, named)
    _tell_calls(program, manifest)
    return StoredBundle(directory, program, bundle, manifest, folders)


def is_parted(directory: Path) -> bool:
    """Return whether a directory has a model in parts."""
    return (directory / PARTS_FILE).is_file()


def check_one_program(directory: Path) -> None:
    """Check that a directory is none of a model of several programs, where one bundle is needed.

    Raises:
        ReadError: it is one.
    """
    if is_parted(directory):
        raise ReadError(
            "data divides this model into parts, of which each is a program of its own",
            where=str(directory),
            hint="spyre-run and spyre_mlir.load take it; its folders are bundle directories",
        )
    if (directory / SIZES_FILE).is_file():
        raise ReadError(
            "this model has symbols, and a program for each size",
            where=str(directory),
            hint="spyre_mlir.load(directory) runs it; .specialize(s0=…).save(…) writes the bundle of one size",
        )


def _check_there(folder: Path, name: str, by: str, how: str) -> None:
    if not contained(folder, name).is_file():
        raise ReadError(f"{by} {how} {name}, which is not there", where=str(folder), hint="write the bundle again")


def launch_folders(directory: Path, program: ModuleOp | None) -> dict[str, Path]:
    """Return the folders of the bundle functions that a host program launches; the directory itself for one."""
    if program is None or (directory / BUNDLE_FILE).exists():
        return {BUNDLE_FUNCTION: directory}
    names = [op.bundle.root_reference.data for op in program.walk() if isinstance(op, LaunchOp)]
    return {n: directory if n == BUNDLE_FUNCTION else contained(directory, folder_of(n)) for n in names}


def _module_of(path: Path, contained_path: Path, context: Context, known: Mapping[Path, ModuleOp]) -> ModuleOp:
    return known[path] if path in known else read_module(contained_path, context)


def _read_public(
    directory: Path, program: ModuleOp | None, context: Context, known: Mapping[Path, ModuleOp]
) -> tuple[ModuleOp, dict[str, Path]]:
    """The bundle functions as one module, each under the name it is launched by, and the folder of every file."""
    functions: list[Operation] = []
    folders: dict[str, Path] = {}
    spec = SPYRE
    for name, folder in launch_folders(directory, program).items():
        module = _module_of(folder / BUNDLE_FILE, contained(folder, BUNDLE_FILE), context, known)
        spec = spec_at(module)
        for file in (op.sdsc_filename.data for op in launches(module)):
            if folders.setdefault(file, folder) != folder:
                raise ReadError(f"two launches have a file {file}", where=str(folder), hint="write the bundle again")
        for op in list(module.ops):
            op.detach()
            if isinstance(op, FuncOp) and op.sym_name.data == BUNDLE_FUNCTION:
                op.sym_name = StringAttr(name)
            functions.append(op)
    joined = ModuleOp(functions)
    set_target(joined, spec)
    return joined, folders


def _tell_places(bundle: ModuleOp, manifest: Manifest, named: list[str]) -> None:
    """Gives launches their places in the model and the names of their tensors, unless the bundle was changed since."""
    if [file for file, _ in manifest.launches] != named:
        return
    for op, (_, source), tensors in zip(launches(bundle), manifest.launches, manifest.tensors, strict=True):
        if source:
            op.location = location_of(source)
        if tensors:
            op.attributes[TENSORS] = ArrayAttr([StringAttr(name) for name in tensors])


def _tell_calls(program: ModuleOp | None, manifest: Manifest) -> None:
    """Gives the launches of a host program the modules of the model that they stand for."""
    calls = [] if program is None else [op for op in program.walk() if isinstance(op, LaunchOp)]
    for op, module in zip(calls, manifest.calls, strict=False):
        if module and len(calls) == len(manifest.calls):
            op.location = location_of(Source(module=module))


def read_module(path: Path, context: Context) -> ModuleOp:
    """Return the module of a file of a bundle.

    Raises:
        ReadError: the file cannot be read, is no MLIR, or does not verify.
    """
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
