"""A model in parts as a directory: the program as torch exported it, and a bundle for each part of known sizes.

``program.pt2`` has the weights, the host steps, and what parts with symbols are specialised from; ``parts.json`` says
how it was compiled; ``part_0``, ``part_2``, … are bundle directories of parts of known sizes or with a bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spyre_mlir.backend.directory import replacing_bundle
from spyre_mlir.backend.json_file import dump_text, record_in
from spyre_mlir.backend.stored import PARTS_FILE
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

_FORMAT, _VERSION = "spyre-mlir model in parts", 3


@dataclass(frozen=True)
class SavedModel:
    """Contents of a directory with a model in parts, besides the program.

    Attributes:
        name: of the model.
        specializations: how many programs of each part are kept.
        choices: the options that it was compiled with, without those about calls.
        folders: the bundle directories, by the number of the part.
        masked: numbers of parts with a bound whose padding is masked.
        apart: numbers of those that are compiled for sizes that no other value of the part has.
    """

    name: str
    specializations: int
    choices: Mapping[str, Any]
    folders: Mapping[int, Path]
    masked: tuple[int, ...] = ()
    apart: tuple[int, ...] = ()


def write_parts(
    directory: Path,
    saved: SavedModel,
    exported: Any,
    parts: Mapping[int, CompiledModel],
    host_weights: bool | None,
) -> None:
    """Write a model in parts, all or nothing.

    Args:
        directory: made, or replaced if it is a bundle directory, a model in parts or empty.
        saved: what the directory says of the model, but for the folders.
        exported: the program as torch exported it.
        parts: those of known sizes or with a bound, by number.
        host_weights: as for `CompiledModel.save`.

    Raises:
        InputError: the directory holds something else or cannot be written, or torch cannot write the program.
    """
    from spyre_mlir.frontend import write_exported

    with replacing_bundle(directory, durable=True) as made:
        write_exported(exported, made / EXPORTED_FILE)
        for number, part in parts.items():
            part.save(made / f"part_{number}", host_weights=host_weights)
        text: dict[str, Json] = {
            "format": _FORMAT,
            "version": _VERSION,
            "model": saved.name,
            "specializations": saved.specializations,
            "options": choices_as_json(saved.choices),
            "bundles": [*parts],
            "masked": [*saved.masked],
            "apart": [*saved.apart],
            "digests": digests_of(made, [EXPORTED_FILE]),
        }
        (made / PARTS_FILE).write_text(dump_text(text), encoding="utf-8")


def read_parts(directory: Path, *, check: bool) -> SavedModel:
    """Read the description of a model in parts from its directory.

    Args:
        directory: a directory of `write_parts`.
        check: whether its program is compared with the digest.

    Raises:
        ReadError: a file is missing or is not what its name says.
        InputError: the program is not the one that was saved.
    """
    path = directory / PARTS_FILE
    with record_in(path, _FORMAT, _VERSION, AGAIN) as value:
        entry: Any = value
        check_digests(directory, {EXPORTED_FILE: entry["digests"][EXPORTED_FILE]}, check=check)
        folders = {int(number): directory / f"part_{int(number)}" for number in entry["bundles"]}
        choices = choices_from_json(entry["options"])
        masked, apart = (tuple(int(number) for number in entry[name]) for name in ("masked", "apart"))
        return SavedModel(str(entry["model"]), int(entry["specializations"]), choices, folders, masked, apart)
