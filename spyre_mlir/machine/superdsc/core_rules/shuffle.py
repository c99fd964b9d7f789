"""A shuffle: a copy between scratchpads in which each operand has its own distribution over the cores."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from spyre_mlir.dialects.superdsc.codec.coordinate_rules import own_splits
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout, TrackedArray
from spyre_mlir.machine.superdsc.core_rules.per_core import Symbols, write_all
from spyre_mlir.machine.superdsc.races import require_no_race
from spyre_mlir.machine.superdsc.stale_reads import History

SliceIndex = tuple[slice, ...]


def run_shuffle(view: Descriptor, memory: Memory, symbols: Symbols | None, past: History) -> None:
    """Gather the source from all cores, then give every core its part.

    Raises:
        MachineFault: the program misbehaved.
        UnsupportedError: anything but one source and one result of the same format.
    """
    where = f"{view.index}:{view.op_func_name}"
    if view.op_class is not OpClass.SHUFFLE:
        raise UnsupportedError("an operand spread over the cores in its own way, outside of a shuffle", where=where)
    if len(view.operands) != 2 or view.operands[0].format != view.output.format:
        raise UnsupportedError("a shuffle of several operands, or with a change of format", where=where)
    layouts = [_layout(view, index, memory, symbols) for index in (0, 1)]
    sources, targets = (_parts(layout) for layout in layouts)
    for access, _ in sources:
        past.require_own(memory, layouts[0], access, None)
    require_no_race([(source, target) for (source, _), (target, _) in zip(sources, targets, strict=True)], memory.log)
    whole = [dim.extent for dim in view.dims]
    values, written = np.zeros(whole), np.zeros(whole, dtype=np.bool_)
    for access, place in sources:
        tensor = access.read(memory)
        values[place], written[place] = tensor.values, True if tensor.written is None else tensor.written
    write_all([[(access, TrackedArray(values[place], written[place]))] for access, place in targets], memory)
    past.wrote(memory, layouts[1], None, None)


def _layout(view: Descriptor, index: int, memory: Memory, symbols: Symbols | None) -> OperandLayout:
    """An operand in its own distribution."""
    operand = view.operands[index]
    slices = operand.slices or view.core_slices
    splits = own_splits(operand) if operand.slices else {dim.label: dim.split for dim in view.dims}
    if prod(splits.values()) != view.cores:
        where = f"{view.index}:{view.op_func_name}"
        raise UnsupportedError(f"{prod(splits.values())} slices of operand {index} on {view.cores} cores", where=where)
    dims = tuple(Dim(dim.label, dim.extent, splits[dim.label]) for dim in view.dims)
    own = replace(view, dims=dims, slices=slices, op_class=OpClass.POINTWISE)
    return OperandLayout(own, index, memory, symbols)


def _parts(layout: OperandLayout) -> list[tuple[ByteAccess, SliceIndex]]:
    """Per core, where its part of an operand lies in its scratchpad, and in the whole."""
    parts: list[tuple[ByteAccess, SliceIndex]] = []
    for core, row in enumerate(layout.view.core_slices):
        firsts = [row[dim.label] * dim.per_core for dim in layout.view.dims]
        place = tuple(slice(first, first + dim.per_core) for first, dim in zip(firsts, layout.view.dims, strict=True))
        parts.append((layout.core(core), place))
    return parts
