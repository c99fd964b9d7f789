"""Rules about the dataflow of a bundle: arguments are used, and results are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from spyre_mlir.backend.check.bundle import Bundle, CheckedLaunch, line
from spyre_mlir.dialects.sdscbundle import DeviceMemAllocateOp, SdscExecuteOp
from spyre_mlir.dialects.superdsc.check.json_file import DscJson, OperandJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, Rule, warning
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.hw.spec import STICK_BYTES

# Of loops with more trips in all, no launch is judged: each trip takes part of a millisecond.
MOST_LAUNCHES = 1024
_NOBODY = -1
Ints = NDArray[np.int64]


@warning("a bundle has the arguments that its model needs", "I")
def argument_used(bundle: Bundle) -> Iterator[Problem]:
    """Every argument is an address that some launch uses."""
    if bundle.function is None or not bundle.function.body.blocks:
        return
    used = {bundle.place(address)[0] for launch in bundle.launches() for address in launch.addresses.values()}
    for number, argument in enumerate(bundle.function.body.block.args):
        if argument not in used:
            yield Problem(line(bundle.function), f"a launch that uses argument {number}", "none")


@warning("unused values are not computed", "I")
def result_read(bundle: Bundle) -> Iterator[Problem]:
    """Data written by a launch in scratch memory or in a scratchpad is read before all of it is overwritten."""
    count = bundle.number_of_launches()
    if count is None or count > MOST_LAUNCHES:
        return
    memory = _Writers()
    launched: dict[SdscExecuteOp, int] = {}
    for launch in bundle.launches_in_order():
        sdsc, writer = bundle.files.get(launch.file), launched.setdefault(launch.op, len(launched))
        for dsc in sdsc.dscs if sdsc is not None else ():
            for number in sorted({*dsc.references(keys.INPUTS), *dsc.references(keys.INDICES)}):
                if (touched := _touched(bundle, launch, dsc.operands[number])) is not None:
                    memory.read(*touched)
            _write(bundle, launch, dsc, memory, writer)
    unread = memory.wrote - memory.seen
    for op in [op for op, number in launched.items() if number in unread]:
        yield Problem(line(op), f"a launch that reads the result of {op.sdsc_filename.data}", "none")


def _write(bundle: Bundle, launch: CheckedLaunch, dsc: DscJson, memory: _Writers, number: int) -> None:
    touched = _touched(bundle, launch, dsc.output)
    if touched is not None and dsc.output.is_plain:
        memory.write(*touched, number)


@dataclass
class _Writers:
    """Last writer of each stick, per scratch buffer; the scratchpads count as one more."""

    wrote: set[int] = field(default_factory=set[int])
    seen: set[int] = field(default_factory=set[int])
    _last: dict[SSAValue | None, Ints] = field(default_factory=dict[SSAValue | None, Ints])

    def _array(self, owner: SSAValue | None, size: int) -> Ints:
        array = self._last.get(owner, np.full(0, _NOBODY, np.int64))
        if len(array) < size:
            array = np.concatenate([array, np.full(max(size, 2 * len(array)) - len(array), _NOBODY, np.int64)])
            self._last[owner] = array
        return array

    def write(self, owner: SSAValue | None, sticks: Ints, number: int) -> None:
        """A launch overwrites sticks."""
        self._array(owner, int(sticks.max()) + 1)[sticks] = number
        self.wrote.add(number)

    def read(self, owner: SSAValue | None, sticks: Ints) -> None:
        """Some launch reads sticks."""
        self.seen |= {int(n) for n in np.unique(self._array(owner, int(sticks.max()) + 1)[sticks])}


def _touched(bundle: Bundle, launch: CheckedLaunch, operand: OperandJson) -> tuple[SSAValue | None, Ints] | None:
    """The sticks that all cores touch of an operand in scratch memory; None if they lie elsewhere or are not known."""
    numbers = [place.number() for place in operand.starts]
    owner: SSAValue | None = None
    size = bundle.spec.lx_bytes
    if operand.component != keys.LX:
        places = [bundle.place(launch.addresses[number]) for number in numbers if number in launch.addresses]
        owner = places[0][0] if places else None
        if owner is None or not isinstance(owner.owner, DeviceMemAllocateOp):
            return None
        numbers = [offset for _, offset in places]
        size = owner.owner.size.value.data
    # Of rows that indices pick, some may be picked several times: there may be fewer of them than are read.
    least = operand.touched_bytes if operand.is_plain else STICK_BYTES
    if not all(0 <= number <= size - least for number in numbers):
        return None  # a rule of its own says that it leaves the memory
    stick = STICK_BYTES
    sticks = np.unique(np.asarray(numbers, np.int64) // stick)
    if operand.is_plain:
        for label, step in operand.steps.items():
            sticks = (sticks[:, None] + np.arange(operand.box[label]) * (step // stick)).reshape(-1)
    else:
        end = int(sticks[-1]) + -(-operand.touched_bytes // stick)
        sticks = np.arange(int(sticks[0]), min(end, size // stick))
    return (owner, sticks) if sticks.size else None


DATAFLOW_RULES: tuple[Rule[Bundle], ...] = (argument_used, result_read)
