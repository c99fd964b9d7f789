"""A model with symbols as a directory: the program as torch exported it, and what was lowered for single sizes.

``program.pt2`` has the weights as they are, and what programs are specialised from; ``sizes.json`` says how it was
compiled, and of which buckets the proof is known; ``lowered`` has what was lowered so far, without weights, found by
all that lowering depends on; ``apart_0``, … are bundle directories for sizes that torch treats apart, as 1.

Decision: docs/decisions/0196-saved-symbols-are-lowered-once.md
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.backend.directory import replacing_bundle
from spyre_mlir.backend.json_file import dump_text, record_in
from spyre_mlir.backend.stored import SIZES_FILE
from spyre_mlir.cache.store import Store
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.exported import (
    AGAIN,
    EXPORTED_FILE,
    check_digests,
    choices_as_json,
    choices_from_json,
    digests_of,
)

if TYPE_CHECKING:
    from spyre_mlir.dialects.superdsc.model.json_value import Json

# Values of all symbols, sorted by name.
SizesKey = tuple[tuple[str, int], ...]

_FORMAT, _VERSION = "spyre-mlir model with symbols", 1
_LOWERED = "lowered"


@dataclass(frozen=True)
class SavedSizes:
    """Contents of a directory with a model with symbols, besides the program.

    Attributes:
        specializations: how many programs are kept.
        choices: the options that it was compiled with, without those about calls.
        buckets: sizes that calls are padded to.
        proved: keys of the programs of buckets that the proof has held for.
        apart: bundle directories of programs for sizes that torch treats apart, by these sizes.
        lowered: what was lowered.
    """

    specializations: int
    choices: Mapping[str, Any]
    buckets: Sequence[int]
    proved: frozenset[str]
    apart: Mapping[SizesKey, Path]
    lowered: Store


@dataclass(frozen=True)
class ToSave:
    """Contents of a directory to be written.

    Attributes:
        exported: the program as torch exported it, with its tensors as they are.
        specializations: how many programs are kept.
        choices: the options that it was compiled with, without those about calls.
        buckets: programs by the sizes that calls are padded to.
        programs: those of other sizes.
        apart: those for sizes that torch treats apart, by these sizes.
        before: what was lowered before the model was loaded.
    """

    exported: Any
    specializations: int
    choices: Mapping[str, Any]
    buckets: Mapping[int, CompiledModel]
    programs: Iterable[CompiledModel]
    apart: Mapping[SizesKey, CompiledModel]
    before: Store | None = None


def is_dynamic(directory: Path) -> bool:
    """Return whether a directory has a model with symbols."""
    return (directory / SIZES_FILE).is_file()


def write_sizes(directory: Path, model: ToSave) -> None:
    """Write a model with symbols, all or nothing.

    Args:
        directory: made, or replaced if it is a directory of a compiled model or empty.
        model: what is written.

    Raises:
        InputError: the directory holds something else or cannot be written, or torch cannot write the program.
    """
    from spyre_mlir.frontend import write_exported

    with replacing_bundle(directory, durable=True) as made:
        write_exported(model.exported, made / EXPORTED_FILE)
        (made / _LOWERED).mkdir()
        for path in () if model.before is None else model.before.paths():
            shutil.copy(path, made / _LOWERED)
        proved = _write_lowered(made / _LOWERED, model.buckets.values())
        _write_lowered(made / _LOWERED, model.programs)
        for number, program in enumerate(model.apart.values()):
            program.save(made / f"apart_{number}")
        text: dict[str, Json] = {
            "format": _FORMAT,
            "version": _VERSION,
            "specializations": model.specializations,
            "options": choices_as_json(model.choices),
            "buckets": [*model.buckets],
            "proved": [*proved],
            "apart": [dict(sizes) for sizes in model.apart],
            "digests": digests_of(made, [EXPORTED_FILE]),
        }
        (made / SIZES_FILE).write_text(dump_text(text), encoding="utf-8")


def _write_lowered(directory: Path, programs: Iterable[CompiledModel]) -> list[str]:
    """Write what was lowered, and return the keys."""
    entries = [entry for program in programs if (entry := program.entry()) is not None]
    for key, data in entries:
        _entries(directory).path(key).write_bytes(data)
    return [key for key, _ in entries]


def read_sizes(directory: Path, *, check: bool) -> SavedSizes:
    """Read the description of a model with symbols from its directory.

    Args:
        directory: a directory of `write_sizes`.
        check: whether its program is compared with the digest.

    Raises:
        ReadError: a file is missing or is not what its name says.
        InputError: the program is not the one that was saved.
    """
    with record_in(directory / SIZES_FILE, _FORMAT, _VERSION, AGAIN) as value:
        entry: Any = value
        check_digests(directory, {EXPORTED_FILE: entry["digests"][EXPORTED_FILE]}, check=check)
        apart = [tuple(sorted((str(name), int(size)) for name, size in one.items())) for one in entry["apart"]]
        return SavedSizes(
            int(entry["specializations"]),
            choices_from_json(entry["options"]),
            [int(size) for size in entry["buckets"]],
            frozenset(str(key) for key in entry["proved"]),
            {sizes: directory / f"apart_{number}" for number, sizes in enumerate(apart)},
            _entries(directory / _LOWERED),
        )


def _entries(directory: Path) -> Store:
    """The entries of a folder, of which none ever goes."""
    return Store(directory, sys.maxsize)


__all__ = ["SavedSizes", "SizesKey", "ToSave", "is_dynamic", "read_sizes", "write_sizes"]
