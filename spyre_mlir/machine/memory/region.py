"""Regions of device memory: their contents, what was written where, and views of single elements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.memory.pages import sparse_zeros
from spyre_mlir.machine.memory.shadow import Bools, Ints, ShadowMemory, StickBox

Stored = npt.NDArray[Any]  # elements as a kind of memory keeps them
# Contents of regions that are gone: memory the host has committed already.
# With them, which sticks are not zero, if that is known.
Leftover = tuple[npt.NDArray[np.uint8], Bools | None]
Spare = dict[int, list[Leftover]]  # by size
# Bytes that are zeroed sooner than it is found out which of them have to be.
_SMALL = 1 << 23


@dataclass(order=True)
class MemoryRegion:
    """An address range with contents.

    Args:
        base: first byte address.
        size: bytes.
        name: what it is to the program, for messages.
        scale: bytes the host spends per byte.
    """

    base: int
    size: int = field(compare=False)
    name: str = field(compare=False)
    scale: int = field(compare=False, repr=False)
    cells: npt.NDArray[np.uint8] = field(init=False, compare=False, repr=False)
    states: ShadowMemory = field(init=False, compare=False, repr=False)
    shared: bool = field(init=False, default=False, compare=False, repr=False)
    # Whether its contents mean nothing when a bundle begins.
    scratch: bool = field(init=False, default=False, compare=False, repr=False)

    spare: Spare | None = field(default=None, compare=False, repr=False)
    # Whether programs use a little of it here and there, as of the scratchpads.
    sparse: bool = field(default=False, compare=False, repr=False)
    # Whether bytes that nothing wrote read as 0; not needed where all of it is written at once.
    zeroed: bool = field(default=True, compare=False, repr=False)
    # Whether it is kept what is written where; if not, nothing can be cleared later.
    tracked: bool = field(default=True, compare=False, repr=False)
    # Whether sticks that nothing wrote may hold what a region before left, and have to be cleared when they are read.
    used: bool = field(init=False, default=False, compare=False, repr=False)
    # The sticks of a sparse region that hold what regions before left.
    dirty: Bools | None = field(init=False, default=None, compare=False, repr=False)
    # The sticks that were cleared one by one; None if all of them were at once.
    cleared: list[Ints] | None = field(init=False, default_factory=list[Ints], compare=False, repr=False)
    # The sticks that a run writes, if that is known without a look at the states.
    touched: Bools | None = field(init=False, default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        kept = self.spare.pop(self.size * self.scale, []) if self.spare is not None else []
        if kept and self.spare is not None:
            self.cells, dirty = kept.pop()
            self.spare[self.size * self.scale] = kept
            self._use_again(dirty)
        elif not self.zeroed:
            self.cells = np.empty(self.size * self.scale, dtype=np.uint8)  # in huge pages, which numpy asks for here
        else:
            # zeros, not empty: the operating system commits a page at the first write only.
            count = self.size * self.scale
            self.cells = sparse_zeros(count) if self.sparse else np.zeros(count, dtype=np.uint8)
            self._all_zero()
        self.states = ShadowMemory(self.size)

    def _use_again(self, dirty: Bools | None) -> None:
        """Zero contents that another region left, at once if that costs little, else when they are read."""
        if not self.zeroed:
            return
        if self.sparse and self.tracked and dirty is not None:
            self.used, self.dirty = True, dirty
        elif len(self.cells) <= _SMALL or self.sparse or not self.tracked:
            self.cells.fill(0)
            self._all_zero()
        else:
            self.used = True

    def _all_zero(self) -> None:
        """Clear sticks of scratchpads one by one from here on, so that it is known which have to be."""
        if self.sparse and self.tracked:
            self.used, self.dirty = True, np.zeros(self.size // STICK_BYTES, dtype=np.bool_)

    def leftover(self) -> Leftover | None:
        """Return the contents for the next region of this size; None if they are not worth keeping, or shared."""
        if self.shared or (self.sparse and not self.tracked):
            return None
        if self.dirty is None:
            return self.cells, None
        states, touched = self.states, self.touched
        if touched is None:
            touched = (states.writer > 0) | (states.known > 0)
        return self.cells, touched | self.dirty

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.base + self.size

    def clear(self, box: StickBox | None = None) -> None:
        """Zero the sticks that nothing has written since the region was made.

        Args:
            box: which sticks; all if not given.
        """
        if not self.used:
            return
        states, width = self.states, STICK_BYTES * self.scale
        if box is None:
            fresh = (states.writer == 0) & (states.known == 0)
            self.cells.reshape(-1, width)[fresh if self.dirty is None else fresh & self.dirty] = 0
            self.used, self.cleared = False, None
            return
        fresh = (box.view(states.writer) == 0) & (box.view(states.known) == 0)
        if np.count_nonzero(fresh):
            steps = (*(step * width for step in box.steps), 1)
            np.ndarray((*box.shape, width), np.uint8, self.cells.data, box.first * width, steps)[fresh] = 0
            if self.cleared is not None:
                self.cleared.append(box.sticks()[fresh])

    def zero(self, sticks: Ints) -> None:
        """Zero some sticks."""
        self.cells.reshape(-1, STICK_BYTES * self.scale)[sticks] = 0

    def share(self, cells: npt.NDArray[np.uint8], states: ShadowMemory) -> None:
        """Take contents shared with other holders; they are copied before a write."""
        self.cells, self.states, self.shared, self.used = cells, states, True, False

    def lend(self) -> tuple[npt.NDArray[np.uint8], ShadowMemory]:
        """Return the contents for other holders; they are copied before a write."""
        self.clear()
        self.shared = True
        return self.cells, self.states

    def own(self) -> None:
        """Make the contents private before a write."""
        if self.shared:
            self.cells, self.states, self.shared = self.cells.copy(), self.states.copy(), False


@dataclass(frozen=True)
class StridedWindow:
    """Elements of a region at regular steps.

    Args:
        region: where.
        first: byte of the element at index zero, from the start of the region.
        shape: how many along each axis.
        steps: bytes from one to the next along each axis.
    """

    region: MemoryRegion
    first: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    def elements(self, kind: np.dtype[Any]) -> Stored:
        """View of the stored elements."""
        scale = self.region.scale
        strides = tuple(step * scale for step in self.steps)
        return np.ndarray(self.shape, kind, self.region.cells.data, self.first * scale, strides)
