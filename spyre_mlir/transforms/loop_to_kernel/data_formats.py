"""Computation format of a nest: DL16, or FP32 where integers exceed the exact range of DL16.

A truth value is stored in the format of what was compared. Where formats meet, operands are converted; the choice is
the one that converts least.

Decision: docs/decisions/0024-integers-as-numbers.md
Decision: docs/decisions/0077-float32-is-kept-on-request.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import Float8E4M3FNType, FloatAttr, FunctionType, IntegerAttr, IntegerType, f32, i1
from xdsl.ir import Attribute, Operation, SSAValue

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.loop import body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.formats import DL16, FP32, INDEX
from spyre_mlir.hw.sticks import IndexMap, LinearExpr
from spyre_mlir.ops.hardware_functions import picks
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, elements_of, stored_format
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.utils.numerics.integer_ranges import (
    NARROW,
    WIDE,
    converts_to_integers,
    holds,
    inside,
    is_integer,
    type_range,
    wraps,
)

_HALF = 0.5


@dataclass(frozen=True)
class Forms:
    """Format of a nest's computation and operands.

    Attributes:
        format: of the result, and of all operands.
        operands: the operands in that format.
    """

    format: str
    operands: list[DeviceForms]


def forms_of(p: LayoutPlanner, op: loop.NestOp, function: str) -> Forms:
    """Return the format of a nest that the hardware function computes, and its operands in that format."""
    entry = body_function(op.body.block)
    saturated = _saturated(p, op, entry)
    form = DL16.name if saturated is not None else _format(p, op, function, entry)
    return Forms(form, [p.form(v, form, saturate=v is saturated) for v in op.inputs])


def _format(p: LayoutPlanner, op: loop.NestOp, function: str, entry: OpEntry | None) -> str:
    has_wide = entry.fp32 if entry is not None else True  # a copy, or a reduction: all of them have
    if op.dest is not None:
        return _of_destination(p.of(op.dest).format, function, has_wide=has_wide)
    result = element_of(op.result)
    elements = (result, *map(element_of, op.inputs))
    if not all(isinstance(e, IntegerType) for e in elements):
        return FP32.name if has_wide and keeps_float32(p, op, *elements) else DL16.name
    exact = all(exact_in_dl16(p, v) for v in op.inputs)
    kept = result == i1 or picks(function) or inside(p.ranges.unwrapped(op), NARROW)
    if not (exact and kept):
        return FP32.name
    fixed = [p.of(v).format for v in op.inputs if not p.of(v).provided]
    return FP32.name if 2 * fixed.count(FP32.name) > len(fixed) else DL16.name


def keeps_float32(p: LayoutPlanner, op: Operation, *elements: Attribute) -> bool:
    """Return whether floats of an op are float32: they start from integers, or float32 is kept."""
    if p.origins is not None and op in p.origins.wide:
        return True
    return (p.keep_float32 or op in p.kept) and f32 in elements


def _of_destination(form: str, function: str, *, has_wide: bool) -> str:
    if form == FP32.name and not has_wide:
        raise LoweringError(f"{function} has no form on float32, in which its result is stored", hint="copy the result")
    return form


def exact_in_dl16(p: LayoutPlanner, value: SSAValue) -> bool:
    """Return whether the elements of a tensor are exact in DL16."""
    if not is_integer(element_of(value)) or p.of(value).format == DL16.name:
        return True
    return p.of(value).provided and inside(p.ranges.of(value), NARROW)


def _saturated(p: LayoutPlanner, op: loop.NestOp, entry: OpEntry | None) -> SSAValue | None:
    """The integer input that is compared with small integers only: the host may limit it to just beyond them."""
    if entry is None or not entry.boolean:
        return None
    unknown = [v for v in op.inputs if not exact_in_dl16(p, v)]
    others = [v for v in op.inputs if v not in unknown]
    if len(unknown) != 1 or p.of(unknown[0]).host is None:
        return None
    return unknown[0] if all(inside(p.ranges.of(v), NARROW) for v in others) else None


def cast(p: LayoutPlanner, op: loop.NestOp) -> bool:
    """Make the result of a cast a device form of its operand, which costs at most a conversion.

    Returns whether the nest is such a change of a whole tensor: of integers, of eight-bit floats, of kept float32, or
    between floats that are both DL16, which costs nothing.
    """
    (value,) = op.inputs
    old, new = element_of(value), element_of(op.result)
    same = op.input_maps[0].data == op.output_map.data and shape_of(value) == shape_of(op.result)
    if old == new or not same or op.dest is not None:
        return False
    if isinstance(new, Float8E4M3FNType):
        p.versions[op.result] = p.rounded(value)
        return True
    kept = keeps_float32(p, op, old, new)
    if not (is_integer(old) or is_integer(new) or isinstance(old, Float8E4M3FNType) or kept):
        if p.of(value).format != DL16.name or stored_format(new) != DL16.name:
            return False
        p.versions[op.result] = p.of(value)
        return True
    if not is_integer(new):
        form = FP32.name if keeps_float32(p, op, new) else stored_format(new)
        p.versions[op.result] = _converted(p, value, new, form) if _rounds(p, op) else p.form(value, form)
    elif is_integer(old) and not wraps(new) and not inside(p.all_integers.of(value), type_range(new)):
        p.versions[op.result] = _converted(p, value, new, p.of(value).format)
    elif is_integer(old) and wraps(new) and not inside(p.ranges.of(value), holds(new)):
        p.versions[op.result] = wrapped(p, p.form(value, FP32.name) if p.of(value).provided else p.of(value), new)
    else:
        p.versions[op.result] = p.of(value)
    return True


def _rounds(p: LayoutPlanner, op: loop.NestOp) -> bool:
    """Return whether a cast rounds integers to float32 where exact numerics see it."""
    (value,), result = op.inputs, element_of(op.result)
    if not is_integer(element_of(value)) or result != f32 or op.wide is not None:
        return False
    one = isinstance(p.of(value).constant, FloatAttr | IntegerAttr)  # `Ranges` refuses a number that FP32 has not
    return not (one or inside(p.all_integers.of(value), WIDE))


def _converted(p: LayoutPlanner, value: SSAValue, element: Attribute, form: str) -> DeviceForms:
    """Integers in another type: the host converts those it has, a kernel those that are computed.

    The device itself has no larger integers than float32, so that the kernel that converts only copies there.
    """
    home = p.of(value)
    if home.host is not None:
        return home.sent_as(form, element)
    form = FP32.name if form == INDEX.name else form  # no kernel makes indices
    return DeviceForms(home.shape, form, origin=home, elements=(element,))


def wrapped(p: LayoutPlanner, versions: DeviceForms, element: Attribute) -> DeviceForms:
    """Wrap integers to a short type: subtract the nearest multiple of its range.

    All steps are exact: a power of two only scales.
    """
    low, high = holds(element)
    count, source = high - low + 1, p.some(versions)
    quotient = _step(p, "mul", [source], 1 / count)
    if low < 0:
        quotient = _step(p, "add", [quotient], _HALF)
    whole = _step(p, "mul", [_step(p, "floor", [quotient])], count)
    return DeviceForms(versions.shape, versions.format, [_step(p, "sub", [source, whole])])


def _step(
    p: LayoutPlanner, function: str, operands: Sequence[PlannedBuffer], number: float | None = None
) -> PlannedBuffer:
    """One element-by-element function over whole buffers of one layout, and a number."""
    first = operands[0]
    made = p.fresh(first.shape, first.format, first.layout.stick)
    space, index = elements_of(first.shape)
    through: list[tuple[PlannedBuffer, IndexMap]] = [(b, index) for b in operands]
    if number is not None:
        through.append((p.number(number, first.format), tuple[LinearExpr, ...]()))
    p.step(function, space, through, (made, index))
    return made


def eager_element(op: loop.NestOp, form: str) -> Attribute | None:
    """Return the element type to which exact numerics round a nest's result, as eager does; None if unchanged.

    Integers that have 32 bits or more, and no bounds that DL16 holds, start anew beyond their type. A nest that makes
    integers of floats has the types of both.
    """
    element = element_of(op.result)
    if converts_to_integers(op):
        return FunctionType.from_lists([element_of(op.inputs[-1])], [element])
    if is_integer(element):
        return element if form == FP32.name and not wraps(element) else None
    return element if element == f32 and op.wide is None else None


def is_watched(p: LayoutPlanner, op: loop.NestOp, function: str, form: str) -> bool:
    """Return whether a kernel may exceed the integers of FP32, so that the machine has to check."""
    if picks(function):
        return False
    return form == FP32.name and is_integer(element_of(op.result)) and not inside(p.ranges.unwrapped(op), WIDE)
