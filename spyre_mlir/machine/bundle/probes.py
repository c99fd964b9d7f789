"""Observation of a run: the results of every launch of a bundle, and of every op of the levels above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.interpreter import Interpreter, PythonValues
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.places import Rebase, Source, source_of
from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.machine.arrays import Array, HostArray
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.levels.buffers import DeviceBuffer, receive
from spyre_mlir.machine.levels.calls import places_at
from spyre_mlir.machine.levels.host_ops import HostExecutor
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.memory.operand_views import OperandLayout, slice_table
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.text.render import value_names

_SHOWN = 20


@dataclass(frozen=True)
class Observed:
    """Results of one op.

    Attributes:
        op: the op.
        name: what the text calls its value, or the buffer it writes.
        values: the elements; NaN where nothing was written.
        function: the hardware function of a launch, as its file names it.
        places: the places of the ops of the region that the op is in, at the call that ran it.
    """

    op: Operation
    name: str
    values: Array
    function: str = ""
    places: Rebase = field(default_factory=Rebase)

    @property
    def source(self) -> Source:
        """Its location in the model."""
        return self.places.source(source_of(self.op.location))

    @property
    def called(self) -> str:
        """The op's name, with its hardware function if it has one."""
        function = self.op.function_name if isinstance(self.op, KernelOp) else self.function
        return f"{self.op.name} {function}".strip()


def operand_values(view: Descriptor, index: int, memory: Memory, symbols: Mapping[int, int] | None = None) -> Array:
    """Return the elements of an operand that any core touches, one axis per dim of the operation that it has.

    Padding is part of it. An element that was never written, or was last written in another format, is NaN.
    """
    values, written = written_values(view, index, memory, symbols)
    return np.where(written, values, np.nan)


def written_values(
    view: Descriptor, index: int, memory: Memory, symbols: Mapping[int, int] | None = None
) -> tuple[Array, Array]:
    """Return the elements as `operand_values` does, and which of them were written: a NaN may be one."""
    layout = OperandLayout(view, index, memory, symbols)
    own = [place for place, dim in enumerate(view.dims) if dim.label in layout.labels]
    values = np.full([view.dims[place].extent for place in own], np.nan)
    known = np.zeros(values.shape, np.bool_)
    slices, starts, seen_slices = slice_table(view), view.operands[index].start, set[object]()
    for core in range(len(slices)):
        first = [int(slices[core][place]) * view.dims[place].per_core for place in own]
        if (shared := (*first, starts[core % len(starts)] if starts else "")) in seen_slices:
            continue  # a core before reads the same elements
        seen_slices.add(shared)
        access = layout.core(core)
        box = tuple(slice(at, at + access.visible[place]) for at, place in zip(first, own, strict=True))
        seen = tuple(slice(None) if place in own else 0 for place in range(len(view.dims)))
        try:
            read, written = memory.load(access.addresses(), access.format)
        except MachineFault:
            continue  # outside memory, or of another format: as good as never written
        values[box] = np.asarray(read).reshape(access.visible)[seen]
        known[box] = np.asarray(written).reshape(access.visible)[seen]
    return values, known


def operand_labels(view: Descriptor, index: int) -> tuple[str, ...]:
    """Return the dims that are the axes of `operand_values`."""
    order = view.operands[index].order
    return tuple(dim.label for dim in view.dims if dim.label in order)


def without_padding(values: Array, labels: Sequence[str], extents: Mapping[str, int]) -> Array:
    """Return values up to the logical extents of their dims; a dim of extent 0 stands for no loop and is left out."""
    return values[tuple(0 if extents.get(label) == 0 else slice(0, extents.get(label)) for label in labels)]


def logical_values(values: Array, labels: Sequence[str], op: KernelOp, names: Mapping[str, str]) -> Array:
    """Return the output of a launch as the tensor of its kernel op.

    Args:
        values: see `operand_values`.
        labels: what its axes are.
        op: the kernel op the launch comes from.
        names: the loop of the kernel that each label stands for.
    """
    tensor, extents = op.tensors[-1], op.space.extents
    loops = [names.get(label, "") for label in labels]
    cut = values[tuple(slice(0, extents.get(loop, 1)) for loop in loops)]
    grids = dict(zip(loops, np.indices(cut.shape, sparse=True), strict=True))
    result = np.full(tensor.shape, np.nan)
    if not tensor.shape:
        return np.asarray(cut.reshape(-1)[0])
    at = [
        np.asarray(e.const + sum(c * grids[n] for n, c in e.terms if n in grids), np.int64)
        for e in op.maps.data[-1].data
    ]
    inside = np.ones(cut.shape, np.bool_)
    for place, extent in zip(at, tensor.shape, strict=True):
        inside = inside & (place >= 0) & (place < extent)
    result[tuple(np.broadcast_to(p, cut.shape)[inside] for p in at)] = cut[inside]
    return result


