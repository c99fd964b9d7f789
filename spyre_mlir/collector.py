"""Pauses of Python's cycle collector: it walks every object alive, again and again while a program is being made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

_OLDEST = 2
_MOST_UNSEEN = 3_000_000  # of which less than half are garbage, as programs that are dropped free their ops


@dataclass
class _Pauses:
    """Blocks in which nothing is collected; the first switches the collector off, the last switches it on.

    Attributes:
        running: blocks that have begun and not ended.
        unseen: objects made in blocks since all objects were last looked at.
        collections: how often that had happened then.
        frozen: whether the caller was found to have frozen objects.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    running: int = 0
    unseen: int = 0
    collections: int = -1
    frozen: bool = False

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
                self._pass_over()
                gc.enable()

    def _pass_over(self) -> None:
        """Count what the blocks made among the oldest objects, of which almost all of it is going to be one anyway.

        Not where the caller has frozen objects, which would thaw; that is asked until it is so, as counting them takes
        longer than a collection.
        """
        if self.frozen:
            return
        found = gc.get_stats()[_OLDEST]["collections"]
        if found != self.collections:
            self.collections, self.unseen = found, 0
        self.unseen += gc.get_count()[0]
        self.frozen = gc.get_freeze_count() > 0
        if self.frozen:
            return
        if self.unseen > _MOST_UNSEEN:
            gc.collect()
        else:
            gc.freeze()
            gc.unfreeze()


_pauses = _Pauses()


@contextmanager
def paused_collector() -> Generator[None]:
    """Collect nothing until the end of the block; blocks nest, and threads may be in several at once.

    A look at everything that a compilation made takes a tenth of its time, and little of it is garbage. So what a
    block made counts as old at its end, and the next collection of old objects finds the garbage: Python's own, or
    one at the end of a block when millions of objects have piled up.
    """
    counts = _pauses.begin()
    try:
        yield
    finally:
        if counts:
            _pauses.end()
