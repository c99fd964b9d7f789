"""Device memory: a byte address leads to a value and the format last written there.

Memory is made of regions that are added explicitly (arguments, the pool, the scratchpads). A region holds some bytes
and one tag per slot, a slot being the smallest element the memory tells apart. The tag of an element stands in its
first slot; a wider element marks the others as its continuation. What the bytes of a slot are is up to the numerics:
`ExactMemory` keeps a float64 per slot, `spyre_mlir.machine.device_memory` what the hardware has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.hw.formats import DL16, FORMATS, INDEX, INT32, device_format
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.machine.faults import FaultKind, Place, fault

Floats = npt.NDArray[np.float64]
Tags = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Stored = npt.NDArray[Any]  # elements as a kind of memory keeps them

SLOT_BYTES = DL16.bits // 8
_WIDE = np.dtype(np.float64)
UNINITIALISED = 0
CONTINUATION = 255
FORMAT_TAGS = {name: place + 1 for place, name in enumerate(FORMATS)}
# Index tensors are host int32 read as unsigned: the one relabelling that gather relies on.
RELABELS: dict[str, frozenset[str]] = {
    INDEX.name: frozenset({INT32.name}),
    INT32.name: frozenset({INDEX.name}),
}


def element_bytes(format_name: str) -> int:
    """Bytes of one element of a format that memory can hold.

    Raises:
        UnsupportedError: the format is narrower than a slot.
    """
    bits = device_format(format_name).bits
    if bits % (8 * SLOT_BYTES):
        raise UnsupportedError(f"the machine does not hold {bits}-bit elements of format {format_name} yet")
    return bits // 8


def tag_name(tag: int) -> str:
    """What a tag says, for messages."""
    if tag == UNINITIALISED:
        return "nothing"
    if tag == CONTINUATION:
        return "the second half of a wider element"
    return next(name for name, number in FORMAT_TAGS.items() if number == tag)


@dataclass(order=True)
class Region:
    """A run of addresses with contents.

    Args:
        base: first byte address.
        size: bytes.
        name: what it is to the program, for messages.
        slot_size: bytes the host spends per slot.
    """

    base: int
    size: int = field(compare=False)
    name: str = field(compare=False)
    slot_size: int = field(compare=False, repr=False)
    cells: npt.NDArray[np.uint8] = field(init=False, compare=False, repr=False)
    tags: Tags = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        slots = self.size // SLOT_BYTES
        # zeros, not empty: the operating system commits a page at the first write only.
        self.cells = np.zeros(slots * self.slot_size, dtype=np.uint8)
        self.tags = np.zeros(slots, dtype=np.uint8)

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.base + self.size


@dataclass(frozen=True)
class Window:
    """Elements of a region at regular steps.

    Args:
        region: where.
        first: slot of the element at index zero.
        shape: how many along each axis.
        steps: slots from one to the next along each axis.
    """

    region: Region
    first: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    def tags(self, extra: int = 0) -> Tags:
        """View of the tags of the slots `extra` behind the elements' first."""
        return np.ndarray(self.shape, np.uint8, self.region.tags.data, self.first + extra, self.steps)

    def elements(self, kind: np.dtype[Any]) -> Stored:
        """View of what is stored."""
        size = self.region.slot_size
        strides = tuple(step * size for step in self.steps)
        return np.ndarray(self.shape, kind, self.region.cells.data, self.first * size, strides)


