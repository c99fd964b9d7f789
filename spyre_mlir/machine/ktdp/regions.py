"""Memory of the KTIR machine: address ranges that track who wrote what, and the order with respect to other cores.

A region is an argument's array in device memory, or the scratchpad of a core. Device memory has nothing between its
regions. What is remembered is kept per unit: an element of an array, two bytes of a scratchpad.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from xdsl.ir import Operation

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.ktdp.values import Array

Clocks = NDArray[np.int64]  # what a core knows of the time of each core
NOBODY = -1


@dataclass(frozen=True)
class Strided:
    """Elements at regular steps.

    Args:
        start: byte address of the first.
        shape: how many along each axis.
        steps: bytes from one to the next along each axis.
    """

    start: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    def reach(self, size: int) -> tuple[int, int]:
        """Return the first byte, and one past the last, of elements of a size."""
        far = [step * (extent - 1) for step, extent in zip(self.steps, self.shape, strict=True)]
        return self.start + sum(min(f, 0) for f in far), self.start + sum(max(f, 0) for f in far) + size

    def window(self, flat: Array, base: int, unit: int, size: int) -> Array:
        """Return the view of the elements in an array of units."""
        first, item, extra = (self.start - base) // unit, flat.itemsize, size // unit
        steps = tuple(step // unit * item for step in self.steps)
        shape = self.shape
        if extra > 1:
            shape, steps = (*shape, extra), (*steps, item)
        return as_strided(flat[first:], shape, steps)

    def read(self, flat: Array, base: int, unit: int, size: int) -> Array:
        """Return the same view for reading only."""
        return self.window(flat, base, unit, size)

    def write(self, flat: Array, base: int, unit: int, size: int, values: Array | int) -> None:
        """Write values at the elements."""
        self.window(flat, base, unit, size)[...] = values

    def touches_twice(self) -> bool:
        """Return whether two elements share an address, judged from the steps."""
        return any(step == 0 and extent > 1 for step, extent in zip(self.steps, self.shape, strict=True))


@dataclass(frozen=True)
class Scattered:
    """Elements at arbitrary addresses.

    Args:
        addresses: byte address of each.
    """

    addresses: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each axis."""
        return self.addresses.shape

    def reach(self, size: int) -> tuple[int, int]:
        """Return the first byte, and one past the last, of elements of a size."""
        return int(self.addresses.min()), int(self.addresses.max()) + size

    def _places(self, base: int, unit: int, size: int) -> NDArray[np.int64]:
        first, extra = (self.addresses - base) // unit, size // unit
        return first if extra == 1 else first[..., None] + np.arange(extra)

    def read(self, flat: Array, base: int, unit: int, size: int) -> Array:
        """Return a copy of the elements in an array of units."""
        return flat[self._places(base, unit, size)]

    def write(self, flat: Array, base: int, unit: int, size: int, values: Array | int) -> None:
        """Write values at the elements."""
        flat[self._places(base, unit, size)] = values

    def touches_twice(self) -> bool:
        """Return whether two elements share an address."""
        return np.unique(self.addresses).size != self.addresses.size


Where = Strided | Scattered


