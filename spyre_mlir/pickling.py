"""Pickling of compiled models: as the files that `save` writes, so that it takes no torch model to read them again."""

from __future__ import annotations

import os
import shutil
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, Self

# By name: a room above, which loads when it is asked for.
_UNPICKLED, _LOADED = "spyre_mlir.loaded:unpickled", "spyre_mlir.api:unpickled_saved"


def remove_folder(folder: Path, owner: int) -> None:
    """Remove the folder of a compiled model, unless this is a fork of the process that uses it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


class CopiedAsItIs:
    """Base of objects whose pickles are of another kind: a copy of one stays what it is, and shares its contents."""

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied


class PickledAsBundle(CopiedAsItIs):
    """Base of programs that are pickled as the files of their bundle, with the options of calls."""

    @abstractmethod
    def write_for_pickle(self, directory: Path) -> None:
        """Write everything that calls and inspection need to an empty directory."""

    @abstractmethod
    def call_options(self) -> Mapping[str, Any]:
        """Return the options that are about calls, by name."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[dict[str, bytes], dict[str, Any]]]:
        return resolve_name(_UNPICKLED), (_written(self.write_for_pickle), dict(self.call_options()))


class PickledAsSaved(CopiedAsItIs):
    """Base of models of several programs, pickled as the files that `save` writes, with the options of calls."""

    @abstractmethod
    def save(self, directory: Path) -> Path:
        """Write everything that `load` needs to a directory."""

    @abstractmethod
    def call_options(self) -> Mapping[str, Any]:
        """Return the options that are about calls, by name."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[dict[str, bytes], dict[str, Any]]]:
        return resolve_name(_LOADED), (_written(self.save), dict(self.call_options()))


def _written(write: Callable[[Path], object]) -> dict[str, bytes]:
    """The files that a function writes to a directory."""
    with tempfile.TemporaryDirectory(prefix="spyre-") as folder:
        write(Path(folder))
        return files_of(Path(folder))


def files_of(directory: Path) -> dict[str, bytes]:
    """Return the contents of the files in a directory, by relative path."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}


def write_files(files: Mapping[str, bytes], directory: Path) -> None:
    """Write files by relative path; folders are made."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
