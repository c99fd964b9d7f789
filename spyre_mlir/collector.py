"""Pauses of Python's cycle collector: it walks every object alive, again and again while a program is being made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class _Pauses:
    """Blocks in which nothing is collected; the first switches the collector off, the last switches it on."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    running: int = 0

    def begin(self) -> bool:
        """Return whether the block counts: it does not where the caller has switched the collector off."""
        with self.lock:
            counts = self.running > 0 or gc.isenabled()
            self.running += counts
            if counts:
                gc.disable()
            return counts

    def end(self) -> None:
        """End a block that counts."""
        with self.lock:
            self.running -= 1
            if not self.running:
                gc.enable()


_pauses = _Pauses()


@contextmanager
def paused_collector() -> Generator[None]:
    """Collect nothing until the end of the block; blocks nest, and threads may be in several at once.

    What became garbage in the block is young at its end, so the next collection of young objects finds it.
    """
    counts = _pauses.begin()
    try:
        yield
    finally:
        if counts:
            _pauses.end()
