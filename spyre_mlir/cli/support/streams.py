"""Closed standard streams: a tool reports one when it needs it, and opens no file in its place."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from io import RawIOBase, TextIOWrapper
from typing import Any

from typing_extensions import override


class _Closed(RawIOBase):
    """A stream whose every use is an error."""

    def __init__(self, name: str) -> None:
        self._name = name

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    @override
    def read(self, size: int = -1) -> bytes:
        raise self._error()

    @override
    def readinto(self, buffer: Any) -> int:
        raise self._error()

    @override
    def write(self, data: Any) -> int:
        raise self._error()

    def _error(self) -> OSError:
        return OSError(errno.EBADF, "it is closed", self._name)


@contextmanager
def streams_opened() -> Generator[None]:
    """Replace closed streams by a placeholder while a tool runs."""
    before = sys.stdin, sys.stdout, sys.stderr
    opened: list[int] = []
    if None in before:
        # The first file that is opened would get the number of a closed stream, and what is printed.
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            opened.append(number)
        os.close(number)
    for name, stream in zip(("stdin", "stdout", "stderr"), before, strict=True):
        if stream is None:  # pyright: ignore[reportUnnecessaryComparison] - Python has none for a closed one
            replacement = open(os.devnull, "w") if name == "stderr" else _closed(name)  # noqa: SIM115 - kept open
            setattr(sys, name, replacement)
    try:
        yield
    finally:
        for name, stream in zip(("stdin", "stdout", "stderr"), before, strict=True):
            if stream is None:  # pyright: ignore[reportUnnecessaryComparison]
                setattr(sys, name, stream)
        for number in opened:
            os.close(number)


def _closed(name: str) -> TextIOWrapper:
    raw: Any = _Closed(f"standard {'input' if name == 'stdin' else 'output'}")
    return TextIOWrapper(raw, encoding="utf-8", write_through=True)


def drop_output() -> None:
    """Discard pending output, so that the end of the process does not fail over it."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # a stream of Python's own, as in tests
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
