"""Checksums of the files of a bundle: they detect damage by a disk or a copy, not forgery."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import BinaryIO

_PIECE_BYTES = 1 << 20
_HEAD = "crc32:"


class Summed:
    """A binary file that keeps the checksum of the bytes written to it.

    Args:
        file: takes the bytes.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._sum = 0

    def write(self, data: bytes | memoryview) -> int:
        """Write bytes, and add them to the checksum."""
        self._sum = zlib.crc32(data, self._sum)
        return self._file.write(data)

    @property
    def digest(self) -> str:
        """Return the checksum so far, in the manifest's spelling."""
        return f"{_HEAD}{self._sum:08x}"


def digest_of_text(text: str) -> str:
    """Return the digest of a file with this text."""
    return f"{_HEAD}{zlib.crc32(text.encode()):08x}"


def digest_of_file(path: Path) -> str:
    """Return the digest of a file, read in pieces.

    Raises:
        OSError: it cannot be read.
    """
    total = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            total = zlib.crc32(piece, total)
    return f"{_HEAD}{total:08x}"
