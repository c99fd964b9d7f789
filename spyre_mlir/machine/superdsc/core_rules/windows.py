"""Pooling and convolution: windows that slide over the input.

A core's input starts at its start address, and covers what its windows reach. Padding that is in no memory counts as 0
(as the smallest number for a maximum); how it combines with a division over cores is not public, and refused.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Window
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.memory.exact import Floats, Memory
from spyre_mlir.machine.memory.operand_views import ByteAccess, OperandLayout, TrackedArray
from spyre_mlir.machine.superdsc.core_rules.per_core import CoreWork, Symbols, require_whole, write_all
from spyre_mlir.machine.superdsc.stale_reads import History

_MAXIMUM = "maxpoolfwd"


def run_windows(view: Descriptor, memory: Memory, symbols: Symbols | None, past: History) -> None:
    """Run a windowed operation on all its cores.

    Raises:
        MachineFault: the program misbehaved.
        UnsupportedError: a form that no public source describes.
    """
    _refuse_unclear(view)
    layouts = [OperandLayout(view, index, memory, symbols) for index in range(1, len(view.operands))]
    results: list[list[tuple[ByteAccess, TrackedArray]]] = []
    for core, row in enumerate(view.core_slices):
        origin = tuple(row[dim.label] * dim.per_core for dim in view.dims)
        layout = _input_layout(view, core, memory, symbols)
        source = layout.core(0)
        past.require_own(memory, layout, source, None)
        accesses = (source, *(layout.core(core) for layout in layouts))
        results.append(_one_core(CoreWork(view, core, origin, accesses, memory)))
    write_all(results, memory)
    past.wrote(memory, layouts[-1], None, None)


def _refuse_unclear(view: Descriptor) -> None:
    where = f"{view.index}:{view.op_func_name}"
    if not view.windows:
        raise UnsupportedError(f"{view.op_func} without sizes of its windows", where=where)
    if view.operands[0].component == keys.LX:
        raise UnsupportedError("a windowed input in LX: what of it each core has is not public", where=where)
    lacked = [dim.label for dim in view.dims if dim.label not in view.output.order]
    require_whole(view, lacked, view.op_func)
    for window in view.windows:
        if (window.front or window.back) and view.dim(window.dim).split > 1:
            message = f"padding of dim {window.dim}, which is divided over cores: where slices start is not public"
            raise UnsupportedError(message, where=where)


def _covered(view: Descriptor, window: Window) -> int:
    """Elements of the input that one core's windows need from memory."""
    reach = window.reach(view.dim(window.dim).per_core, view.dim(window.over).extent)
    return min(reach - window.front, window.stored)


def _input_layout(view: Descriptor, core: int, memory: Memory, symbols: Symbols | None) -> OperandLayout:
    """The part of the input one core reads, as the only core of an operation over just that part."""
    covered = {window.dim: _covered(view, window) for window in view.windows}
    dims = tuple(Dim(dim.label, covered.get(dim.label, dim.per_core)) for dim in view.dims)
    alone = replace(view.operands[0], start=(view.operands[0].start[core],))
    part = replace(view, dims=dims, operands=(alone, *view.operands[1:]), windows=(), slices=())
    layout = OperandLayout(part, 0, memory, symbols)
    layout.require_span(memory.log)
    return layout


def _one_core(work: CoreWork) -> list[tuple[ByteAccess, TrackedArray]]:
    view = work.view
    neutral = -np.inf if view.op_func == _MAXIMUM else 0.0
    source = work.accesses[0].read(work.memory)
    if view.op_class is not OpClass.POOLING:
        for index in (0, 1):
            _require_written(work, index, source if index == 0 else work.accesses[1].read(work.memory))
    written = None
    if source.written is not None:
        written = _fold(view, _slid(view, source.written.astype(np.float64), 1.0), np.minimum) > 0
    values = _slid(view, source.values, neutral)
    if view.op_class is OpClass.POOLING:
        values = _fold(view, values, np.maximum if view.op_func == _MAXIMUM else np.add)
        if view.op_func != _MAXIMUM:
            values = values * work.constants("nmap")[0]
        return [(work.accesses[-1], TrackedArray(values, written))]
    weights = work.accesses[1].read(work.memory).values
    result = _summed(view, values, weights)
    return [(work.accesses[-1], TrackedArray(result, None))]


def _require_written(work: CoreWork, index: int, tensor: TrackedArray) -> None:
    if tensor.written is None or tensor.written.all():
        return
    first = np.unravel_index(int((~tensor.written).argmax()), tensor.written.shape)
    raise fault(
        FaultKind.UNINITIALISED_READ,
        f"{int((~tensor.written).sum())} elements that were never written enter a sum",
        work.accesses[index].place_at([int(i) for i in first]),
        hint="fill the padding with zeros",
    )


def _slid(view: Descriptor, values: Floats, neutral: float) -> Floats:
    """The input with an axis of output places and one of window places for each window."""
    labels = [dim.label for dim in view.dims]
    for window in view.windows:
        axis, over = labels.index(window.dim), labels.index(window.over)
        outputs, places = view.dim(window.dim).per_core, view.dim(window.over).extent
        behind = window.reach(outputs, places) - window.front - values.shape[axis]
        pads = [(window.front, behind) if at == axis else (0, 0) for at in range(values.ndim)]
        padded = np.pad(values, pads, constant_values=neutral)
        reach = (places - 1) * window.dilation + 1
        slid = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=axis)
        steps = [slice(None)] * slid.ndim
        steps[axis], steps[-1] = slice(None, None, window.stride), slice(None, None, window.dilation)
        # The new last axis takes the place of the input's one place along the window.
        values = np.squeeze(np.swapaxes(slid[tuple(steps)], over, -1), -1)
    return values


def _fold(view: Descriptor, values: Floats, fold: np.ufunc) -> Floats:
    labels = [dim.label for dim in view.dims]
    for window in view.windows:
        values = fold.reduce(values, axis=labels.index(window.over), keepdims=True)
    return values


def _summed(view: Descriptor, values: Floats, weights: Floats) -> Floats:
    """Sums of products over the dims the result lacks."""
    kept = [place for place, dim in enumerate(view.dims) if dim.label in view.output.order]
    left, right = _present(values), _present(weights)
    wanted = [place for place in kept if place in left or place in right]
    names = [chr(ord("a") + place) for place in range(values.ndim)]
    terms = ["".join(names[place] for place in places) for places in (left, right, wanted)]
    product: Floats = np.einsum(
        f"{terms[0]},{terms[1]}->{terms[2]}", _squeezed(values), _squeezed(weights), optimize=True
    )
    shape = [1] * values.ndim
    for place, size in zip(wanted, product.shape, strict=True):
        shape[place] = size
    return product.reshape(shape)


def _present(values: Floats) -> list[int]:
    return [place for place, size in enumerate(values.shape) if size != 1]


def _squeezed(values: Floats) -> Floats:
    return values.reshape([size for size in values.shape if size != 1])
