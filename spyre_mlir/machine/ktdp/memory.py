"""Device memory and scratchpads of one run, and the mapping from an address to its region."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Operation

from spyre_mlir.errors import InputError
from spyre_mlir.hw.spec import SEGMENT_BYTES, STICK_BYTES, USER_SEGMENTS
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.ktdp.regions import TrackedRegion, Where
from spyre_mlir.machine.ktdp.values import Array

# Nothing is at address 0, so that a pointer nobody has set is found.
FIRST_ADDRESS = 512 * STICK_BYTES
_SLOT_BYTES = 2  # what a scratchpad remembers together: the smallest element that programs keep there


class KtirMemory:
    """The arrays of a program, each in a region of its own, on stick boundaries with a gap between.

    Args:
        arrays: contents by name; an array's shape and numbers are what its region has.
        blank: names of arrays whose contents the program may not read before it writes them.
        places: byte addresses of arrays whose place the program knows; the others are put behind.

    Raises:
        InputError: two arrays overlap.
    """

    def __init__(self, arrays: Mapping[str, Array], blank: Sequence[str], places: Mapping[str, int]) -> None:
        self.regions: dict[str, TrackedRegion] = {}
        free = FIRST_ADDRESS
        for name, array in sorted(arrays.items(), key=lambda item: places.get(item[0], SEGMENT_BYTES * USER_SEGMENTS)):
            base = places.get(name, free)
            size = prod(array.shape) * array.itemsize
            region = TrackedRegion(name, base, size, array.itemsize)
            if name not in blank:
                region.fill(array)
            self.regions[name] = region
            sticks = -(-(base + size) // STICK_BYTES)
            free = max(free, (sticks + 1) * STICK_BYTES)
        self._order = sorted(self.regions.values(), key=lambda region: region.base)
        self._bases = [region.base for region in self._order]
        for one, other in zip(self._order, self._order[1:], strict=False):
            if one.base + one.size > other.base:
                raise InputError(f"the arrays {one.name} and {other.name} overlap", hint="give places that are apart")

    def region(self, where: Where, kind: np.dtype[Any], op: Operation, core: int) -> TrackedRegion:
        """Return the region in which elements begin; the region itself checks where they end.

        Raises:
            MachineFault: ``out-of-bounds``: nothing is there.
        """
        low, high = where.reach(kind.itemsize)
        found = bisect_right(self._bases, low) - 1
        if found < 0 or low >= self._order[found].base + self._order[found].size:
            near = self._order[max(found, 0)].name if self._order else "nothing"
            message = f"bytes {low:#x}..{high:#x} are in no array; the nearest is {near}"
            raise fault(FaultKind.OUT_OF_BOUNDS, message, op, core=core, hint="pointers count elements of the view")
        return self._order[found]


class Scratchpad:
    """The LX of one core: views at fixed addresses, and room for the live tensors.

    Args:
        core: its number.
        size: bytes.
        shared: whether the program lets other cores see it.
    """

    def __init__(self, core: int, size: int, *, shared: bool) -> None:
        self.core = core
        self.size = size
        self._shared = shared
        self._region: TrackedRegion | None = None
        self._tiles: dict[int, tuple[int, int]] = {}  # how many names an array has, and its bytes
        self._held = 0
        self._fixed: list[tuple[int, int]] = []  # bytes of views, disjoint, ascending

    @property
    def region(self) -> TrackedRegion:
        """Return its bytes."""
        if self._region is None:
            self._region = TrackedRegion(f"LX of core {self.core}", 0, self.size, _SLOT_BYTES, self._shared)
        return self._region

    def reserve(self, where: Where, kind: np.dtype[Any], op: Operation) -> None:
        """Reserve the bytes of a view, so that no tensor takes them.

        Raises:
            MachineFault: ``out-of-bounds`` or ``lx-overflow``.
        """
        low, high = where.reach(kind.itemsize)
        if low < 0 or high > self.size:
            message = f"bytes {low:#x}..{high:#x} leave the scratchpad of {self.size:#x} bytes"
            raise fault(FaultKind.OUT_OF_BOUNDS, message, op, core=self.core)
        if any(a <= low and high <= b for a, b in self._fixed):
            return
        merged: list[tuple[int, int]] = []
        for a, b in sorted([*self._fixed, (low, high)]):
            if merged and a <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(b, merged[-1][1]))
            else:
                merged.append((a, b))
        self._fixed = merged
        self._require_room(op)

    def hold(self, key: int, size: int, op: Operation) -> None:
        """Allocate room for a tensor; the same tensor again takes none.

        Raises:
            MachineFault: ``lx-overflow``.
        """
        names, _ = self._tiles.get(key, (0, 0))
        self._tiles[key] = (names + 1, size)
        if not names:
            self._held += size
            self._require_room(op)

    def release(self, key: int) -> None:
        """Drop one name of a tensor, and its room with the last name."""
        names, size = self._tiles[key]
        if names > 1:
            self._tiles[key] = (names - 1, size)
        else:
            del self._tiles[key]
            self._held -= size

    def _require_room(self, op: Operation) -> None:
        fixed = sum(high - low for low, high in self._fixed)
        if self._held + fixed > self.size:
            message = f"{self._held} bytes of live tensors and {fixed} of views do not fit {self.size} bytes"
            raise fault(FaultKind.LX_OVERFLOW, message, op, core=self.core, hint="take smaller tiles")
