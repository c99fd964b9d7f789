"""Where the layouts of a function may lose time."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.layout_choices import NO_LOOP, LayoutChoice
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.hw.cost_parameters import CALIBRATED
from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import is_slow
from tests.unit.transforms.buffer_layouts.repair.programs import (
    T,
    columns_less_their_greatest,
    function,
    planned,
    relu,
)
from tests.unit.transforms.levels import ops

ROWS = "attributes {spyre.layout = #spyre.layout<lanes m>}"


def test_a_tensor_that_is_laid_out_again_is_a_spot() -> None:
    """An input of 1024 rows of 16 sticks for a nest with rows in the lanes, and its result back again."""
    module, (layouts,) = planned(function(relu("out", "x", ROWS)))
    (nest,) = ops(module, NestOp)
    assert [(spot.sticks, spot.ops) for spot in layouts.spots] == [(2 * 1024 * 16, (nest,))] * 2
    assert set(layouts.relaid_for.values()) == {nest}


def test_layouts_that_the_text_says_are_not_open() -> None:
    module, (layouts,) = planned(function(relu("0", "x", ROWS), relu("out", "0")))
    first, second = ops(module, NestOp)
    assert first not in layouts.open and [choice.lanes for choice in layouts.open[second]] == ["n", "m"]


def test_a_nest_with_few_cores_is_a_spot() -> None:
    """Columns in the lanes: 16 sticks of them may be divided, or the rows of the other nests."""
    module, (layouts,) = planned(columns_less_their_greatest())
    first, greatest, _ = ops(module, NestOp)
    assert [spot.ops for spot in layouts.spots] == [(greatest,)]
    assert is_slow(greatest, layouts.choices[greatest], layouts.open[greatest])
    assert not is_slow(first, layouts.choices[first], layouts.open[first])


def product_of(rows: int) -> str:
    x, out = f"tensor<{rows}x1024xf16>", f"tensor<{rows}x1024xf16>"
    return f"""func.func @main(%x: {x}, %w: {T} {{aten.kind = "parameter"}}) -> {out} {{
      %0 = spyre.loop.nest [m = {rows}, n = 1024, k = 1024] ins(%x[m, k] : {x}, %w[k, n] : {T}) -> [m, n] : {out}
        reduce "arith.addf" {{
        ^bb0(%e: f16, %f: f16):
          %p = arith.mulf %e, %f : f16
          spyre.loop.yield %p : f16
        }}
      func.return %0 : {out}
    }}"""


def test_products_take_the_least_time_that_is_possible() -> None:
    """Of 1024 rows to multiply, 1,140 multiply-adds per nanosecond and core; of 64 to read both at 150 GB/s."""
    _, (layouts,) = planned(product_of(1024))
    assert layouts.least_us(CALIBRATED) == pytest.approx(1024**3 / 1140 / 32 / 1000, rel=0.05)
    _, (layouts,) = planned(product_of(64))
    assert layouts.least_us(CALIBRATED) == pytest.approx((1024 + 64) * 1024 * 2 / 150 / 1000, rel=0.01)


def test_a_nest_with_an_element_per_stick_is_slow() -> None:
    module, (layouts,) = planned(columns_less_their_greatest())
    first, *_ = ops(module, NestOp)
    assert is_slow(first, LayoutChoice(NO_LOOP), layouts.open[first])


def test_a_reader_says_how_it_reads() -> None:
    module, (layouts,) = planned(columns_less_their_greatest())
    first, greatest, _ = ops(module, NestOp)
    assert [layout.stick for layout in layouts.read(first.result, greatest)] == [1]
    assert str(first.result.type) == T


def test_a_reduction_may_have_one_element_per_stick_if_it_reads_as_many_sticks() -> None:
    """Of 4096 rows of 1024, 16 sticks each, the greatest; and of rows of 32, half a stick each."""

    def legal(columns: int) -> list[str | None]:
        wide, rows = f"tensor<4096x{columns}xf16>", "tensor<4096x1xf16>"
        text = f"""func.func @main(%x: {wide}) -> {rows} {{
          %0 = spyre.loop.nest [m = 4096, r = {columns}] ins(%x[m, r] : {wide}) -> [m, 0] : {rows}
            reduce "arith.maximumf" {{
          ^bb0(%e: f16):
            spyre.loop.yield %e : f16
          }}
          func.return %0 : {rows}
        }}"""
        module, (layouts,) = planned(text)
        (nest,) = ops(module, NestOp)
        return [choice.lanes for choice in layouts.open.get(nest, ())]

    assert legal(1024) == ["r", "m", "none"]
    assert legal(32) == []


def test_changes_of_layout_are_kernels_of_the_op_that_they_are_made_for() -> None:
    module, (layouts,) = planned(function(relu("0", "x", ROWS), relu("out", "0", ROWS)))
    first, second = ops(module, NestOp)
    assert [layouts.kernels_of({op}) for op in (first, second)] == [2, 2]
    assert layouts.kernels_of({first, second}) == len(layouts.kernels) == 4


def test_parts_of_a_nest_are_its_kernels() -> None:
    """A product writes its columns in the lanes, and a tensor that is filled from column 40 on has rows there."""
    filled = "tensor<1024x80xf16>"

    def product(name: str, into: str, column: str) -> str:
        return f"""%{name} = spyre.loop.nest [m = 1024, n = 40, k = 1024] ins(%x[m, k] : {T}, %0[k, n] : {T})
          into %{into} -> [m, {column}] : {filled} reduce "arith.addf" {{
        ^bb0(%e: f16, %f: f16):
          %p = arith.mulf %e, %f : f16
          spyre.loop.yield %p : f16
        }}"""

    parts = product("1", "d", "n"), product("out", "1", "n + 40")
    text = function(relu("0", "x"), f"%d = spyre.loop.empty : {filled}", *parts, result=filled)
    module, (layouts,) = planned(text)
    first, one, other = ops(module, NestOp)
    # Each product, the change of its layout, and its copy; behind the last one the result is laid out for the caller.
    assert [layouts.kernels_of({op}) for op in (first, one, other)] == [1, 3, 4]
    assert layouts.kernels_of({first, one, other}) == len(layouts.kernels)
