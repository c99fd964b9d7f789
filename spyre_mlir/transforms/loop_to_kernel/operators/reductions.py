"""Nests that reduce a loop, or that need several kernels: operands of one format, in whole sticks where required.

A nest that cannot write its destination as it lies writes a tensor of its own, which is copied there.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Block, Region

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.hw.formats import DL16, FP32, FP32_LARGEST
from spyre_mlir.hw.legality import stick_for
from spyre_mlir.hw.sticks import UNIT, LinearExpr, round_up
from spyre_mlir.ops.hardware_functions import neutral_of
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, Use
from spyre_mlir.transforms.loop_to_kernel.choose_lane import lane_for, lane_of_result, result_lane
from spyre_mlir.transforms.loop_to_kernel.data_formats import Forms, eager_element, forms_of, is_watched
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.host_blocks import written_block
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, block_of
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import put_in_order
from spyre_mlir.transforms.loop_to_kernel.operators.floor_division import FloorDivision


def output_of(p: LayoutPlanner, op: loop.NestOp, lane: str | None) -> Use:
    """Return the buffer a nest writes: its destination, or a fresh one with `lane` in the lanes."""
    versions = p.of(op.result)
    if op.dest is not None:
        versions.buffers.append(p.of(op.dest).buffers[0])
    elif (block := written_block(p, op)) is not None:
        versions.buffers.append(block)
    else:
        stick = stick_for(op.output_map.data, lane, block_of(versions.format))
        made = p.fresh(versions.shape, versions.format, UNIT if stick is None else stick)
        versions.buffers.append(put_in_order(op, made))
        p.chosen.made[op] = made
    return versions.buffers[0], op.output_map.data


# Of integers, the float32 numbers at the ends of int64, which exact numerics have.
_LEAST, _LARGEST = -(2.0**63), 2.0**63 - 2.0**39


def _neutral(function: str, *, integers: bool) -> float:
    """Return the neutral element of a reduction of float32 numbers, or of integers held in float32."""
    neutral = neutral_of(function, FP32_LARGEST)
    if not integers or not neutral:
        return neutral
    return _LEAST if neutral < 0 else _LARGEST


def lower_reduction(p: LayoutPlanner, op: loop.NestOp, function: str) -> None:
    """Lower a reduction of one loop by a hardware function."""
    forms = forms_of(p, op, function)
    p.of(op.result).format = forms.format
    lane, (index,) = lane_for(p, op, forms), (m.data for m in op.input_maps)
    use, space = p.operand(forms.operands[0], index, lane, op.space.data), op.space.data
    if forms.format == FP32.name and lane in op.reduced:
        neutral = _neutral(function, integers=isinstance(element_of(op.result), IntegerType))
        use, space = _whole_sticks(p, op, forms.operands[0], use, lane, neutral)
    output = output_of(p, op, result_lane(op, lane))
    watched = is_watched(p, op, function, forms.format)
    p.step(function, space, [use], output, integers=watched, element=eager_element(op, forms.format))


def _whole_sticks(
    p: LayoutPlanner, op: loop.NestOp, versions: DeviceForms, use: Use, lane: str, neutral: float
) -> tuple[Use, tuple[IterDim, ...]]:
    """An FP32 operand whose sticks along `lane` can be folded whole, and the loops that do so."""
    extent, block = op.space.extents[lane], block_of(FP32.name)
    if extent % block == 0:
        return use, op.space.data
    buffer, index = use
    dim = next(d for d, e in enumerate(index) if any(n == lane for n, _ in e.terms))
    if index[dim] != LinearExpr.of(lane) or buffer.shape[dim] != extent:
        copied, index = p.copied(versions, index, op.space.data)
        dim = next(d for d, e in enumerate(index) if any(n == lane for n, _ in e.terms))
        buffer = p.buffer(copied, dim)
    use = p.filled_tail((buffer, index), dim, extent, neutral)
    return use, tuple(replace(d, extent=round_up(extent, block)) if d.name == lane else d for d in op.space.data)


def lower_quotient(p: LayoutPlanner, op: loop.NestOp) -> None:
    """Lower floor division, the one integer function that needs several kernels."""
    forms = Forms(FP32.name, [p.form(v, FP32.name) for v in op.inputs])
    p.of(op.result).format = forms.format
    lane = lane_for(p, op, forms)
    a, b = (p.operand(v, m.data, lane, op.space.data) for v, m in zip(forms.operands, op.input_maps, strict=True))
    made, _ = FloorDivision(p, op, lane).of(a, b, [p.ranges.of(v) for v in op.inputs])
    p.of(op.result).buffers.append(put_in_order(op, made))
    p.chosen.made[op] = made


def names_in(op: loop.NestOp, operand: int) -> list[str]:
    """Return the loops of a nest that walk an input, in the order of the nest."""
    used = op.input_maps[operand].names
    return [d.name for d in op.space.data if d.name in used]


def is_product(op: loop.NestOp) -> bool:
    """Return whether a nest sums what a function of its inputs gives."""
    return op.combine is not None and body_function(op.body.block) is not None


def column_of(op: loop.NestOp) -> str | None:
    """Return the loop that a product has in the lanes of its result; None if it has a single column."""
    columns = [n for n in names_in(op, 1) if n not in names_in(op, 0)]
    if len(columns) > 1:
        columns = [n for n in names_in(op, 0) if n not in names_in(op, 1)]
    return columns[0] if columns else None


def can_write(op: loop.NestOp, dest: PlannedBuffer) -> bool:
    """Return whether the function of a nest writes the format of a buffer, with its loops in the lanes there."""
    entry = body_function(op.body.block)
    if is_product(op):
        return dest.format == DL16.name and lane_of_result(op, dest.layout.stick, dest.block) == column_of(op)
    return op.combine is not None or entry is None or dest.format != FP32.name or entry.fp32


def split_write(op: loop.NestOp) -> tuple[loop.NestOp, loop.NestOp]:
    """Put in front of a nest with a destination the same nest without one, and a copy to the destination."""
    kept = [d for d in op.space.data if d.name in op.output_map.names]
    own, element = IndexMapAttr(tuple(LinearExpr.of(d.name) for d in kept)), element_of(op.result)
    shape = TensorType(element, [d.extent for d in kept])
    combine = None if op.combine is None else op.combine.data
    made = loop.NestOp(op.space, op.inputs, [*op.input_maps, own], shape, op.body.clone(), combine=combine)
    body = Block(arg_types=[element])
    body.add_op(loop.YieldOp(operands=[[body.args[0]]]))
    maps = [own, op.output_map]
    copy = loop.NestOp(SpaceAttr(tuple(kept)), [made.result], maps, op.result.type, Region(body), dest=op.dest)
    for part in (made, copy):
        part.attributes |= op.attributes
        part.wide, part.location = op.wide, op.location
    copy.attributes.pop(LAYOUT, None)
    if (block := op.parent_block()) is None:
        raise ValueError("a nest outside of a block")
    block.insert_ops_before([made, copy], op)
    return made, copy
