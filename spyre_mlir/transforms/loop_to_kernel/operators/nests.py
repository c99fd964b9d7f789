"""Nests of loops as planned kernels: element-wise ops, reductions, products.

Decision: docs/decisions/0206-rows-become-zero-in-place.md
"""

from __future__ import annotations

from itertools import pairwise

from xdsl.ir import SSAValue

from spyre_mlir.dialects.boxes import box_of
from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop import body_function, combiner
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.hw.formats import DL16, FP32
from spyre_mlir.hw.legality import may_write, stick_for
from spyre_mlir.hw.sticks import UNIT, LinearExpr, round_up
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.ops.native import contractions, floor_division, pointwise, reductions
from spyre_mlir.transforms.loop_to_kernel.buffers import Use, elements_of
from spyre_mlir.transforms.loop_to_kernel.choose_lane import (
    lane_for,
)
from spyre_mlir.transforms.loop_to_kernel.data_formats import (
    cast,
    eager_element,
    forms_of,
    is_watched,
    wrapped,
)
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, lanes_of
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import (
    check_said,
)
from spyre_mlir.transforms.loop_to_kernel.operators.reductions import (
    can_write,
    lower_quotient,
    lower_reduction,
    names_in,
    output_of,
    split_write,
)
from spyre_mlir.transforms.loop_to_kernel.operators.unpacking import packed_digit
from spyre_mlir.transforms.utils.function_constants import function_constants
from spyre_mlir.transforms.utils.numerics.integer_ranges import (
    converts_to_integers,
    holds,
    inside,
    wraps,
)

COLUMNS = "a product has its columns in the lanes"


def lower_nest(p: LayoutPlanner, op: loop.NestOp) -> None:
    """Lower a nest: a contraction, a reduction, or an elementwise op."""
    if op.dest is not None and not can_write(op, p.of(op.dest).buffers[0]):
        made, copy = split_write(op)
        p.chosen.split |= {made: op, copy: op}
        p.chosen.lanes[op] = None
        lower_nest(p, made)
        lower_nest(p, copy)
        p.versions[op.result] = p.of(copy.result)
        return
    if packed_digit(p, op):
        return
    entry = body_function(op.body.block)
    if op.combine is None:
        if entry is floor_division.floor_divide_integers:
            lower_quotient(p, op)
        elif entry is not None or not cast(p, op):
            _lower_pointwise(p, op, COPY if entry is None else str(entry.opfunc))
    elif entry is pointwise.mul and combiner(op.combine.data) is reductions.sum and len(op.reduced) == 1:
        _lower_product(p, op)
    elif entry is None and len(op.reduced) == 1:
        lower_reduction(p, op, str(combiner(op.combine.data).opfunc))
    else:
        raise UnsupportedError(
            f"a nest that combines {', '.join(op.reduced)} of a computed body",
            hint="reduce one loop at a time, of a copied element",
        )


def _lower_pointwise(p: LayoutPlanner, op: loop.NestOp, function: str) -> None:
    forms, element = forms_of(p, op, function), element_of(op.result)
    p.of(op.result).format = forms.format
    lane = lane_for(p, op, forms)
    inputs = [p.operand(v, m.data, lane, op.space.data) for v, m in zip(forms.operands, op.input_maps, strict=True)]
    watched = is_watched(p, op, function, forms.format)
    constants = function_constants(op.body.block, function, forms.format)
    output, kept = output_of(p, op, lane), eager_element(op, forms.format)
    p.step(function, op.space.data, inputs, output, integers=watched, constants=constants, element=kept)
    if wraps(element) and not inside(p.ranges.unwrapped(op), holds(element)):
        # A float may have any size, and its low bits are none of DL16's.
        whole = p.form(op.result, FP32.name) if converts_to_integers(op) else p.of(op.result)
        p.versions[op.result] = wrapped(p, whole, element)


