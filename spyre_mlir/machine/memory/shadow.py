"""Shadow state of memory: per stick, one format and the number of its leading bytes that hold it.

Nearly every stick is written from its first byte on in one format, so two small numbers say all about it. A stick
that is not, is mixed: it has a tag per byte, as long as it needs one. A wider element stands as the tag of its format
in its first byte, and marks the others as its continuation.

Decision: docs/decisions/0044-states-per-stick.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import FORMATS, INDEX, INT32, device_format
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.memory.pages import sparse_zeros

Tags = npt.NDArray[np.uint8]
Number = TypeVar("Number", bound=np.generic)
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

STICK = STICK_BYTES
UNINITIALISED = 0
HOST = 0  # the writer of what a transfer sent, and of what nobody wrote
MIXED = 254
CONTINUATION = 255
FORMAT_TAGS = {name: place + 1 for place, name in enumerate(FORMATS)}
# Index tensors are host int32 read as unsigned: the one relabelling that gather relies on.
RELABELS: dict[str, frozenset[str]] = {
    INDEX.name: frozenset({INT32.name}),
    INT32.name: frozenset({INDEX.name}),
}


def element_bytes(format_name: str) -> int:
    """Return the bytes of one element of a format that memory can hold.

    Raises:
        UnsupportedError: the format is narrower than a byte.
    """
    bits = device_format(format_name).bits
    if bits % 8:
        raise UnsupportedError(f"the machine does not hold {bits}-bit elements of format {format_name} yet")
    return bits // 8


def tag_name(tag: int) -> str:
    """Return a tag's description for messages."""
    if tag == UNINITIALISED:
        return "nothing"
    if tag == CONTINUATION:
        return "the second half of a wider element"
    return next(name for name, number in FORMAT_TAGS.items() if number == tag)


