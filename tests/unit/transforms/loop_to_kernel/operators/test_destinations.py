"""Layouts of tensors that several nests fill, and formats of constants."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopConstantOp
from spyre_mlir.hw.formats import DL16, FP32, DeviceFormat
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.operators.destinations import fillable_sticks, lower_constant, lower_empty
from tests.unit.transforms.levels import ops, passed

COPY = "{\n^bb0(%e: f32):\n  spyre.loop.yield %e : f32\n}"


def joined(offset: int) -> EmptyOp:
    """The destination of two nests, of which the second writes columns from `offset` on."""
    half, whole = f"tensor<64x{offset}xf32>", f"tensor<64x{2 * offset}xf32>"
    loops = f"spyre.loop.nest [m = 64, n = {offset}]"
    text = f"""func.func @main(%x: {half}, %y: {half}) -> {whole} {{
      %d = spyre.loop.empty : {whole}
      %0 = {loops} ins(%x[m, n] : {half}) into %d -> [m, n] : {whole} {COPY}
      %1 = {loops} ins(%y[m, n] : {half}) into %0 -> [m, n + {offset}] : {whole} {COPY}
      func.return %1 : {whole}
    }}"""
    return ops(passed(text), EmptyOp)[0]


@pytest.mark.parametrize(("offset", "sticks"), [(64, [1, 0, UNIT]), (40, [0, UNIT])])
def test_no_nest_starts_within_a_stick(offset: int, sticks: list[int]) -> None:
    assert fillable_sticks(joined(offset), DL16.name) == sticks


def test_a_destination_is_one_buffer_in_a_layout_that_both_can_fill() -> None:
    op, p = joined(40), LayoutPlanner()
    lower_empty(p, op)
    (buffer,) = p.of(op.result).buffers
    assert buffer is p.chosen.made[op]
    assert (buffer.shape, buffer.layout.stick) == ((64, 80), 0)


@pytest.mark.parametrize(("number", "form"), [(1024, DL16), (1025, FP32)])
def test_integers_of_constants_have_the_format_that_holds_them(number: int, form: DeviceFormat) -> None:
    value = f"%0 = spyre.loop.constant {number} : i64 : tensor<4xi64>"
    (op,) = ops(
        passed(f"func.func @main() -> tensor<4xi64> {{\n{value}\nfunc.return %0 : tensor<4xi64>\n}}"), LoopConstantOp
    )
    p = LayoutPlanner()
    lower_constant(p, op)
    assert p.of(op.result).format == form.name and p.of(op.result).constant is op.value