class Memory(ABC):
    """All memory one program sees; its kinds differ in what a slot holds.

    Args:
        spec: the machine; gives the stick size and the scratchpads' place and size.
    """

    slot_size: int
    # Whether cores that share a sum hand their parts on unchanged, so that it may be computed in one go.
    partial_sums_are_wide = True

    @abstractmethod
    def stored_type(self, format_name: str) -> np.dtype[Any]:
        """The numpy type of an element as it is stored.

        Raises:
            UnsupportedError: this memory does not hold the format.
        """

    @abstractmethod
    def encode(self, values: npt.ArrayLike, format_name: str) -> Stored:
        """Values as they are stored; where memory is narrow, this is where they are rounded."""

    def from_host(self, values: Floats, format_name: str) -> Floats:
        """Values as a transfer from the host hands them over, before they are encoded."""
        return values

    @abstractmethod
    def decode(self, stored: Stored, format_name: str) -> Floats:
        """Values of what is stored; may be a view of it."""

    @abstractmethod
    def partial_sum(self, values: Floats, format_name: str) -> Floats:
        """A sum so far, over some cores, as the next core receives it."""

    def __init__(self, spec: SpyreSpec = SPYRE) -> None:
        self.spec = spec
        # Scratchpads get addresses after the last segment, so that one number names any byte on the card.
        self.scratchpad_base = spec.segment_base(spec.user_segments + 1)
        self._regions: list[Region] = []

    @property
    def regions(self) -> tuple[Region, ...]:
        """All regions by address."""
        return tuple(self._regions)

    def add_region(self, name: str, base: int, size: int) -> Region:
        """Give a run of addresses contents, all uninitialised.

        Raises:
            InputError: the base is not on a stick, the size is not whole sticks, or the region overlaps another.
        """
        stick = self.spec.stick_bytes
        if base % stick or size % stick or size <= 0:
            raise InputError(f"region {name}: base {base:#x} and size {size} must be whole sticks of {stick} bytes")
        try:
            region = Region(base, size, name, self.slot_size)
        except MemoryError as error:
            message = f"region {name}: the host cannot hold {size} bytes of device memory"
            raise InputError(message, hint="use symbolic addresses, with regions as large as the tensors") from error
        for other in self._regions:
            if other.base < region.end and region.base < other.end:
                raise InputError(f"region {name} at {base:#x}..{region.end:#x} overlaps {other.name}")
        insort(self._regions, region)
        return region

    def allocate(self, name: str, size: int) -> Region:
        """Give a run of addresses contents where there is room, after everything that is there.

        Raises:
            InputError: the segments have no room left.
        """
        stick = self.spec.stick_bytes
        base = max((region.end for region in self._regions if region.base < self.scratchpad_base), default=0)
        whole = -(-size // stick) * stick
        if base + whole > self.scratchpad_base:
            message = f"region {name}: {size} bytes do not fit between {base:#x} and the end of the segments"
            raise InputError(message)
        return self.add_region(name, base, whole)

    def forget_scratchpads(self) -> None:
        """Take the scratchpads' contents away, as between two programs."""
        self._regions = [region for region in self._regions if region.base != self.scratchpad_base]

    def remove_region(self, name: str) -> None:
        """Forget a region and its contents."""
        self._regions = [region for region in self._regions if region.name != name]

    def scratchpad_address(self, core: int, address: int) -> int:
        """The card-wide address of a byte of one core's scratchpad."""
        return self.scratchpad_base + core * self.spec.lx_bytes + address

    def add_scratchpads(self) -> Region:
        """Give every core its scratchpad, if they are not there yet; contents are uninitialised."""
        for region in self._regions:
            if region.base == self.scratchpad_base:
                return region
        return self.add_region("LX", self.scratchpad_base, self.spec.cores_per_card * self.spec.lx_bytes)

    def locate(self, low: int, high: int, place: Place | None = None) -> Region:
        """Find the region that holds bytes ``low`` to ``high`` (exclusive).

        Raises:
            MachineFault: ``out-of-bounds``, naming the nearest region.
        """
        at = bisect_right(self._regions, low, key=lambda region: region.base) - 1
        if at >= 0 and self._regions[at].base <= low and high <= self._regions[at].end:
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
        region, slots, width = self._slots(addresses, format_name)
        self._elements(region, width, format_name)[slots] = self.encode(values, format_name)
        region.tags[slots] = FORMAT_TAGS[format_name]
        for extra in range(1, width):
            region.tags[slots + extra] = CONTINUATION

    def load(self, addresses: Ints, format_name: str) -> tuple[Floats, Bools]:
        """Read single elements, as a transfer to the host does.

        Returns:
            The values, and which of them were ever written.

        Raises:
            MachineFault: an address lies in no region, or another format was written there.
        """
        region, slots, width = self._slots(addresses, format_name)
        tags = region.tags[slots]
        halves = tuple(region.tags[slots + extra] for extra in range(1, width))
        written = check_tags(tags, halves, format_name, lambda index: Place(low=int(addresses.reshape(-1)[index])))
        if written is None:
            written = np.ones(tags.shape, dtype=np.bool_)
        return self.decode(self._elements(region, width, format_name)[slots], format_name), written

    def _elements(self, region: Region, width: int, format_name: str) -> Stored:
        """View of an element at every slot where one may start; elements wider than a slot overlap."""
        return Window(region, 0, (len(region.tags) - width + 1,), (1,)).elements(self.stored_type(format_name))

    def _slots(self, addresses: Ints, format_name: str) -> tuple[Region, Ints, int]:
        size = element_bytes(format_name)
        if addresses.size == 0:
            raise InputError("a transfer needs at least one address")
        region = self.locate(int(addresses.min()), int(addresses.max()) + size)
        return region, (addresses - region.base) // SLOT_BYTES, size // SLOT_BYTES


class ExactMemory(Memory):
    """Memory of exact numerics: every element keeps its wide value in its first slot, and nothing rounds."""

    slot_size = _WIDE.itemsize

    def stored_type(self, format_name: str) -> np.dtype[Any]:
        """Wide, whatever the format."""
        return _WIDE

    def encode(self, values: npt.ArrayLike, format_name: str) -> Stored:
        """The values themselves."""
        return np.asarray(values, dtype=_WIDE)

    def decode(self, stored: Stored, format_name: str) -> Floats:
        """The values themselves."""
        return stored

    def partial_sum(self, values: Floats, format_name: str) -> Floats:
        """The values themselves."""
        return values


def check_tags(
    tags: Tags, halves: tuple[Tags, ...], format_name: str, place_of: Callable[[int], Place]
) -> Bools | None:
    """Tell which elements were written, and refuse those written in another format.

    Args:
        tags: tag of each element's first slot.
        halves: tags of its other slots.
        format_name: the format it is read as.
        place_of: flat element index to the place of a fault.

    Returns:
        Written or not per element; None when all are.

    Raises:
        MachineFault: ``wrong-format``.
    """
    good: Bools = tags == FORMAT_TAGS[format_name]
    for other in RELABELS.get(format_name, ()):
        good |= tags == FORMAT_TAGS[other]
    for half in halves:
        good &= half == CONTINUATION
    if good.all():
        return None
    bad: Bools = ~good & (tags != UNINITIALISED)
    for half in halves:
        bad |= ~good & (half != UNINITIALISED)
    if bad.any():
        first = int(bad.reshape(-1).argmax())
        found = int(tags.reshape(-1)[first])
        text = tag_name(found) if found != FORMAT_TAGS[format_name] else f"{format_name}, partly overwritten"
        raise fault(FaultKind.WRONG_FORMAT, f"read as {format_name}, last written as {text}", place_of(first))
    return good
