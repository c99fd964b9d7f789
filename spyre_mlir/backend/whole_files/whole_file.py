"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from spyre_mlir.errors import InputError


def write_whole(path: Path, text: str) -> None:
    """Write a text file; it replaces the old one only when complete.

    Args:
        path: the file; a device or a pipe is written to as it is, a link is followed.
        text: its contents.

    Raises:
        OSError: the file cannot be written.
    """
    if path.exists() and not path.is_file():  # asked before links are followed: those of /dev/stdout end nowhere
        path.write_text(text, encoding="utf-8")
        return
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def save_text(path: Path, text: str) -> Path:
    """Same as `write_whole`, with an error that suggests a remedy.

    Raises:
        InputError: the file cannot be written.
    """
    try:
        write_whole(path, text)
    except OSError as error:
        raise InputError(
            f"the file cannot be written: {error.strerror}", where=str(path), hint="name a file in a folder that exists"
        ) from error
    return path
