"""Bundle directories, written as a whole or not at all.

Public: ``bundle.mlir`` and one ``sdsc_….json`` per operation; where host steps divide a program into several launches,
these files of each are in a folder of their own: ``launch_0``, ``launch_1``, …. Ours: ``program.mlir`` (what goes to
the device, the launches, what comes back), ``manifest.json`` (what all this is made from), ``weights.safetensors``
(weights as the device has them) and ``data.safetensors`` (tensors as the model has them).
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.digest import digest_of_text
from spyre_mlir.backend.levels import write_levels
from spyre_mlir.backend.manifest import Parts, manifest_text
from spyre_mlir.backend.provenance import Levels
from spyre_mlir.backend.replacing import replacing
from spyre_mlir.backend.split import BUNDLE_FUNCTION, in_folder, launches, public_parts, split_module
from spyre_mlir.backend.stored import (
    BUNDLE_FILE,
    DATA_FILE,
    MANIFEST_FILE,
    PROGRAM_FILE,
    WEIGHTS_FILE,
    StoredBundle,
    read_bundle,
)
from spyre_mlir.backend.tensors import whole, write_tensors
from spyre_mlir.backend.weights import device_weights
from spyre_mlir.backend.write import write_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.errors import InputError
from spyre_mlir.text.map_aliases import text_with_map_names
from spyre_mlir.text.render import module_text

Array = NDArray[Any]


@dataclass(frozen=True)
class WriteOptions:
    """Options for writing a bundle.

    Attributes:
        levels: the same program on the levels above, for the manifest.
        changing: names of tensors that calls change; they have no device form.
        host_weights: whether weights are also written as the model has them, which exact numerics need.
        durable: whether large files are on the disk before the directory is in its place.
        texts: whether the levels are also written as text, which finding a divergence needs.
    """

    levels: Levels = field(default_factory=dict[str, ModuleOp])
    changing: Collection[str] = ()
    host_weights: bool = True
    texts: bool = False
    durable: bool = False


def write_bundle(
    directory: Path, module: ModuleOp, values: Mapping[str, Array], options: WriteOptions | None = None
) -> None:
    """Write a bundle directory, all or nothing.

    Args:
        directory: made, or replaced if it is a bundle directory or empty.
        module: at the superdsc level.
        values: weights and constants by name; asked for one at a time, so they may be made when they are.
        options: what else is known about the program.

    Raises:
        InputError: the directory holds something else, or cannot be written.
        EmitError: the module cannot be written as files.
    """
    split = split_module(module)
    settings = options or WriteOptions()
    with _replacing(directory, durable=settings.durable) as made:
        _write_files(made, split, values, settings)
        if settings.texts:
            write_levels(made, {**settings.levels, "superdsc": module})


def _write_files(
    made: Path,
    split: tuple[ModuleOp, ModuleOp, dict[str, SdscOp]],
    values: Mapping[str, Array],
    options: WriteOptions,
) -> None:
    program, bundle, files = split
    weights = device_weights(program, [name for name in values if name not in options.changing])
    sent = {w.name for w in weights if not options.host_weights}
    data = write_tensors(made / DATA_FILE, [whole(name, values) for name in values if name not in sent])
    starts, digests = dict[str, int](), {DATA_FILE: data.digest}
    if weights:
        written = write_tensors(made / WEIGHTS_FILE, [w.streamed(values) for w in weights])
        starts, digests[WEIGHTS_FILE] = dict(written.starts), written.digest
    for name, text in _texts(program, bundle, files):
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text, encoding="utf-8")
        digests[name] = digest_of_text(text)
    manifest = manifest_text(Parts(program, bundle, files, options.levels, weights, starts, digests))
    (made / MANIFEST_FILE).write_text(manifest, encoding="utf-8")


def _texts(program: ModuleOp, bundle: ModuleOp, files: Mapping[str, SdscOp]) -> Iterator[tuple[str, str]]:
    """The text files of a bundle but its manifest, one after another: place in the directory, and text."""
    yield PROGRAM_FILE, module_text(program) + "\n"
    for folder, part in public_parts(bundle).items():
        yield in_folder(folder, BUNDLE_FILE), text_with_map_names(part) + "\n"
        for name in dict.fromkeys(op.sdsc_filename.data for op in launches(part)):
            yield in_folder(folder, name), write_json(files[name])


def _unwritable(directory: Path, error: OSError) -> InputError:
    return InputError(
        f"the bundle cannot be written: {error.strerror}",
        where=str(directory),
        hint="name a directory that can be created",
    )


def check_replaceable(directory: Path) -> None:
    """Raise InputError if the target of a bundle exists and is not a bundle."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise InputError(
            "a file stands where the bundle directory should be made",
            where=str(directory),
            hint="name another directory",
        )
    names = {p.name for p in directory.iterdir()}
    if names and not names & {BUNDLE_FILE, MANIFEST_FILE}:
        raise InputError(
            "the directory is neither empty nor a bundle, and is left as it is",
            where=str(directory),
            hint="name another directory",
        )


def write_texts(directory: Path, texts: Mapping[str, str]) -> None:
    """Write the text files of a bundle directory, all or nothing.

    Args:
        directory: made, or replaced if it is a bundle directory or empty.
        texts: content by file name.

    Raises:
        InputError: the directory holds something else, or cannot be written.
    """
    with _replacing(directory) as made:
        for name, text in texts.items():
            (made / name).parent.mkdir(exist_ok=True)
            (made / name).write_text(text, encoding="utf-8")


@contextmanager
def _replacing(directory: Path, *, durable: bool = False) -> Generator[Path]:
    """A folder that takes the place of a directory once everything in it is written."""
    try:
        check_replaceable(directory)
        with replacing(directory, durable=durable) as made:
            yield made
    except OSError as error:
        raise _unwritable(directory, error) from error


__all__ = [
    "BUNDLE_FILE",
    "BUNDLE_FUNCTION",
    "StoredBundle",
    "WriteOptions",
    "check_replaceable",
    "read_bundle",
    "split_module",
    "write_bundle",
    "write_texts",
]