class Recorder(Interpreter.Listener):
    """Recorder of the ops of the upper levels: tensor results, and outputs of kernels.

    Args:
        names: what the text calls every value.
    """

    def __init__(self, names: Mapping[SSAValue, str]) -> None:
        self.seen: list[Observed] = []
        self._names = names
        self._outputs: list[DeviceBuffer] = []
        self._calls: list[Rebase] = [Rebase()]

    def will_interpret_op(self, op: Operation, args: PythonValues) -> None:
        """Remember the output of a kernel, and the layer of a call."""
        if isinstance(op, CallOp):
            self._calls.append(places_at(op))
        if isinstance(op, KernelOp):
            self._outputs.append(cast(DeviceBuffer, args[-1]))

    def did_interpret_op(self, op: Operation, results: PythonValues) -> None:
        """Copy the results of the op."""
        if isinstance(op, CallOp):
            self._calls.pop()
        if isinstance(op, KernelOp):
            values, known = receive(_padded(self._outputs.pop()))
            self._add(op, op.output, np.where(known, values, np.nan))
            return
        for value, result in zip(op.results, results, strict=True):
            if isinstance(result, HostArray):
                self._add(op, value, _with_nan(result))

    def _add(self, op: Operation, value: SSAValue, values: Array) -> None:
        self.seen.append(Observed(op, f"%{self._names.get(value, '')}", values, places=self._calls[-1]))


def _padded(buffer: DeviceBuffer) -> DeviceBuffer:
    """A tile behind the start of its tensor has that tensor's layout, and less memory behind it: as if it had all."""
    missing = buffer.tensor.sticks - len(buffer.values)
    if missing <= 0:
        return buffer
    rows = ((0, missing), (0, 0))
    values = np.pad(buffer.values, rows, constant_values=np.nan)
    return DeviceBuffer(buffer.tensor, values, np.pad(buffer.initialised, rows))


def _with_nan(array: HostArray) -> Array:
    if array.defined is None:
        return np.array(array.values)
    return np.where(array.defined, array.values.astype(np.float64), np.nan)


@dataclass(frozen=True)
class Launched:
    """One launch as executed: the launch, its descriptor, the values of its symbols, and its result."""

    op: SdscExecuteOp
    view: Descriptor
    symbols: Mapping[int, int]
    values: Array

    @property
    def file(self) -> str:
        """The executed file."""
        return self.op.sdsc_filename.data

    @property
    def labels(self) -> tuple[str, ...]:
        """The dims of the result's axes."""
        return operand_labels(self.view, len(self.view.operands) - 1)

    def observed(self, extents: Mapping[str, int]) -> Observed:
        """Return the result as an observation; see `cut`."""
        return Observed(self.op, self.file.removesuffix(".json"), self.cut(extents), self.view.op_func_name)

    def cut(self, extents: Mapping[str, int]) -> Array:
        """Return the result without padding where a dim's logical extent is known; dims of extent 0 are left out."""
        return without_padding(self.values, self.labels, extents)


def observe_program(program: DeviceProgram, inputs: Sequence[Array | None], options: MachineOptions) -> list[Launched]:
    """Run a program, and return the results of every launch, in execution order."""
    seen: list[Launched] = []

    def watch(op: SdscExecuteOp, view: Descriptor, memory: Memory, symbols: Mapping[int, int]) -> None:
        seen.append(Launched(op, view, symbols, operand_values(view, len(view.operands) - 1, memory, symbols)))

    run_program(replace(program, watch=watch), inputs, options)
    return seen


def observe_function(module: ModuleOp, inputs: Sequence[Array], host: HostExecutor | None = None) -> list[Observed]:
    """Run a module of an upper level, and return the results of every op, in execution order."""
    recorder = Recorder(value_names(module))
    run_function(module, inputs, listeners=[recorder], host=host)
    return recorder.seen


def pick(seen: Sequence[Observed], name: str) -> Observed:
    """Return the last observation with a name; the ``%`` of a value may be left out.

    Raises:
        InputError: none has it.
    """
    for observed in reversed(seen):
        if observed.name in (name, f"%{name}"):
            return observed
    known = list(dict.fromkeys(observed.name for observed in seen))
    shown = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
    raise InputError(f"no value is called '{name}'", hint=f"name one of {shown}" if shown else "the program has none")
