"""Calls of one program from several threads, which take turns: the card, its memory and the log of a call are one.

Decision: docs/decisions/0230-calls-of-a-program-take-turns.md
"""

from __future__ import annotations

import os
from threading import RLock
from types import TracebackType


class OneAtATime:
    """A lock that a call may take again, and that a fork of the process has anew, whoever holds it there."""

    def __init__(self) -> None:
        """Nobody holds it."""
        self._lock, self._owner = RLock(), os.getpid()

    def __enter__(self) -> None:
        if self._owner != os.getpid():
            self._lock, self._owner = RLock(), os.getpid()
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


__all__ = ["OneAtATime"]
