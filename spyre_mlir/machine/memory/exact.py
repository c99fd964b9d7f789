"""Device memory: a byte address maps to a value and the format last written there.

Memory is made of regions that are added explicitly (arguments, the pool, the scratchpads). A region holds values, and
what was ever written where (`spyre_mlir.machine.memory.region`). An element's value stands where its first byte does,
in a wide number of the host; which one is up to the numerics: `ExactMemory` keeps float64, and
`spyre_mlir.machine.memory.device_numerics` the value of the bytes that the hardware would have.

Decision: docs/decisions/0002-exact-memory.md
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from spyre_mlir.errors import InputError
from spyre_mlir.hw.formats import FORMATS
from spyre_mlir.hw.number_formats import encoding
from spyre_mlir.hw.number_formats.rounding import Tally
from spyre_mlir.hw.spec import SPYRE, STICK_BYTES, USER_SEGMENTS, SpyreSpec, segment_base
from spyre_mlir.machine.eager_rounding import as_eager, operands_as, slot_type
from spyre_mlir.machine.faults import FaultKind, FaultLog, Place, fault
from spyre_mlir.machine.memory.region import MemoryRegion, Spare, Stored, StridedWindow
from spyre_mlir.machine.memory.shadow import Bools, Ints, Tags, element_bytes

Floats = npt.NDArray[Any]  # float64; in device numerics float32 where that is exact

_WIDE = np.dtype(np.float64)


class Memory(ABC):
    """All memory that one program sees; subclasses differ in the contents of a slot.

    Args:
        spec: the machine; gives the stick size and the scratchpads' place and size.
    """

    # Bytes the host spends per byte of the device.
    scale: int
    # Whether it is kept what was written where, and in which format.
    tracked = True
    # Whether it holds numbers beyond those of the device's formats.
    unbounded = True
    # Whether cores that share a sum hand their parts on unchanged, so that it may be computed in one go.
    partial_sums_are_wide = True

    @abstractmethod
    def stored_type(self, format_name: str) -> np.dtype[Any]:
        """Return the numpy type of a stored element.

        Raises:
            UnsupportedError: this memory does not hold the format.
        """

    def put(
        self,
        target: Stored,
        values: npt.ArrayLike,
        format_name: str,
        *,
        from_host: bool = False,  # noqa: ARG002 - an override that rounds counts what the host sends
    ) -> None:
        """Store values; narrow memory rounds them here.

        Args:
            target: the elements, of `stored_type`.
            values: of the same shape, or one that broadcasts to it.
            format_name: the format.
            from_host: whether a transfer from the host hands them over.
        """
        self.count_integers(np.asarray(values), format_name)
        target[...] = values

    def move(self, target: Stored, values: npt.NDArray[Any], format_name: str) -> None:
        """Store values that were read from memory in the same format; by default as any others."""
        self.put(target, values, format_name)

    def put_codes(self, target: Stored, codes: npt.NDArray[Any], format_name: str) -> None:
        """Store what the host sends as the device's bits."""
        self.put(target, encoding.decode(codes, format_name), format_name, from_host=True)

    def count_integers(self, values: npt.NDArray[Any], format_name: str) -> None:
        """Count the values outside an integer format."""
        if FORMATS[format_name].floating or values.size == 0:
            return
        low, high = FORMATS[format_name].integers
        with np.errstate(invalid="ignore"):
            self.tally.integers += int(((values < low) | (values > high)).sum())

    def numbers(self, stored: Stored, format_name: str) -> Floats:  # noqa: ARG002 - overrides look
        """Return elements as functions compute on them; may be a view."""
        return stored

    @abstractmethod
    def partial_sum(self, values: Floats, format_name: str) -> Floats:
        """Return a partial sum over some cores, as the next core receives it."""

    def __init__(self, spec: SpyreSpec = SPYRE) -> None:
        self.spec = spec
        # Scratchpads get addresses after the last segment, so that one number names any byte on the card.
        self.scratchpad_base = segment_base(USER_SEGMENTS + 1)
        self._regions: list[MemoryRegion] = []
        self._bases: list[int] = []
        # What `locate` found since regions last changed: launches ask for the same bytes several times.
        self._located: dict[tuple[int, int], MemoryRegion] = {}
        # Which launch is running; 0 is the host.
        self.step = 0
        self.log = FaultLog()
        self.tally = Tally()
        self.spare: Spare = {}
        self.nan_is_a_fault = False
        # Operations whose results are integers in a format of floats, and how many elements of the dim in the lanes
        # are no padding.
        self.integer_kernels: dict[int, int] = {}
        # Element types of the model that results have, by operation, and the one of the operation that runs.
        self.elements: dict[int, str] = {}
        self.element: str | None = None
        # Names of the regions that are arguments of a bundle.
        self.arguments: set[str] = set()

    @property
    def regions(self) -> tuple[MemoryRegion, ...]:
        """Return all regions by address."""
        return tuple(self._regions)

    def add_region(self, name: str, base: int, size: int, *, sparse: bool = False, zeroed: bool = True) -> MemoryRegion:
        """Add an address range, uninitialised.

        Args:
            name: for messages.
            base: first byte address.
            size: bytes.
            sparse: whether only a little of it will be used.
            zeroed: whether bytes that nothing wrote read as 0.

        Raises:
            InputError: the base is not on a stick, the size is not whole sticks, or the region overlaps another.
        """
        stick = STICK_BYTES
        if base % stick or size % stick or size <= 0:
            raise InputError(f"region {name}: base {base:#x} and size {size} must be whole sticks of {stick} bytes")
        try:
            region = MemoryRegion(base, size, name, self.scale, self.spare, sparse, zeroed, self.tracked)
        except MemoryError as error:
            message = f"region {name}: the host cannot hold {size} bytes of device memory"
            raise InputError(message, hint="use symbolic addresses, with regions as large as the tensors") from error
        at = bisect_right(self._bases, base)
        for other in self._regions[max(0, at - 1) : at + 1]:
            if other.base < region.end and region.base < other.end:
                raise InputError(f"region {name} at {base:#x}..{region.end:#x} overlaps {other.name}")
        self._regions.insert(at, region)
        self._bases.insert(at, base)
        self._located.clear()
        return region

    @property
    def free(self) -> int:
        """The first byte behind all regions of the segments."""
        last = bisect_left(self._bases, self.scratchpad_base)
        return self._regions[last - 1].end if last else 0

    def allocate(self, name: str, size: int, *, zeroed: bool = True, first_fit: bool = False) -> MemoryRegion:
        """Add an address range behind all existing ones, or in the first gap that has room for it; see `add_region`.

        Raises:
            InputError: the segments have no room left.
        """
        stick, base = STICK_BYTES, self.free
        whole = -(-size // stick) * stick
        if first_fit:
            ends = [0, *(region.end for region in self._regions)]
            starts = [*self._bases, self.scratchpad_base]
            base = next((end for end, start in zip(ends, starts, strict=True) if start - end >= whole), base)
        if base + whole > self.scratchpad_base:
            message = f"region {name}: {size} bytes do not fit between {base:#x} and the end of the segments"
            raise InputError(message)
        return self.add_region(name, base, whole, zeroed=zeroed)

    def forget_scratchpads(self) -> None:
        """Drop the contents of the scratchpads, as between two programs."""
        self._release([region for region in self._regions if region.base == self.scratchpad_base])

    def remove_region(self, name: str) -> None:
        """Remove a region and its contents."""
        self._release([region for region in self._regions if region.name == name])

    def release_all(self) -> None:
        """Remove every region; the next memory with the same `spare` can reuse their arrays."""
        self._release(self._regions)

    def release(self, gone: Sequence[MemoryRegion]) -> None:
        """Remove regions and their contents."""
        if gone:
            self._release(list(gone))

    def _release(self, gone: list[MemoryRegion]) -> None:
        self._regions = [region for region in self._regions if all(region is not other for other in gone)]
        self._bases = [region.base for region in self._regions]
        self._located.clear()
        for region in gone:
            if (left := region.leftover()) is not None:
                self.spare.setdefault(len(region.cells), []).append(left)

    def scratchpad_address(self, core: int, address: int) -> int:
        """Return the card-wide address of a byte of one core's scratchpad."""
        return self.scratchpad_base + core * self.spec.lx_bytes + address

    def add_scratchpads(self) -> MemoryRegion:
        """Give every core its scratchpad, unless present; contents are uninitialised."""
        if self._bases and self._bases[-1] >= self.scratchpad_base:
            return self._regions[-1]
        size = self.spec.cores_per_card * self.spec.lx_bytes
        region = self.add_region("LX", self.scratchpad_base, size, sparse=True)
        region.scratch = True
        return region

    def locate(self, low: int, high: int, place: Place | None = None) -> MemoryRegion:
        """Find the region that holds bytes ``low`` to ``high`` (exclusive).

        Raises:
            MachineFault: ``out-of-bounds``, naming the nearest region.
        """
        known = self._located.get((low, high))
        if known is not None:
            return known
        at = bisect_right(self._bases, low) - 1
        if at >= 0 and high <= self._regions[at].end:
            self._located[low, high] = self._regions[at]
            return self._regions[at]
        where = place or Place(low=low, high=high)
        if not self._regions:
            raise fault(FaultKind.OUT_OF_BOUNDS, f"bytes {low:#x}..{high:#x}: memory has no regions", where)
        near = min(self._regions, key=lambda region: max(region.base - low, high - region.end))
        raise fault(
            FaultKind.OUT_OF_BOUNDS,
            f"bytes {low:#x}..{high:#x} are in no region; nearest is {near.name} at {near.base:#x}..{near.end:#x}",
            where,
        )

    def store(self, addresses: Ints, values: npt.ArrayLike, format_name: str) -> None:
        """Write single elements, as a transfer from the host does.

        Raises:
            MachineFault: an address lies in no region.
        """
        region, at, width = self._put_at(addresses, values, format_name)
        if self.tracked:
            region.states.write_elements(at, width, format_name, None, self.step)

    def amend(self, addresses: Ints, values: npt.ArrayLike, format_name: str) -> None:
        """Change single elements as if their writer had written these values.

        Raises:
            MachineFault: an address lies in no region.
        """
        self._put_at(addresses, values, format_name)

    def _put_at(self, addresses: Ints, values: npt.ArrayLike, format_name: str) -> tuple[MemoryRegion, Ints, int]:
        region, at, width = self._bytes(addresses, format_name)
        region.clear()
        region.own()
        wide = np.broadcast_to(np.asarray(values), at.shape)
        stored = np.empty(at.shape, self.stored_type(format_name))
        self.put(stored, wide, format_name)
        self._elements(region, width, format_name)[at] = stored
        return region, at, width

    def load(self, addresses: Ints, format_name: str) -> tuple[Floats, Bools]:
        """Read single elements, as a transfer to the host does.

        Returns:
            The values, and which of them were ever written.

        Raises:
            MachineFault: an address lies in no region, or another format was written there.
        """
        region, at, width = self._bytes(addresses, format_name)
        if not self.tracked:
            stored = self._elements(region, width, format_name)[at]
            return self.numbers(stored, format_name), np.ones(at.shape, dtype=np.bool_)
        region.clear()
        reading = region.states.read_elements(at, width, format_name)
        if reading.wrong is not None:
            place = Place(low=int(addresses[reading.wrong]))
            raise fault(FaultKind.WRONG_FORMAT, f"read as {format_name}, last written as {reading.found}", place)
        written = np.ones(at.shape, dtype=np.bool_) if reading.written is None else reading.written
        values = self._elements(region, width, format_name)[at]
        return self.numbers(values, format_name), written

    def _elements(self, region: MemoryRegion, width: int, format_name: str) -> Stored:
        """View of an element at every byte where one may start; they overlap."""
        return StridedWindow(region, 0, (region.size - width + 1,), (1,)).elements(self.stored_type(format_name))

    def _bytes(self, addresses: Ints, format_name: str) -> tuple[MemoryRegion, Ints, int]:
        width = element_bytes(format_name)
        if addresses.size == 0:
            raise InputError("a transfer needs at least one address")
        region = self.locate(int(addresses.min()), int(addresses.max()) + width)
        return region, addresses - region.base, width


class ExactMemory(Memory):
    """Memory of exact numerics: every element keeps its wide value, and no format rounds it.

    What rounds is the element type of the model: the results of operations that are float32 there are float32 numbers.

    Elements of one byte have room for a float32, which all of theirs are.
    """

    scale = _WIDE.itemsize // 2

    def stored_type(self, format_name: str) -> np.dtype[Any]:
        """Return the wide type, whatever the format."""
        width = element_bytes(format_name)
        return np.dtype(np.float32) if width == 1 else slot_type(format_name)

    @override
    def numbers(self, stored: Stored, format_name: str) -> Floats:
        """Return values as the running operation computes on them: integers where it is an integer operation."""
        return operands_as(stored, self.element)

    @override
    def put(self, target: Stored, values: npt.ArrayLike, format_name: str, *, from_host: bool = False) -> None:
        """Store values in the element type of the running operation."""
        wide = np.asarray(values)
        super().put(target, wide if self.element is None else as_eager(wide, self.element), format_name)

    @override
    def partial_sum(self, values: Floats, format_name: str) -> Floats:
        """Return the values themselves."""
        return values


__all__ = ["Bools", "ExactMemory", "Floats", "Ints", "Memory", "MemoryRegion", "Stored", "Tags", "element_bytes"]
