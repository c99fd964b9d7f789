"""Bundle directories, written as a whole or not at all.

Public: ``bundle.mlir`` and one ``sdsc_….json`` per operation; where host steps divide a program into several launches,
these files of each are in a folder of their own: ``launch_0``, ``launch_1``, …. Ours: ``program.mlir`` (what goes to
the device, the launches, what comes back), ``manifest.json`` (what all this is made from), ``weights.safetensors``
(weights as the device has them) and ``data.safetensors`` (tensors as the model has them).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.levels import write_levels
from spyre_mlir.backend.manifest import manifest_text
from spyre_mlir.backend.provenance import Levels
from spyre_mlir.backend.rendered import RenderedBundle, render
from spyre_mlir.backend.split import split_module
from spyre_mlir.backend.stored import (
    BUNDLE_FILE,
    DATA_FILE,
    MANIFEST_FILE,
    PARTS_FILE,
    SIZES_FILE,
    WEIGHTS_FILE,
    StoredBundle,
    read_bundle,
)
from spyre_mlir.backend.tensors import whole, write_tensors
from spyre_mlir.backend.weights import device_weights
from spyre_mlir.backend.whole_files.digest import digest_of_text
from spyre_mlir.backend.whole_files.replacing import replacing
from spyre_mlir.collector import paused_collector
from spyre_mlir.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class WriteOptions:
    """Options for writing a bundle.

    Attributes:
        changing: names of tensors that calls change; they have no device form.
        host_weights: whether weights are also written as the model has them, which exact numerics need.
        texts: the levels that are also written as text, which finding a divergence needs.
        durable: whether large files are on the disk before the directory is in its place.
    """

    changing: Collection[str] = ()
    host_weights: bool = True
    texts: Levels = field(default_factory=dict[str, ModuleOp])
    durable: bool = False


def write_bundle(
    directory: Path,
    bundle: ModuleOp | RenderedBundle,
    values: Mapping[str, Array],
    options: WriteOptions | None = None,
) -> None:
    """Write a bundle directory, all or nothing.

    Args:
        directory: made, or replaced if it is a bundle directory or empty.
        bundle: the module at the superdsc level, or the files that it became.
        values: weights and constants by name; asked for one at a time, so they may be made when they are.
        options: what else is known about the program.

    Raises:
        InputError: the directory holds something else, or cannot be written.
        EmitError: the module cannot be written as files.
    """
    settings = options or WriteOptions()
    with paused_collector():
        rendered = render(bundle, {}) if isinstance(bundle, ModuleOp) else bundle
        with replacing_bundle(directory, durable=settings.durable) as made:
            _write_files(made, rendered, values, settings)
            if settings.texts:
                write_levels(made, settings.texts)


def _write_files(made: Path, bundle: RenderedBundle, values: Mapping[str, Array], options: WriteOptions) -> None:
    held = [name for name in values if name not in options.changing]
    weights = device_weights(bundle.program(), held) if held else []
    sent = {w.name for w in weights if not options.host_weights}
    data = write_tensors(made / DATA_FILE, [whole(name, values) for name in values if name not in sent])
    starts, digests = dict[str, int](), {DATA_FILE: data.digest}
    if weights:
        written = write_tensors(made / WEIGHTS_FILE, [w.streamed(values) for w in weights])
        starts, digests[WEIGHTS_FILE] = dict(written.starts), written.digest
    _write_texts(made, bundle.texts)
    digests |= {name: digest_of_text(text) for name, text in bundle.texts.items()}
    manifest = manifest_text(bundle.manifest, weights, starts, digests)
    (made / MANIFEST_FILE).write_text(manifest, encoding="utf-8")


def _write_texts(made: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text, encoding="utf-8")


def _unwritable(directory: Path, error: OSError) -> InputError:
    return InputError(
        f"the bundle cannot be written: {error.strerror}",
        where=str(directory),
        hint="name a directory that can be created",
    )


def check_replaceable(directory: Path) -> None:
    """Raise InputError if the target of a bundle exists and cannot be replaced by one, or cannot be created."""
    if not directory.exists():
        _check_creatable(directory)
        return
    if not directory.is_dir():
        raise InputError(
            "a file stands where the bundle directory should be made",
            where=str(directory),
            hint="name another directory",
        )
    if directory.resolve() in (here := Path.cwd().resolve(), *here.parents):
        raise InputError(
            "the directory would be exchanged for another one, and the working directory of this process lies in it",
            where=str(directory),
            hint="name a new directory in it, or change to another one",
        )
    names = {p.name for p in directory.iterdir()}
    if names and not names & {BUNDLE_FILE, MANIFEST_FILE, PARTS_FILE, SIZES_FILE}:
        raise InputError(
            "the directory is neither empty nor a bundle, and is left as it is",
            where=str(directory),
            hint="name another directory",
        )


def _check_creatable(directory: Path) -> None:
    above = next(path for path in directory.absolute().parents if path.exists())
    if not above.is_dir():
        raise _unwritable(directory, OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    if not os.access(above, os.W_OK | os.X_OK):
        raise _unwritable(directory, OSError(errno.EACCES, os.strerror(errno.EACCES)))


def write_texts(directory: Path, texts: Mapping[str, str]) -> None:
    """Write the text files of a bundle directory, all or nothing.

    Args:
        directory: made, or replaced if it is a bundle directory or empty.
        texts: content by file name.

    Raises:
        InputError: the directory holds something else, or cannot be written.
    """
    with replacing_bundle(directory) as made:
        _write_texts(made, texts)


@contextmanager
def replacing_bundle(directory: Path, *, durable: bool = False) -> Generator[Path]:
    """Yield a folder that takes the place of a directory once everything in it is written.

    Args:
        directory: made, or replaced if `check_replaceable` lets it.
        durable: as for `replacing`.

    Raises:
        InputError: the directory holds something else, or cannot be written.
    """
    try:
        check_replaceable(directory)
        with replacing(directory, durable=durable) as made:
            yield made
    except OSError as error:
        raise _unwritable(directory, error) from error


__all__ = [
    "BUNDLE_FILE",
    "RenderedBundle",
    "StoredBundle",
    "WriteOptions",
    "check_replaceable",
    "read_bundle",
    "render",
    "replacing_bundle",
    "split_module",
    "write_bundle",
    "write_texts",
]
