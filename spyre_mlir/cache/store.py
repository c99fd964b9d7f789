"""A directory of entries, shared by processes: an entry is there whole or not at all, and the least recently used go.

No process waits for another one. Two that write the same entry write the same bytes, and the later one wins.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

log = logging.getLogger(__name__)

_MAGIC = b"spyre-mlir cache entry\n"
_SUFFIX, _PART = ".entry", ".part"
_ENTRY = re.compile(rf"[0-9a-f]{{64}}{re.escape(_SUFFIX)}")
_PARTIAL = re.compile(rf"\.[0-9a-f]{{64}}-\w+{re.escape(_PART)}")
_MET = "met-once"
_MOST_MET = 1 << 16  # bytes of the keys that are remembered; with one more they are forgotten
_DIGEST_BYTES = 32
_ABANDONED_SECONDS = 3600


class DamagedEntryError(Exception):
    """An entry whose contents are not those written under its key."""


@dataclass(frozen=True)
class Usage:
    """Number of entries, and their bytes."""

    entries: int
    size: int


@dataclass(frozen=True)
class _File:
    path: Path
    size: int
    used: float


@dataclass(frozen=True)
class Store:
    """Entries by key.

    Attributes:
        directory: made when the first entry is written; other files in it are left alone.
        limit: bytes that all entries may take.
    """

    directory: Path
    limit: int

    def path(self, key: str) -> Path:
        """Return the file of an entry."""
        return self.directory / f"{key}{_SUFFIX}"

    def paths(self) -> list[Path]:
        """Return the files of all entries."""
        return [file.path for file in self._files(_ENTRY)]

    def read(self, key: str) -> bytes | None:
        """Return the content of an entry; None if there is none.

        Raises:
            DamagedEntryError: the entry is not what was written under this key.
        """
        path = self.path(key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            log.info("the cache cannot be read: %s: %s", path, error.strerror)
            return None
        content = data[len(_MAGIC) + _DIGEST_BYTES :]
        if not data.startswith(_MAGIC):
            raise DamagedEntryError("it does not begin as an entry does")
        if data[len(_MAGIC) : len(_MAGIC) + _DIGEST_BYTES] != _digest(key, content):
            raise DamagedEntryError("its digest is another one than that of its content")
        with suppress(OSError):
            os.utime(path)  # used last
        return content

    def met(self, key: str) -> bool:
        """Return whether a key was met before, by any process, and remember it."""
        path, line = self.directory / _MET, f"{key}\n".encode()
        try:
            known = path.read_bytes() if path.exists() else b""
            if line in known:
                return True
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with path.open("ab" if len(known) < _MOST_MET else "wb") as file:
                file.write(line)
        except OSError as error:
            log.info("not remembered: %s: %s", path, error.strerror)
        return False

    def write(self, key: str, content: bytes) -> bool:
        """Write an entry, then remove the least recently used beyond the limit; return whether it was written."""
        data = sealed(key, content)
        if len(data) > self.limit:
            log.info("not cached: the entry takes %s bytes of %s", f"{len(data):,}", f"{self.limit:,}")
            return False
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._put(key, data)
        except OSError as error:
            log.info("not cached: %s cannot be written: %s", self.directory, error.strerror)
            return False
        self._evict(key)
        return True

    def _put(self, key: str, data: bytes) -> None:
        handle, name = tempfile.mkstemp(_PART, f".{key}-", self.directory)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, self.path(key))
        finally:
            with suppress(OSError):  # it is there only if something failed
                os.unlink(name)

    def _evict(self, newest: str) -> None:
        """Removes the least recently used entries beyond the limit, and what killed writers left."""
        entries = sorted(self._files(_ENTRY), key=lambda file: file.used)
        total = sum(file.size for file in entries)
        for file in entries:
            if total <= self.limit:
                break
            if file.path != self.path(newest):
                total -= file.size
                file.path.unlink(missing_ok=True)
        for file in self._files(_PARTIAL):
            if time.time() - file.used > _ABANDONED_SECONDS:
                file.path.unlink(missing_ok=True)

    def remove(self, key: str) -> None:
        """Remove an entry, if it is there."""
        with suppress(OSError):
            self.path(key).unlink()

    def usage(self) -> Usage:
        """Return the number of entries, and their bytes."""
        files = self._files(_ENTRY)
        return Usage(len(files), sum(file.size for file in files))

    def clear(self) -> Usage:
        """Remove all entries, and nothing else; return what was removed.

        Raises:
            OSError: one cannot be removed.
        """
        before = self.usage()
        for file in (*self._files(_ENTRY), *self._files(_PARTIAL)):
            file.path.unlink(missing_ok=True)
        if (met := self.directory / _MET).exists():
            met.unlink(missing_ok=True)
        return before

    def _files(self, form: re.Pattern[str]) -> list[_File]:
        """The files whose names have a form; other processes may remove some meanwhile."""
        found: list[_File] = []
        with suppress(OSError):
            for item in os.scandir(self.directory):
                with suppress(OSError):
                    if form.fullmatch(item.name) and item.is_file(follow_symlinks=False):
                        found.append(_File(Path(item.path), item.stat().st_size, item.stat().st_mtime))
        return found


def sealed(key: str, content: bytes) -> bytes:
    """Return the bytes of an entry's file."""
    return _MAGIC + _digest(key, content) + content


def _digest(key: str, content: bytes) -> bytes:
    """The digest of an entry; an entry under the name of another one does not have it."""
    return sha256(key.encode() + content).digest()
