"""Rules about memory with undefined initial contents: scratch buffers of a bundle, and the scratchpads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from spyre_mlir.backend.check.bundle import Bundle, CheckedLaunch, line
from spyre_mlir.dialects.sdscbundle import DeviceMemAllocateOp
from spyre_mlir.dialects.superdsc.check.json_file import OperandJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, warning
from spyre_mlir.dialects.superdsc.model import keys


@dataclass(frozen=True)
class _Range:
    """Bytes of one scratch buffer, or of the scratchpads where there is no buffer.

    Args:
        buffer: the scratch buffer.
        first, last: the bytes.
        part: whether they lie in an allocation that is larger than what is touched, follow from data, or are written
            by a launch that reads them too: an update of the result that is there.
    """

    buffer: SSAValue | None
    first: int
    last: int
    part: bool = False

    def meets(self, other: _Range) -> bool:
        """Return whether they share bytes."""
        return self.buffer is other.buffer and self.first <= other.last and other.first <= self.last

    def without(self, other: _Range) -> list[_Range]:
        """Return the parts of the range outside of another one."""
        if not self.meets(other):
            return [self]
        ends = (self.first, other.first - 1), (other.last + 1, self.last)
        return [_Range(self.buffer, first, last) for first, last in ends if first <= last]


@dataclass(frozen=True)
class _Read:
    """A read of a launch, with the writes of earlier launches."""

    launch: CheckedLaunch
    operand: OperandJson
    range: _Range
    written: Sequence[_Range]

    def visible(self) -> list[_Range]:
        """The writes that it sees bytes of, the newest first."""
        found: list[_Range] = []
        rest = [self.range]
        for one in reversed(self.written):
            if any(one.meets(other) for other in rest):
                found.append(one)
                rest = [left for other in rest for left in other.without(one)]
        return found

    def spoilt(self) -> bool:
        """Return whether a result that begins where this reads has another one written over part of it.

        A reader may reach further than its result, into padding that nobody wrote and where anything may lie; so the
        newest write that begins with the read is taken for the result, and what lies within it for an update of rows.
        """
        newer: list[_Range] = []
        for one in self.visible():
            if one.first == self.range.first:
                return any(other.meets(one) and not other.part and other.without(one) for other in newer)
            newer.append(one)
        return False


@warning("scratch memory and scratchpads begin with undefined contents; bundle interface specification", "L")
def written_first(bundle: Bundle) -> Iterator[Problem]:
    """Data read in scratch memory or in a scratchpad was written by an earlier launch."""
    for read in _reads(bundle):
        if not any(read.range.meets(other) for other in read.written):
            yield Problem(line(read.launch.op), f"an earlier write to {read.launch.name(read.operand)}", "none")


@warning("emission checklist: buffers are apart while live, which is the front end's job", "L")
def read_whole(bundle: Bundle) -> Iterator[Problem]:
    """Data read in scratch memory or in a scratchpad is no result that another one was partly written over."""
    for read in _reads(bundle):
        if read.spoilt():
            name = read.launch.name(read.operand)
            yield Problem(line(read.launch.op), f"one result in {name}", "another over part of it", "move one of them")


def _reads(bundle: Bundle) -> Iterator[_Read]:
    """Every operand that is read from undefined memory, launch by launch."""
    written: list[_Range] = []
    for launch in bundle.launches():
        sdsc = bundle.files.get(launch.file)
        for dsc in sdsc.dscs if sdsc is not None else ():
            inputs = {*dsc.references(keys.INPUTS), *dsc.references(keys.INDICES)} - {dsc.output.number}
            read: list[_Range] = []
            for number in sorted(inputs):
                one = _range(bundle, launch, dsc.operands[number])
                if one is not None:
                    yield _Read(launch, dsc.operands[number], one, written)
                    read.append(one)
            result = _range(bundle, launch, dsc.output)
            if result is not None:
                written.append(replace(result, part=True) if result in read else result)


def _range(bundle: Bundle, launch: CheckedLaunch, operand: OperandJson) -> _Range | None:
    """Return the range of an operand over all cores, if it is in memory with undefined initial contents."""
    part = not operand.is_plain or any(operand.gaps.values())
    numbers = [place.number() for place in operand.starts]
    if operand.component == keys.LX:
        return _Range(None, min(numbers), max(numbers) + operand.touched_bytes - 1, part)
    places = [bundle.place(launch.addresses[number]) for number in numbers if number in launch.addresses]
    owner = places[0][0] if places else None
    if owner is None or not isinstance(owner.owner, DeviceMemAllocateOp):
        return None
    offsets = [offset for _, offset in places]
    return _Range(owner, min(offsets), max(offsets) + operand.touched_bytes - 1, part)