@dataclass
class TrackedRegion:
    """An address range with contents.

    Args:
        name: what it is to the program.
        base: first byte address.
        size: bytes.
        unit: bytes that are remembered together.
        shared: whether cores may meet here, so that their accesses are remembered.
    """

    name: str
    base: int
    size: int
    unit: int
    shared: bool = True
    data: NDArray[np.uint8] = field(init=False, repr=False)
    tags: NDArray[np.uint8] = field(init=False, repr=False)
    whole: bool = field(default=False, init=False)
    writers: NDArray[np.int8] | None = field(default=None, init=False, repr=False)
    written_at: NDArray[np.int32] | None = field(default=None, init=False, repr=False)
    readers: dict[int, NDArray[np.uint32]] = field(default_factory=dict[int, Any], init=False, repr=False)

    def __post_init__(self) -> None:
        # zeros, not empty: the operating system commits a page at the first write only.
        self.data = np.zeros(-(-self.size // 8) * 8, np.uint8)
        self.tags = np.zeros(self.size // self.unit, np.uint8)

    def fill(self, values: Array) -> None:
        """Store an array of defined elements, from the start on."""
        self.data[: values.nbytes] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self.tags[: values.size] = tag_of(values.dtype)
        self.whole = True

    def contents(self, kind: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Return a copy of the contents from the start on."""
        return self.data.view(kind)[: prod(shape)].reshape(shape).copy()

    def check(self, where: Where, kind: np.dtype[Any], op: Operation, core: int) -> None:
        """Refuse elements outside of the region, or across its units.

        Raises:
            MachineFault: ``out-of-bounds`` or ``misaligned`` or ``wrong-format``.
        """
        low, high = where.reach(kind.itemsize)
        if low < self.base or high > self.base + self.size:
            message = (
                f"bytes {low:#x}..{high:#x} leave {self.name}, which is {self.base:#x}..{self.base + self.size:#x}"
            )
            raise fault(FaultKind.OUT_OF_BOUNDS, message, op, core=core)
        if kind.itemsize < self.unit or kind.itemsize % self.unit:
            if self.shared_unit_is_slot:
                raise UnsupportedError(f"elements of {kind} in a scratchpad do not run here yet")
            raise fault(
                FaultKind.WRONG_FORMAT, f"{self.name} has elements of {self.unit} bytes, not {kind}", op, core=core
            )
        if (low - self.base) % kind.itemsize:
            raise fault(
                FaultKind.MISALIGNED, f"byte {low:#x} of {self.name} is between two elements of {kind}", op, core=core
            )

    @property
    def shared_unit_is_slot(self) -> bool:
        """Return whether units are slots of a scratchpad rather than the elements of one array."""
        return self.name.startswith("LX")

    # --- reading and writing ---

    def read(self, where: Where, kind: np.dtype[Any], op: Operation, core: int, clocks: Clocks) -> Array:
        """Return a copy of elements.

        Raises:
            MachineFault: they were never written, or as other numbers, or another core may be writing them.
        """
        self.check(where, kind, op, core)
        if not self.whole or self.tags[0] != tag_of(kind):
            self._check_tags(where, kind, op, core)
        if self.shared:
            self._check_written(where, kind, op, core, clocks, "reads")
            own_time = int(clocks[core])
            mask = self.readers.get(own_time)
            if mask is None:
                mask = self.readers[own_time] = np.zeros(self.tags.size, np.uint32)
            seen = where.read(mask, self.base, self.unit, kind.itemsize)
            where.write(mask, self.base, self.unit, kind.itemsize, seen | np.uint32(1 << core))
        return np.array(where.read(self.data.view(kind), self.base, kind.itemsize, kind.itemsize))

    def write(self, where: Where, values: Array, op: Operation, core: int, clocks: Clocks) -> None:
        """Write elements.

        Raises:
            MachineFault: two of them go to one place, or another core may be using it.
        """
        kind = values.dtype
        self.check(where, kind, op, core)
        if where.touches_twice():
            message = f"two elements of one store go to one place of {self.name}"
            raise fault(FaultKind.DOUBLE_WRITE, message, op, core=core)
        size = kind.itemsize
        if self.shared:
            self._check_written(where, kind, op, core, clocks, "writes")
            self._check_readers(where, kind, op, core, clocks)
            if self.writers is None or self.written_at is None:
                self.writers = np.full(self.tags.size, NOBODY, np.int8)
                self.written_at = np.zeros(self.tags.size, np.int32)
            where.write(self.writers, self.base, self.unit, size, core)
            where.write(self.written_at, self.base, self.unit, size, int(clocks[core]))
        if self.whole and self.tags[0] != tag_of(kind):
            message = f"{self.name} has elements of {tag_name(int(self.tags[0]))}, not {kind}"
            raise fault(FaultKind.WRONG_FORMAT, message, op, core=core)
        if not self.whole:
            where.write(self.tags, self.base, self.unit, size, tag_of(kind))
        where.write(self.data.view(kind), self.base, size, size, values)

    def _check_tags(self, where: Where, kind: np.dtype[Any], op: Operation, core: int) -> None:
        tags = where.read(self.tags, self.base, self.unit, kind.itemsize)
        bad = tags != tag_of(kind)
        if not bad.any():
            return
        found = int(tags[bad][0])
        low, _ = where.reach(kind.itemsize)
        count = f"{int(np.count_nonzero(bad)) * self.unit} bytes of {self.name}, from {low:#x} on,"
        if found == 0:
            raise fault(FaultKind.UNINITIALISED_READ, f"{count} were never written", op, core=core)
        raise fault(FaultKind.WRONG_FORMAT, f"{count} hold {tag_name(found)}, not {kind}", op, core=core)

    def _check_written(
        self, where: Where, kind: np.dtype[Any], op: Operation, core: int, clocks: Clocks, doing: str
    ) -> None:
        """Refuse to touch what another core wrote, and nothing made this core wait for."""
        if self.writers is None or self.written_at is None:
            return
        writers = where.read(self.writers, self.base, self.unit, kind.itemsize)
        foreign = (writers != NOBODY) & (writers != core)
        if not foreign.any():
            return
        times = where.read(self.written_at, self.base, self.unit, kind.itemsize)
        bad = foreign & (times >= clocks[np.where(foreign, writers, core)])
        if bad.any():
            other = int(writers[bad][0])
            found = FaultKind.DOUBLE_WRITE if doing == "writes" else FaultKind.READ_WRITE_RACE
            count = f"{int(np.count_nonzero(bad))} elements of {self.name}"
            message = f"core {core} {doing} {count} that core {other} writes"
            raise fault(found, message, op, core=core, hint="cores only wait for each other in inter_tile_reduce")

    def _check_readers(self, where: Where, kind: np.dtype[Any], op: Operation, core: int, clocks: Clocks) -> None:
        """Refuse to overwrite what another core read, unless this core has waited for it."""
        for time, mask in self.readers.items():
            # A core that published after its time `time` is known here with a later one.
            ahead = sum(1 << other for other in range(clocks.size) if other != core and clocks[other] <= time)
            bad = where.read(mask, self.base, self.unit, kind.itemsize) & np.uint32(ahead)
            if bad.any():
                first = int(bad[bad != 0][0])
                other = (first & -first).bit_length() - 1
                message = f"core {core} writes elements of {self.name} that core {other} reads"
                raise fault(
                    FaultKind.READ_WRITE_RACE,
                    message,
                    op,
                    core=core,
                    hint="cores only wait for each other in inter_tile_reduce",
                )


_TAGS: dict[str, int] = {}


def tag_of(kind: np.dtype[Any]) -> int:
    """Return a number for a numpy type; 0 stands for memory never written."""
    return _TAGS.setdefault(kind.name, len(_TAGS) + 1)


def tag_name(tag: int) -> str:
    """Return the type of a tag."""
    return next(name for name, number in _TAGS.items() if number == tag)
