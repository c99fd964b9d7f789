"""Common frame of operations that need a separate computation on each core."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.machine.memory.exact import Bools, Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout, TrackedArray
from spyre_mlir.machine.superdsc.constants import decode_constant, mask_value
from spyre_mlir.machine.superdsc.core_places import settled
from spyre_mlir.machine.superdsc.races import require_disjoint, require_no_race
from spyre_mlir.machine.superdsc.stale_reads import History

Symbols = Mapping[int, int]


@dataclass(frozen=True)
class CoreWork:
    """The work of one core.

    Args:
        view: the operation.
        core: which core.
        origin: first global index per iteration dim.
        accesses: one per operand; of windowed operands, what the operation gives them instead.
        memory: where they lie.
    """

    view: Descriptor
    core: int
    origin: tuple[int, ...]
    accesses: tuple[ByteAccess, ...]
    memory: Memory

    def axis(self, label: str) -> int:
        """Return the position of a dim among the axes of a tensor."""
        return [dim.label for dim in self.view.dims].index(label)

    def read(self, index: int) -> TrackedArray:
        """Read an input, with masked elements replaced by the mask constant."""
        tensor = self.accesses[index].read(self.memory)
        for place, dim in enumerate(self.view.dims):
            if dim.valid is None or self.view.mask_constant < 0 or dim.label not in self.view.operands[index].order:
                continue
            shape = [1] * tensor.values.ndim
            shape[place] = tensor.values.shape[place]
            beyond: Bools = np.indices(shape)[place] >= dim.valid - self.origin[place]
            values = np.where(beyond, mask_value(self.view, unbounded=self.memory.unbounded), tensor.values)
            tensor = TrackedArray(values, None if tensor.written is None else tensor.written | beyond)
        return tensor

    def constants(self, *names: str) -> list[float]:
        """Constants by name.

        Raises:
            InputError: the file lacks one.
        """
        given = {constant.name: decode_constant(constant) for constant in self.view.constants}
        for name in names:
            if name not in given:
                message = (
                    f"op {self.view.index}:{self.view.op_func_name} needs the constant {name!r}, it has {[*given]}"
                )
                raise InputError(message)
        return [given[name] for name in names]


CoreRule = Callable[[CoreWork], Sequence[tuple[ByteAccess, TrackedArray]]]
"""What one core writes, in the order of the output's parts."""


def run_by_core(view: Descriptor, memory: Memory, symbols: Symbols | None, rule: CoreRule, past: History) -> None:
    """Run a rule on every core: all read before any writes.

    Raises:
        MachineFault: the program misbehaved.
    """
    layouts = [OperandLayout(view, index, memory, symbols) for index in range(len(view.operands))]
    for layout in layouts:
        layout.require_span(memory.log)
    works: list[CoreWork] = []
    for core, row in enumerate(view.core_slices):
        origin = tuple(row[dim.label] * dim.per_core for dim in view.dims)
        works.append(CoreWork(view, core, origin, tuple(layout.core(core) for layout in layouts), memory))
    require_no_race([work.accesses for work in works], memory.log)
    for number, layout in enumerate(layouts[:-1]):
        for work in works:
            past.require_own(memory, layout, work.accesses[number], None)
    memory.log.settle = lambda found: settled(found, layouts, memory)
    memory.log.why = lambda address: past.why(memory, address)
    write_all([rule(work) for work in works], memory)
    past.wrote(memory, layouts[-1], None, None)


def write_all(results: Sequence[Sequence[tuple[ByteAccess, TrackedArray]]], memory: Memory) -> None:
    """Write the cores' results, after checking that no two write one byte."""
    for part in zip(*results, strict=True):
        require_disjoint([access for access, _ in part], memory.log)
    for result in results:
        for access, tensor in result:
            access.write(memory, shaped(tensor, access))


def shaped(tensor: TrackedArray, access: ByteAccess) -> TrackedArray:
    """Broadcast a result to the axes it is written along."""
    written = None if tensor.written is None else np.broadcast_to(tensor.written, access.shape)
    return TrackedArray(np.broadcast_to(tensor.values, access.shape), written)


def require_whole(view: Descriptor, labels: Sequence[str], work: str) -> None:
    """Refuse an operation that divides dims over cores of which each core needs all.

    Raises:
        UnsupportedError: it does.
    """
    for label in labels:
        if view.dim(label).split > 1:
            where = f"{view.index}:{view.op_func_name}"
            raise UnsupportedError(f"{work} over dim {label}, which is divided over cores", where=where)
