"""File names given by a file: they must resolve inside the directory they are read from."""

from __future__ import annotations

from pathlib import Path

from spyre_mlir.errors import ReadError


def is_contained(directory: Path, name: str) -> bool:
    """Return whether a name resolves to a path below a directory, links followed."""
    try:
        return directory.resolve() in (directory / name).resolve().parents
    except (OSError, ValueError, RuntimeError):  # a loop of links, a name with a zero in it
        return False


def contained(directory: Path, name: str) -> Path:
    """Return the path of a file named by a file of a directory.

    Raises:
        ReadError: it leads out of the directory.
    """
    if not is_contained(directory, name):
        raise ReadError(
            f"expected the name of a file of the bundle, got {name!r}, which leads out of its directory",
            where=str(directory),
            hint="copy the file into the directory, or write the bundle again",
        )
    return directory / name


def is_file_of(directory: Path, name: str) -> bool:
    """Return whether a name resolves to a regular file (no device or pipe) below a directory."""
    return is_contained(directory, name) and (directory / name).is_file()
