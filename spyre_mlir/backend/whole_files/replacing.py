"""Directories that appear as a whole or not at all, even if the writer is killed.

A directory is made in a hidden folder beside its place. Where the system can exchange two names in one step, the place
holds the old directory or the new one at every moment; elsewhere the old one is in the hidden folder for an instant.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_CURRENT = -100  # AT_FDCWD: paths from the working directory
_EXCHANGE = 2  # RENAME_EXCHANGE
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.EPERM)
_LARGE = 1 << 20
_WRITER, _UNLOCKED, _MADE, _OLD = ".writer", ".writer.new", "made", "old"
_YOUNG = 60.0  # seconds in which a writer that lives has locked its file


@contextmanager
def replacing(directory: Path, *, durable: bool = False) -> Generator[Path]:
    """Yield a folder that replaces a directory once everything in it is written; a link is followed.

    Args:
        directory: the place.
        durable: whether large files are on the disk before they get their place. Damage that a power cut does to small
            ones is found by their digests, at a fraction of the time.

    Raises:
        OSError: the directory cannot be written.
    """
    place = Path(os.path.realpath(directory))
    place.parent.mkdir(parents=True, exist_ok=True)
    _remove_left_over(place)
    with _hidden_folder(place) as folder:
        made = folder / _MADE
        made.mkdir()  # with the permissions that the user gives new directories
        yield made
        if durable:
            _sync(made)
        _put(made, place, folder / _OLD)


@contextmanager
def _hidden_folder(place: Path) -> Generator[Path]:
    """A folder beside a place; a lock on a file of it says that its writer lives."""
    folder = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        with (folder / _UNLOCKED).open("w") as file:
            # Who looks for folders of dead writers must never see the file without the lock.
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (folder / _UNLOCKED).rename(folder / _WRITER)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sync(made: Path) -> None:
    for path in (made, *made.rglob("*")):
        if path.is_dir() or path.stat().st_size >= _LARGE:
            file = os.open(path, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _put(made: Path, place: Path, old: Path) -> None:
    if not place.exists():
        made.rename(place)
    elif not exchanged(made, place):
        place.rename(old)
        try:
            made.rename(place)
        except OSError:
            old.rename(place)
            raise


def exchanged(first: Path, second: Path) -> bool:
    """Exchange two names in one step; False where the system cannot.

    Raises:
        OSError: it can, and refuses these two.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    if rename(_CURRENT, os.fsencode(first), _CURRENT, os.fsencode(second), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), str(second))


def _remove_left_over(place: Path) -> None:
    """Removes hidden folders of this place whose writers are dead: nobody holds their lock."""
    hidden = re.compile(re.escape(f".{place.name}-") + r"[a-z0-9_]{8}")
    with suppress(OSError):
        for folder in place.parent.iterdir():
            if hidden.fullmatch(folder.name) and _is_dead(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_dead(folder: Path) -> bool:
    """Whether nobody holds the lock of a folder, or an old one has none: its writer was killed before or after it."""
    held = folder / _WRITER
    if not held.exists():
        if time.time() - folder.stat().st_mtime < _YOUNG:
            return False
        held = folder / _UNLOCKED
        if not held.exists():
            return True
    try:
        with held.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # its writer lives, has just removed it, or the system has no locks
        return False
    return True