def _patterns() -> Tags:
    """A full stick of each format, byte by byte, by tag."""
    rows = np.zeros((256, STICK), dtype=np.uint8)
    for name, tag in FORMAT_TAGS.items():
        rows[tag] = CONTINUATION
        rows[tag, :: max(1, FORMATS[name].bits // 8)] = tag
    return rows


_PATTERNS = _patterns()
_WIDTHS = np.ones(256, dtype=np.int64)
for _name, _tag in FORMAT_TAGS.items():
    _WIDTHS[_tag] = max(1, FORMATS[_name].bits // 8)
_BYTES = np.arange(STICK)
_LANES = np.arange(STICK, dtype=np.uint8)


def everywhere(mask: Bools) -> bool:
    """Return whether all of a mask is set; quicker on a few elements than numpy's own."""
    return int(np.count_nonzero(mask)) == mask.size


def spread(array: npt.NDArray[Number], shape: Sequence[int]) -> npt.NDArray[Number]:
    """Return an array broadcast to a shape; itself if it has that."""
    return array if array.shape == tuple(shape) else np.broadcast_to(array, shape)


@dataclass(frozen=True)
class StickBox:
    """Leading bytes of sticks at regular steps.

    Args:
        first: number of the stick at index zero.
        shape: how many sticks along each axis.
        steps: sticks from one to the next along each axis.
        lanes: elements touched in each stick.
        width: bytes of one element.
    """

    first: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    lanes: int
    width: int

    @property
    def bytes(self) -> int:
        """Bytes touched in each stick."""
        return self.lanes * self.width

    def view(self, array: npt.NDArray[Number]) -> npt.NDArray[Number]:
        """Return the box in an array with one entry per stick."""
        size = array.itemsize
        strides = self.steps if size == 1 else tuple([step * size for step in self.steps])
        return np.ndarray(self.shape, array.dtype, array.data, self.first * size, strides)

    def sticks(self) -> Ints:
        """Return the number of every stick."""
        result = np.full((1,) * len(self.shape), self.first, dtype=np.int64)
        for place, (count, step) in enumerate(zip(self.shape, self.steps, strict=True)):
            line = np.arange(count, dtype=np.int64) * step
            result = result + line.reshape([-1 if at == place else 1 for at in range(len(self.shape))])
        return result


@dataclass(frozen=True)
class ShadowRead:
    """State found by a read.

    Args:
        written: per element, one axis per axis of the box and one for lanes, each of size one where nothing changes
            along it; None when all were written.
        wrong: index of the first element that holds another format, if any does.
        found: what is there instead.
    """

    written: Bools | None
    wrong: tuple[int, ...] | None = None
    found: str = ""


class ShadowMemory:
    """The states of the bytes of one region, and the step that last wrote each stick.

    Args:
        size: bytes.
    """

    def __init__(self, size: int) -> None:
        sticks = size // STICK
        self.tags: Tags = np.zeros(sticks, dtype=np.uint8)
        self.known: Tags = np.zeros(sticks, dtype=np.uint8)
        self.writer: npt.NDArray[np.int32] = np.zeros(sticks, dtype=np.int32)
        self._bytes: Tags | None = None

    def copy(self) -> ShadowMemory:
        """Return an independent copy of the states."""
        made = ShadowMemory(0)
        made.tags, made.known, made.writer = self.tags.copy(), self.known.copy(), self.writer.copy()
        made._bytes = None if self._bytes is None else self._bytes.copy()
        return made

    @property
    def empty(self) -> bool:
        """Return whether nothing was ever written."""
        return not (self.known.any() or self.writer.any())

    def equals(self, other: ShadowMemory) -> bool:
        """Return whether two states are known to be the same; False when in doubt, of mixed sticks."""
        if self is other:
            return True
        if self._bytes is not None or other._bytes is not None:
            return False
        pairs = (self.known, other.known), (self.tags, other.tags), (self.writer, other.writer)
        return all(np.array_equal(one, another) for one, another in pairs)

    def read(self, box: StickBox, format_name: str, *, scratch: bool = False) -> ShadowRead:
        """Return the state that a read of a box in a format finds.

        Args:
            box: which sticks.
            format_name: the format.
            scratch: whether memory is used again by other tensors: what another format left there, beside elements of
                this one, lies in padding and counts as never written.
        """
        tags, known, tag = box.view(self.tags), box.view(self.known), FORMAT_TAGS[format_name]
        if everywhere(tags == tag) and everywhere(known >= box.bytes):
            return ShadowRead(None)
        right = tags == tag
        for other in RELABELS.get(format_name, ()):
            right |= tags == FORMAT_TAGS[other]
        if everywhere(right) and everywhere(known >= box.bytes):
            return ShadowRead(None)
        if self._bytes is not None and np.count_nonzero(tags == MIXED):
            rows = self._rows(box.sticks().reshape(-1))[:, : box.bytes]
            return _reading(rows.reshape(*box.shape, box.lanes, box.width), format_name, scratch=scratch)
        wrong = ~right & (tags != UNINITIALISED)
        if scratch and right.any():
            known = np.where(wrong, 0, known)
        elif wrong.any():
            at = _first(wrong)
            return ShadowRead(None, (*at, 0), tag_name(int(tags[at])))
        lanes = _constant(known) // box.width
        return ShadowRead(lanes[..., None] > _LANES[: box.lanes])

    def write(self, box: StickBox, format_name: str, written: Bools | None, writer: int) -> None:
        """Record a write to a box; elements that are unset in `written` become uninitialised."""
        tags, known, tag = box.view(self.tags), box.view(self.known), FORMAT_TAGS[format_name]
        box.view(self.writer)[...] = writer
        whole = box.bytes == STICK
        lasting = not whole and bool(np.count_nonzero((tags != tag) & (known > box.bytes)))
        if written is None and not lasting:
            if whole:
                known[...] = STICK
            else:
                np.maximum(known, np.uint8(box.bytes), out=known)
            tags[...] = tag
            return
        if written is not None and not lasting and (whole or everywhere(known <= box.bytes)):
            counts = spread(written, (*written.shape[:-1], box.lanes)).sum(axis=-1)
            if everywhere(written == (_LANES[: box.lanes] < counts[..., None])):
                tags[...] = np.where(counts > 0, tag, UNINITIALISED)
                known[...] = counts * box.width
                return
        self._write_bytes(box, tag, written)

    def _write_bytes(self, box: StickBox, tag: int, written: Bools | None) -> None:
        sticks = box.sticks().reshape(-1)
        rows = self._rows(sticks)
        inside = rows[:, : box.bytes].reshape(*box.shape, box.lanes, box.width)
        pattern = _PATTERNS[tag, : box.bytes].reshape(box.lanes, box.width)
        inside[...] = pattern if written is None else np.where(written[..., None], pattern, UNINITIALISED)
        rows[:, : box.bytes] = inside.reshape(len(rows), box.bytes)
        self._keep(sticks, rows)

    def read_elements(self, at: Ints, width: int, format_name: str, *, scratch: bool = False) -> ShadowRead:
        """Return the state that a read of single elements finds.

        Args:
            at: first byte of each, from the start of the region.
            width: bytes of one.
            format_name: the format.
            scratch: see `read`.
        """
        sticks, place = np.unique(at // STICK, return_inverse=True)
        lanes = np.minimum((at % STICK)[..., None] + np.arange(width), STICK - 1)
        rows = self._rows(sticks)[place.reshape(at.shape)[..., None], lanes]
        return _reading(rows, format_name, scratch=scratch)

    def write_elements(self, at: Ints, width: int, format_name: str, written: Bools | None, writer: int) -> None:
        """Record a write to single elements."""
        sticks, place = np.unique(at // STICK, return_inverse=True)
        rows = self._rows(sticks)
        pattern = np.full(width, CONTINUATION, dtype=np.uint8)
        pattern[0] = FORMAT_TAGS[format_name]
        values = pattern if written is None else np.where(written[..., None], pattern, UNINITIALISED)
        rows[place.reshape(at.shape)[..., None], (at % STICK)[..., None] + np.arange(width)] = values
        self.writer[sticks] = writer
        self._keep(sticks, rows)

    def tags_of(self, low: int, count: int) -> Tags:
        """Return the tag of each of some bytes."""
        first, last = low // STICK, -(-(low + count) // STICK)
        return self._rows(np.arange(first, last)).reshape(-1)[low - first * STICK :][:count]

    def elements_of(self, tags: Tags) -> Iterator[tuple[str, Ints]]:
        """Return the starts of elements of each format."""
        for name, tag in FORMAT_TAGS.items():
            at = np.flatnonzero(tags == tag)
            if at.size:
                yield name, at

    def _rows(self, sticks: Ints) -> Tags:
        """Tag per byte of some sticks."""
        tags, known = self.tags[sticks], self.known[sticks]
        rows = np.where(known[:, None] > _BYTES, _PATTERNS[tags], np.uint8(UNINITIALISED))
        mixed = tags == MIXED
        if self._bytes is not None and mixed.any():
            rows[mixed] = self._bytes.reshape(-1, STICK)[sticks[mixed]]
        return rows

    def _keep(self, sticks: Ints, rows: Tags) -> None:
        """Take tags per byte over, in the short form where they have one."""
        tags, known = rows[:, 0], (rows != UNINITIALISED).sum(axis=1)
        short = (rows == np.where(known[:, None] > _BYTES, _PATTERNS[tags], UNINITIALISED)).all(axis=1)
        short &= known % _WIDTHS[tags] == 0
        self.tags[sticks] = np.where(short, tags, MIXED)
        self.known[sticks] = np.where(short, known, STICK)
        if not short.all():
            if self._bytes is None:
                self._bytes = sparse_zeros(len(self.tags) * STICK)
            self._bytes.reshape(-1, STICK)[sticks[~short]] = rows[~short]


def _reading(rows: Tags, format_name: str, *, scratch: bool = False) -> ShadowRead:
    """From one tag per byte, the last axis being the bytes of an element; see `ShadowMemory.read`."""
    first, others = rows[..., 0], rows[..., 1:]
    good = first == FORMAT_TAGS[format_name]
    for other in RELABELS.get(format_name, ()):
        good |= first == FORMAT_TAGS[other]
    good &= (others == CONTINUATION).all(axis=-1)
    if good.all():
        return ShadowRead(None)
    bad = ~good & (rows != UNINITIALISED).any(axis=-1)
    if not bad.any() or (scratch and good.any()):
        return ShadowRead(good)
    at = _first(bad)
    found = int(first[at])
    text = tag_name(found) if found != FORMAT_TAGS[format_name] else f"{format_name}, partly overwritten"
    return ShadowRead(None, at, text)


def _first(mask: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(mask.argmax()), mask.shape))


def _constant(array: Tags) -> Tags:
    """The same numbers with size one along axes where they do not change."""
    if everywhere(array == array[(0,) * array.ndim]):
        return array[(slice(0, 1),) * array.ndim]
    for axis in range(array.ndim):
        head = array[tuple(slice(0, 1) if at == axis else slice(None) for at in range(array.ndim))]
        if array.shape[axis] > 1 and (array == head).all():
            array = head
    return array


__all__ = [
    "CONTINUATION",
    "FORMAT_TAGS",
    "HOST",
    "MIXED",
    "STICK",
    "UNINITIALISED",
    "Bools",
    "Ints",
    "ShadowMemory",
    "ShadowRead",
    "StickBox",
    "Tags",
    "element_bytes",
    "everywhere",
    "spread",
]
