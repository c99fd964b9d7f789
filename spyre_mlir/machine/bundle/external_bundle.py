"""Runs of external bundles, given only public files: `bundle.mlir` and SuperDSCs, or one SuperDSC.

Nothing says what such a bundle's tensors are. What can be known is found by walking through its launches without
running them: what a launch reads and no launch before it wrote, is an input; what a launch writes and none after it
reads, is a result. A tensor has the shape its first reader sees: the dims of the operation, padding included.

Decision: docs/decisions/0048-inputs-by-launches.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
from xdsl.dialects.builtin import IntAttr, ModuleOp

from spyre_mlir.choices import RANDOM_INTEGERS_BELOW
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION, InputArgType, SdscExecuteOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, IndirectKind, Operand
from spyre_mlir.dialects.superdsc.model.keys import LX
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.errors import InputError
from spyre_mlir.hw.formats import device_format
from spyre_mlir.hw.spec import SPYRE, STICK_BYTES, SpyreSpec
from spyre_mlir.machine.arrays import Array
from spyre_mlir.machine.bundle.launch_trace import BoundLaunch
from spyre_mlir.machine.bundle.probes import operand_labels, operand_values
from spyre_mlir.machine.bundle.run import Loader, run_bundle
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.levels.run import find_function
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.exact import ExactMemory, Ints, Memory
from spyre_mlir.machine.memory.operand_views import OperandLayout, slice_table
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.machine.superdsc.stale_reads import History

# Far apart, and behind the segments and the scratchpads: a symbolic bundle runs wherever its arguments are.
_ARGUMENT_BYTES = 1 << 40


@dataclass(frozen=True)
class ExternalLaunch:
    """One launch: its descriptor and addresses."""

    op: SdscExecuteOp
    name: str
    view: Descriptor
    symbols: Mapping[int, int]

    def sticks(self, index: int) -> Ints:
        """Return the sticks of an operand that any core touches, in order; for a gathered table all it has."""
        layout = OperandLayout(self.view, index, ExactMemory(), self.symbols)
        if is_table(self.view.operands[index]):
            first = int(layout.starts.min()) // STICK_BYTES
            return np.arange(first, first + self.view.operands[index].allocated_sticks())
        found = [_distinct(layout.core(core).addresses() // STICK_BYTES) for core in range(self.view.cores)]
        return _distinct(np.concatenate(found))


def _distinct(sticks: Ints) -> Ints:
    """Every number once, in order. By sorting: numpy's own way hashes, and addresses collide in it by the thousand."""
    ordered = np.sort(sticks, axis=None)
    return ordered[np.diff(ordered, prepend=-1) != 0]


@dataclass(frozen=True)
class ExternalTensor:
    """An operand that the bundle expects as input, or leaves as result.

    Attributes:
        step: the launch that reads it first, or writes it last.
        index: which operand of the launch.
        sticks: those that come from outside; all that it touches for a result.
        partly: whether other parts of the operand are written by the bundle itself.
    """

    step: ExternalLaunch
    index: int
    sticks: Ints
    partly: bool = False

    @property
    def name(self) -> str:
        """Name of the launch and of the operand in its file."""
        return f"{self.step.name}.Tensor{self.index}"

    @property
    def operand(self) -> Operand:
        """The operand in its file."""
        return self.step.view.operands[self.index]

    @property
    def labels(self) -> tuple[str, ...]:
        """Dims of the tensor; none for a gathered table, whose rows are not stated."""
        return () if is_table(self.operand) else operand_labels(self.step.view, self.index)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of every dim, padding included; of a gathered table [sticks, lanes]."""
        if is_table(self.operand):
            return self.device_shape
        return tuple(self.step.view.dim(label).extent for label in self.labels)

    @property
    def device_shape(self) -> tuple[int, int]:
        """Shape of the device tensor: [sticks, lanes]."""
        return (len(self.sticks), self.operand.elements_per_stick)

    @property
    def address(self) -> int:
        """The first byte; in LX of the first core's scratchpad."""
        return int(self.sticks[0]) * STICK_BYTES


def is_table(operand: Operand) -> bool:
    """Return whether the operand is a table that indices select rows of."""
    return operand.indirect is not None and operand.indirect.kind is IndirectKind.VALUE