def _lower_product(p: LayoutPlanner, op: loop.NestOp) -> None:
    """A product: the summed loop in the lanes of the first operand, the column loop in the others'."""
    (summed,) = op.reduced
    _check_maps(op, summed)
    if op.dest is None:
        p.of(op.result).format = DL16.name  # the matrix unit knows no other
    first, second = 0, 1
    columns = [n for n in names_in(op, 1) if n not in names_in(op, 0)]
    if len(columns) > 1:
        first, second = 1, 0
        columns = [n for n in names_in(op, 0) if n not in names_in(op, 1)]
    if len(columns) > 1:
        raise LoweringError(
            f"a product with column loops {', '.join(columns)}; the hardware has one",
            hint="copy the second operand so that its columns are one loop",
        )
    column = columns[0] if columns else None
    extents = op.space.extents
    left = _whole_along(p, op, first, summed, lane=summed)
    right = _whole_along(p, op, second, summed, lane=column)
    stick = next(d for d, e in enumerate(left[1]) if any(n == summed for n, _ in e.terms))
    rows = next(d for d, e in enumerate(right[1]) if any(n == summed for n, _ in e.terms))
    left = p.filled_tail(left, stick, extents[summed], 0.0)
    right = cleared_rows(p, right, rows, extents[summed])
    if not may_write(op.output_map.data, shape_of(op.result), column, extents, lanes_of(p.of(op.result).format)):
        raise LoweringError(
            f"the result of a product cannot have {column} in its lanes",
            hint="write it to a tensor of its own and copy",
        )
    output = output_of(p, op, column)
    p.chosen.lanes[op] = column
    check_said(op, (column, output[0].layout.stick), output[0].layout.order, COLUMNS)
    p.step(str(contractions.matmul.opfunc), op.space.data, [left, right], output, element=eager_element(op, DL16.name))


def _check_maps(op: loop.NestOp, summed: str) -> None:
    """Refuse operands that lack a loop: the hardware reads no row of a product twice."""
    read = [names_in(op, number) for number in (0, 1)]
    lacking = [f"operand {number} lacks {summed}" for number in (0, 1) if summed not in read[number]]
    lacking += [f"both operands lack {d.name}" for d in op.space.data if d.name not in (summed, *read[0], *read[1])]
    if lacking:
        raise LoweringError(
            f"no product reads operands by such maps: {', '.join(lacking)}",
            hint="copy the operand to a tensor with the loop, by a nest in front",
        )


def _whole_along(p: LayoutPlanner, op: loop.NestOp, operand: int, summed: str, lane: str | None) -> Use:
    """The operand, copied first if the summed loop covers only part of a dimension and needs padding."""
    versions, index = p.form(op.inputs[operand], DL16.name), op.input_maps[operand].data
    extent = op.space.extents[summed]
    dim = next((d for d, e in enumerate(index) if any(n == summed for n, _ in e.terms)), 0)
    covers = len(index[dim].terms) == 1 and index[dim].const == 0 and extent == versions.shape[dim]
    if extent % lanes_of(versions.format) == 0 or covers:
        return p.operand(versions, index, lane, op.space.data)
    plain = index[dim] == LinearExpr.of(summed)
    if lane != summed and plain and _may_be_cleared(p, op.inputs[operand], dim, extent):
        return p.operand(versions, index, lane, op.space.data)
    copied, own = p.copied(versions, index, op.space.data)
    stick = stick_for(own, lane, lanes_of(copied.format))
    return p.buffer(copied, UNIT if stick is None else stick), own


def cleared_rows(p: LayoutPlanner, use: Use, dim: int, extent: int) -> Use:
    """Return the operand with rows of zeros from `extent` on, up to a whole number of sticks."""
    lanes = use[0].lanes
    buffer, last = p.with_room(use[0], {dim: lanes}), round_up(extent, lanes)
    shape = buffer.shape
    if extent == last or (extent == shape[dim] and buffer.behind(dim) == 0):
        return buffer, use[1]
    # What is written from inside of a tensor to behind it would count as another tensor.
    for start, end in pairwise(sorted({extent, min(shape[dim], last), last})):
        dims, own = elements_of(shape, dim, end - start)
        behind = tuple(e.shifted(start) if d == dim else e for d, e in enumerate(own))
        p.step(COPY, dims, [(p.number(0.0), ())], (buffer, behind))
    if last >= shape[dim]:
        buffer.filled[dim] = 0.0
    return buffer, use[1]


def _may_be_cleared(p: LayoutPlanner, value: SSAValue, dim: int, first: int) -> bool:
    """Whether a nest makes a tensor, with buffers of its own, of which other nests read the rows before one alone."""
    nest, forms = value.owner, p.of(value)
    if not isinstance(nest, loop.NestOp) or nest.dest is not None:
        return False
    if forms.format != DL16.name or forms.host is not None or forms.constant is not None or forms.origin is not None:
        return False  # what the host sends, or is converted, may be that of others
    if forms.block is not None or any(one is forms for other, one in p.versions.items() if other is not value):
        return False
    return all(
        isinstance(reader := use.operation, loop.NestOp)
        and use.index < len(reader.inputs)
        and box_of(reader, reader.input_maps[use.index])[dim][1] < first
        for use in value.uses
    )


__all__ = ["COLUMNS", "cleared_rows", "lower_nest"]
