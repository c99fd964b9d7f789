"""Parts that folders of saved models share: the program as torch exported it, and the options of its compilation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from spyre_mlir.backend.whole_files.digest import digest_of_file
from spyre_mlir.errors import InputError, ReadError
from spyre_mlir.hw.spec import spec_with
from spyre_mlir.options import CompileOptions, about

if TYPE_CHECKING:
    from spyre_mlir.dialects.superdsc.model.json_value import Json

EXPORTED_FILE = "program.pt2"
AGAIN = "save the model again"


def digests_of(directory: Path, names: Iterable[str]) -> dict[str, Json]:
    """Return the digests of files in a directory, by name."""
    return {name: digest_of_file(directory / name) for name in names}


def check_digests(directory: Path, digests: Mapping[str, Any], *, check: bool) -> None:
    """Check that files of a directory are there, and are those that were saved.

    Args:
        directory: of a saved model.
        digests: of its files, by name.
        check: whether their contents are compared.

    Raises:
        ReadError: one is missing.
        InputError: one is not what was saved.
    """
    for name, digest in digests.items():
        if not (path := directory / name).is_file():
            raise ReadError(f"{name} is not there", where=str(directory), hint=AGAIN)
        if check and digest_of_file(path) != digest:
            hint = f"{AGAIN}; check=False loads it all the same"
            raise InputError("the file has other bytes than were saved", where=str(path), hint=hint)


def choices_of(options: CompileOptions) -> dict[str, Any]:
    """Return the options of a compiled model that a directory says: those neither about calls nor about progress."""
    return {
        entry.name: getattr(options, entry.name)
        for entry in fields(options)
        if not about(entry).of_calls and entry.name != "progress"
    }


def choices_as_json(choices: Mapping[str, Any]) -> dict[str, Json]:
    """Return options as a file says them."""
    return {name: _as_json(value) for name, value in choices.items()}


def choices_from_json(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a file says."""
    return {name: _as_option(name, value) for name, value in said.items()}


def _as_json(value: Any) -> Json:
    if isinstance(value, tuple):
        return list(cast("tuple[str, ...]", value))
    return value if value is None or isinstance(value, (str, bool, int)) else cast("dict[str, Json]", asdict(value))


def _as_option(name: str, value: Any) -> Any:
    if name == "spec":
        return spec_with(value)
    return tuple(cast("list[str]", value)) if isinstance(value, list) else value


__all__ = [
    "AGAIN",
    "EXPORTED_FILE",
    "check_digests",
    "choices_as_json",
    "choices_from_json",
    "choices_of",
    "digests_of",
]