@dataclass(frozen=True)
class ExternalProgram:
    """The launches of a bundle in order, and the derived facts about its tensors.

    Attributes:
        steps: the launches, as often as they run.
        arguments: how many addresses the bundle's function takes.
        spec: the card.
    """

    steps: tuple[ExternalLaunch, ...]
    arguments: int = 0
    spec: SpyreSpec = SPYRE
    _memo: dict[tuple[int, int], Ints] = field(default_factory=dict[tuple[int, int], Ints])

    def sticks(self, step: int, index: int) -> Ints:
        """Same as `ExternalLaunch.sticks`, cached."""
        if (step, index) not in self._memo:
            self._memo[step, index] = self.steps[step].sticks(index)
        return self._memo[step, index]

    @cached_property
    def inputs(self) -> tuple[ExternalTensor, ...]:
        """Tensors that are read before they are written."""
        known, found = np.zeros(0, np.int64), list[ExternalTensor]()
        for number, step in enumerate(self.steps):
            last = len(step.view.operands) - 1
            for index in range(last):
                touched = self.sticks(number, index)
                missing = np.setdiff1d(touched, known, assume_unique=True)
                if missing.size:
                    found.append(ExternalTensor(step, index, missing, missing.size < touched.size))
                    known = np.union1d(known, missing)
            known = np.union1d(known, self.sticks(number, last))
        return tuple(found)

    @cached_property
    def results(self) -> tuple[ExternalTensor, ...]:
        """Tensors that are written and neither read nor overwritten later."""
        later, found = np.zeros(0, np.int64), list[ExternalTensor]()
        for number, step in reversed(list(enumerate(self.steps))):
            last = len(step.view.operands) - 1
            touched = self.sticks(number, last)
            if not np.isin(touched, later, assume_unique=True).any():
                found.append(ExternalTensor(step, last, touched))
            for index in range(last + 1):
                later = np.union1d(later, self.sticks(number, index))
        return tuple(reversed(found))

    def traffic(self, number: int) -> tuple[int, int]:
        """Return the bytes that a launch reads and writes, every stick of an operand once."""
        last = len(self.steps[number].view.operands) - 1
        read = sum(len(self.sticks(number, index)) for index in range(last))
        return read * STICK_BYTES, len(self.sticks(number, last)) * STICK_BYTES

    def regions(self) -> list[tuple[int, int]]:
        """Return address ranges that the launches touch, from base to end, without LX; an operand is in one range."""
        found: list[tuple[int, int]] = []
        spans = [self._span(n, i) for n, step in enumerate(self.steps) for i in range(len(step.view.operands))]
        for low, high in sorted(span for span in spans if span is not None):
            if found and low <= found[-1][1]:
                found[-1] = (found[-1][0], max(high, found[-1][1]))
            else:
                found.append((low, high))
        return found

    def _span(self, step: int, index: int) -> tuple[int, int] | None:
        """The first byte of an operand in HBM, and one past its last stick."""
        if self.steps[step].view.operands[index].component == LX:
            return None
        sticks = self.sticks(step, index)
        return int(sticks[0]) * STICK_BYTES, (int(sticks[-1]) + 1) * STICK_BYTES


def foreign_program(bundle: ModuleOp, load: Loader) -> ExternalProgram:
    """Analyse the launches of a bundle.

    Args:
        bundle: the bundle function's module.
        load: gives the descriptor of a file name.

    Raises:
        InputError: there is no bundle function.
        UnsupportedError: the bundle is no program the machine has rules for.
    """
    seen: dict[str, int] = {}
    steps: list[ExternalLaunch] = []

    def note(op: SdscExecuteOp, view: Descriptor, _: Memory, symbols: Mapping[int, int]) -> None:
        stem = op.sdsc_filename.data.removesuffix(".json")
        count = seen[stem] = seen.get(stem, 0) + 1
        steps.append(ExternalLaunch(op, stem if count == 1 else f"{stem}#{count}", view, symbols))

    types = find_function(bundle, BUNDLE_FUNCTION).function_type.inputs.data
    arguments = [_argument(kind, number) for number, kind in enumerate(types)]
    run_bundle(bundle, ExactMemory(), arguments, load, run=note)
    if not steps:
        raise InputError("the bundle launches nothing", hint="name a bundle with at least one sdsc_execute")
    return ExternalProgram(tuple(steps), len(arguments), spec_at(bundle))


def _argument(kind: object, number: int) -> int:
    """An address with room behind it; a size that has a largest value is that."""
    if isinstance(kind, InputArgType) and isinstance(kind.max_value, IntAttr):
        return kind.max_value.data
    return (number + 1) * _ARGUMENT_BYTES


def single(view: Descriptor, name: str) -> ExternalProgram:
    """Return one SuperDSC as a program; symbolic addresses get one tensor per operand, sliced as in the file.

    Args:
        view: what the file says.
        name: the file's name.
    """
    op = SdscExecuteOp(name, [], [])
    symbols: dict[int, int] = {}
    for number, operand in enumerate(view.operands):
        if operand.symbolic:
            offsets = _offsets(view, operand)
            base = (number + 1) * _ARGUMENT_BYTES
            symbols |= {int(s): base + o for s, o in zip(operand.start, offsets, strict=True)}
    return ExternalProgram((ExternalLaunch(op, name.removesuffix(".json"), view, symbols),))


def _offsets(view: Descriptor, operand: Operand) -> list[int]:
    lanes, strides = operand.stick_lanes, operand.stick_strides()
    step = {
        dim.label: strides[dim.label] * (dim.per_core // lanes.get(dim.label, 1))
        for dim in view.dims
        if dim.label in strides
    }
    return [STICK_BYTES * sum(step[label] * row[label] for label in step) for row in view.core_slices]


def run_foreign(
    program: ExternalProgram,
    values: Mapping[str, Array],
    options: MachineOptions,
    watch: Callable[[ExternalLaunch, Memory], None] | None = None,
    log: FaultLog | None = None,
    before: Callable[[ExternalLaunch, Memory], None] | None = None,
) -> dict[str, Array]:
    """Run an external bundle on the values of its inputs.

    Args:
        program: what to run.
        values: per input, elements in its shape, or [sticks, lanes] as the device has them.
        options: numerics.
        watch: sees every launch after it ran.
        log: takes the faults, if the run does not stop at the first.
        before: sees every launch before it runs.

    Returns:
        The results in their shapes; NaN where nothing was written.

    Raises:
        InputError: a value is missing or has another shape.
        MachineFault: the program misbehaved.
    """
    memory, history = memory_for(options, program.spec), History()
    memory.log = log or memory.log
    memory.add_scratchpads()
    for number, (base, end) in enumerate(program.regions()):
        memory.add_region(f"HBM {number}", base, end - base)
    for tensor in program.inputs:
        if tensor.name not in values:
            raise InputError(f"{tensor.name} has no value", hint="pass one")
        _fill(memory, tensor, values[tensor.name])
    for step in program.steps:
        if before is not None:
            before(step, memory)
        BoundLaunch(step.op, step.view, step.symbols).run(memory, history)
        if watch is not None:
            watch(step, memory)
    return {r.name: operand_values(r.step.view, r.index, memory, r.step.symbols) for r in program.results}


def _fill(memory: Memory, tensor: ExternalTensor, value: Array) -> None:
    """Writes an input: by its elements, or as the device has it."""
    name, form = tensor.name, tensor.operand.format
    if value.shape == tensor.shape and not is_table(tensor.operand):
        _scatter(memory, tensor, value)
        return
    if value.shape != tensor.device_shape:
        raise InputError(
            f"{name} takes shape {tensor.shape}, or {tensor.device_shape} as the device has it, got {value.shape}"
        )
    step = STICK_BYTES // tensor.operand.elements_per_stick
    lanes = step * np.arange(tensor.operand.elements_per_stick)
    for scratchpad in (False, True):
        inside = (tensor.sticks >= memory.scratchpad_base // STICK_BYTES) == scratchpad
        sticks = tensor.sticks[inside]
        for run, rows in _runs(sticks, value[inside]):
            memory.store((run[:, None] * STICK_BYTES + lanes).reshape(-1), rows.reshape(-1), form)


def _runs(sticks: Ints, rows: Array) -> list[tuple[Ints, Array]]:
    """Sticks that lie in a row, with what they hold: a transfer is inside one region."""
    cuts = np.flatnonzero(np.diff(sticks) != 1) + 1
    return [(s, r) for s, r in zip(np.split(sticks, cuts), np.split(rows, cuts), strict=True) if s.size]


def _scatter(memory: Memory, tensor: ExternalTensor, value: Array) -> None:
    view, step = tensor.step.view, tensor.step
    layout, slices = OperandLayout(view, tensor.index, memory, step.symbols), slice_table(view)
    own = [place for place, dim in enumerate(view.dims) if dim.label in layout.labels]
    for core in range(view.cores):
        access = layout.core(core)
        first = [int(slices[core][place]) * view.dims[place].per_core for place in own]
        box = tuple(slice(at, at + access.visible[place]) for at, place in zip(first, own, strict=True))
        addresses = access.addresses().reshape(-1)
        mine = np.isin(addresses // STICK_BYTES, tensor.sticks)
        if mine.any():
            memory.store(addresses[mine], value[box].reshape(-1)[mine], access.format)


def random_value(tensor: ExternalTensor, random: np.random.Generator) -> Array:
    """Return random input elements: numbers uniform in [-1, 1), integers from 0 to 9, valid indices of a table."""
    if device_format(tensor.operand.format).floating:
        return random.uniform(-1.0, 1.0, tensor.shape)
    return random.integers(0, min(RANDOM_INTEGERS_BELOW, _rows(tensor)), tensor.shape)


def _rows(tensor: ExternalTensor) -> int:
    """Rows of the table that an index tensor picks from; no limit for other integers."""
    link = tensor.operand.indirect
    if link is None or link.kind is not IndirectKind.INDEX:
        return RANDOM_INTEGERS_BELOW
    table = tensor.step.view.operands[link.partner]
    picked = tensor.operand.order
    extents = zip(table.order, table.extents, strict=True)
    return max(1, prod(extent for label, extent in extents if label in picked))


def described(tensors: Sequence[ExternalTensor]) -> list[str]:
    """Describe each tensor in one line: name, shape by dims, format, memory."""
    lines: list[str] = []
    for tensor in tensors:
        dims = ", ".join(f"{label} {extent}" for label, extent in zip(tensor.labels, tensor.shape, strict=False))
        where = "LX" if tensor.operand.component == LX else f"{tensor.address:#x}"
        if tensor.address >= _ARGUMENT_BYTES:
            where = f"argument {tensor.address // _ARGUMENT_BYTES - 1}"
        part = ", partly written by the bundle" if tensor.partly else ""
        lines.append(f"{tensor.name}: [{dims or 'sticks, lanes'}] {tensor.operand.format} at {where}{part}")
    return lines
