"""Layouts in the text of the loop level: said by the pass, followed by the conversion, changed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, RestickifyOp, device_tensor
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice, LayoutError
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopGatherOp, NestOp
from spyre_mlir.dialects.spyre.loop_blocks import BlockOp
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.text.render import module_text
from spyre_mlir.transforms.loop_to_kernel.layout_reasons import LayoutReason
from spyre_mlir.transforms.loop_to_kernel.layout_text.argument_layouts import drop_layouts
from tests.unit.machine.modules import numbers
from tests.unit.transforms.buffer_layouts.repair.programs import few_columns_less_their_greatest
from tests.unit.transforms.levels import ops, passed

CHOOSE, CONVERT = "choose-layouts", "convert-spyre-loop-to-spyre-kernel"
T = "tensor<128x256xf32>"
COPY = "{\n^bb0(%e: f32):\nspyre.loop.yield %e : f32\n}"
SPACE = "[m = 128, n = 256]"


def relu_and_sum(said: str = "") -> str:
    """A function of each element, and sums over the first dimension: the card sums in the lanes."""
    return f"""func.func @main(%x: {T}) -> tensor<256xf32> {{
      %0 = spyre.loop.nest {SPACE} ins(%x[m, n] : {T}) -> [m, n] : {T} {said} {{
      ^bb0(%e: f32):
        %r = spyre.loop.apply "relu"(%e) : (f32) -> f32
        spyre.loop.yield %r : f32
      }}
      %1 = spyre.loop.nest {SPACE} ins(%0[m, n] : {T}) -> [n] : tensor<256xf32> reduce "arith.addf" {COPY}
      func.return %1 : tensor<256xf32>
    }}"""


def saying(*parts: str) -> str:
    return f"attributes {{spyre.layout = #spyre.layout<{', '.join(parts)}>}}"


def said(module: ModuleOp) -> list[LayoutChoice | None]:
    """What is said of the layouts of nests, in order."""
    found = [op.attributes.get(LAYOUT) for op in ops(module, NestOp)]
    return [one.data if isinstance(one, LayoutAttr) else None for one in found]


def without_layouts(module: ModuleOp) -> str:
    for op in module.walk():
        op.attributes.pop(LAYOUT, None)
        if isinstance(op, FuncOp):
            drop_layouts(op)
    return module_text(module)


def test_every_nest_says_its_layout_and_nothing_else_changes() -> None:
    made = passed(relu_and_sum(), CHOOSE)
    first, second = said(made)
    assert first == LayoutChoice("n", 1, (1, 0)) or first == LayoutChoice("m", 0, (0, 1))
    assert second is not None and second.lanes and second.stick is not None
    assert without_layouts(made) == module_text(passed(relu_and_sum()))


def test_the_conversion_makes_the_same_kernels_of_the_text_as_of_the_program() -> None:
    text = module_text(passed(relu_and_sum(), CHOOSE, repair=False))
    assert module_text(passed(text, CONVERT)) == module_text(passed(relu_and_sum(), CONVERT))


@pytest.mark.parametrize("stick", [0, 1, "unit"])
def test_a_changed_stick_dimension_is_followed_and_gives_the_same_numbers(stick: int | str) -> None:
    made = passed(relu_and_sum(saying(f"stick {stick}")), CHOOSE, CONVERT)
    relu = ops(made, KernelOp)[0]
    assert device_tensor(relu.output).layout.stick == (-1 if stick == "unit" else stick)
    x = numbers(128, 256)
    np.testing.assert_allclose(run_function(made, [x])[0], np.maximum(x, 0).sum(0), rtol=1e-5)


def test_what_a_changed_layout_asks_for_is_inserted() -> None:
    # The host sends the input so that sums have their loop in the lanes, or the tensor between is laid out again.
    in_lanes = passed(relu_and_sum(saying("stick 0")), CONVERT)
    assert not ops(in_lanes, RestickifyOp)
    sums = saying("lanes m")
    text = relu_and_sum(saying("lanes n")).replace(f'"arith.addf" {COPY}', f'"arith.addf" {sums} {COPY}')
    assert len(ops(passed(text, CONVERT), RestickifyOp)) == 1


def test_what_is_said_before_the_pass_stays_and_is_completed() -> None:
    for part, completed in (
        ("lanes m", LayoutChoice("m", 0, (0, 1))),
        ("stick 0", LayoutChoice("m", 0, (0, 1))),
        ("order [0, 1], stick 1", LayoutChoice("n", 1, (0, 1))),
    ):
        assert said(passed(relu_and_sum(saying(part)), CHOOSE))[0] == completed


def test_an_order_is_followed() -> None:
    made = passed(relu_and_sum(saying("stick 1", "order [0, 1]")), CONVERT)
    assert device_tensor(ops(made, KernelOp)[0].output).layout.order == (0, 1)


@pytest.mark.parametrize(
    ("parts", "message", "hint"),
    [
        ("lanes q", "cannot be lanes q", "legal are lanes n, stick 1; lanes m, stick 0; lanes none, stick unit"),
        ("stick 2", "cannot be stick 2", "lanes n, stick 1"),
        ("lanes n, stick 0", "cannot be lanes n, stick 0", "lanes n, stick 1"),
        ("order [0]", "does not list each dimension", "for example stick"),
    ],
)
@pytest.mark.parametrize("name", [CHOOSE, CONVERT])
def test_an_illegal_layout_is_refused_with_the_legal_ones(parts: str, message: str, hint: str, name: str) -> None:
    with pytest.raises(LayoutError, match=message) as met:
        passed(relu_and_sum(saying(parts)), name)
    assert met.value.hint is not None and hint in met.value.hint
    assert met.value.where is not None and met.value.where.startswith("spyre.loop.nest at")


def product(said: str) -> str:
    x, w, y = "tensor<64x128xf32>", "tensor<128x192xf32>", "tensor<64x192xf32>"
    return f"""func.func @main(%x: {x}, %w: {w} {{aten.kind = "parameter"}}) -> {y} {{
      %0 = spyre.loop.nest [m = 64, n = 192, k = 128] ins(%x[m, k] : {x}, %w[k, n] : {w}) -> [m, n] : {y}
        reduce "arith.addf" {said} {{
      ^bb0(%e: f32, %g: f32):
        %p = arith.mulf %e, %g : f32
        spyre.loop.yield %p : f32
      }}
      func.return %0 : {y}
    }}"""


def test_a_product_has_its_columns_in_the_lanes() -> None:
    assert said(passed(product(""), CHOOSE)) == [LayoutChoice("n", 1, (1, 0))]
    with pytest.raises(LayoutError, match="a product has its columns in the lanes") as met:
        passed(product(saying("lanes m")), CONVERT)
    assert met.value.hint == "legal are lanes n, stick 1"


def filled(empty: str = "", nest: str = "") -> str:
    y = "tensor<256x256xf32>"
    parts = "".join(
        f"%{n + 1} = spyre.loop.nest {SPACE} ins(%x[m, n] : {T}) into %{n} -> [m + {128 * n}, n] : {y} {nest} {COPY}\n"
        for n in range(2)
    )
    return f"""func.func @main(%x: {T}) -> {y} {{
      %0 = spyre.loop.empty {empty} : {y}
      {parts} func.return %2 : {y}
    }}"""


def test_a_tensor_that_nests_fill_says_its_layout_and_they_follow_it() -> None:
    made = passed(filled(), CHOOSE)
    (empty,) = ops(made, EmptyOp)
    assert LAYOUT in empty.attributes and said(made) == [None, None]
    by_hand = passed(filled("{spyre.layout = #spyre.layout<stick 0>}"), CONVERT)
    assert [device_tensor(op.output).layout.stick for op in ops(by_hand, KernelOp)] == [0, 0]
    x = numbers(128, 256)
    np.testing.assert_allclose(run_function(by_hand, [x])[0], np.concatenate([x, x]))


@pytest.mark.parametrize(
    ("empty", "nest", "message"),
    [
        ("{spyre.layout = #spyre.layout<lanes n>}", "", "has no loops"),
        ("{spyre.layout = #spyre.layout<stick 7>}", "", "cannot be stick 7"),
        ("{spyre.layout = #spyre.layout<stick 0>}", saying("lanes n"), "written where its destination lies"),
        ("{spyre.layout = #spyre.layout<stick 0>}", saying("order [1, 0]"), "written where its destination lies"),
    ],
)
def test_a_filled_tensor_and_its_nests_have_to_agree(empty: str, nest: str, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        passed(filled(empty, nest), CONVERT)


def test_a_layout_where_no_tensor_is_made_is_refused() -> None:
    y = "tensor<128x256xf16>"
    text = f"""func.func @main(%x: {T}) -> {y} {{
      %0 = spyre.loop.nest {SPACE} ins(%x[m, n] : {T}) -> [m, n] : {y} {saying("stick 0")} {COPY}
      func.return %0 : {y}
    }}"""
    with pytest.raises(LayoutError, match="no tensor with a layout of its own") as met:
        passed(text, CONVERT)
    assert met.value.hint == "take spyre.layout away"


def test_a_nest_in_two_parts_says_the_lanes_of_the_first() -> None:
    # The destination keeps float32, and no function of the matrix unit writes that: the product is copied there.
    x, y = "tensor<64x64xf32>", "tensor<128x64xf32>"
    text = f"""func.func @main(%x: {x}, %w: {x}) -> {y} {{
      %0 = spyre.loop.empty : {y}
      %1 = spyre.loop.nest [m = 64, n = 64, k = 64] ins(%x[m, k] : {x}, %w[k, n] : {x}) into %0 -> [m, n] : {y}
        reduce "arith.addf" {{
      ^bb0(%e: f32, %g: f32):
        %p = arith.mulf %e, %g : f32
        spyre.loop.yield %p : f32
      }}
      %2 = spyre.loop.nest [m = 64, n = 64] ins(%x[m, n] : {x}) into %1 -> [m + 64, n] : {y} {COPY}
      func.return %2 : {y}
    }}"""
    made = passed(text, CHOOSE, keep_float32=True)
    assert said(made) == [LayoutChoice("n"), None]
    assert without_layouts(made) == module_text(passed(text))
    again = passed(module_text(passed(text, CHOOSE, keep_float32=True)), CONVERT, keep_float32=True)
    assert module_text(again) == module_text(passed(text, CONVERT, keep_float32=True))


def gathered(said: str = "") -> str:
    table, y = "tensor<100x128xf32>", "tensor<8x128xf32>"
    return f"""func.func @main(%i: tensor<8xi64>, %t: {table} {{aten.kind = "parameter"}}) -> {y} {{
      %0 = spyre.loop.gather [s = 8, h = 128] rows(%i[s] : tensor<8xi64>) of axis 0 in %t[0, h] : {table}
        -> [s, h] : {y} {said}
      func.return %0 : {y}
    }}"""


def test_gathered_rows_say_their_layout() -> None:
    (gather,) = ops(passed(gathered(), CHOOSE), LoopGatherOp)
    assert gather.attributes[LAYOUT] == LayoutAttr(LayoutChoice("h", 1, (1, 0)))
    ordered = passed(gathered(saying("order [0, 1]")), CONVERT)
    assert device_tensor(ops(ordered, AllocOp)[-1].result).layout.order == (0, 1)
    with pytest.raises(LayoutError, match="cannot be stick 0"):
        passed(gathered(saying("stick 0")), CONVERT)


def updated(said: str = "") -> str:
    x, b, i = "tensor<1x128x256xf32>", "tensor<1x64x256xf32>", "tensor<1xi64>"
    return f"""func.func @main(%x: {x}, %i: {i}) -> {x} {{
      %0 = spyre.loop.block %x dim 1 at %i {said} : {x}, {i} -> {b}
      %1 = spyre.loop.nest [m = 64, n = 256] ins(%0[0, m, n] : {b}) -> [0, m, n] : {b} {{
      ^bb0(%e: f32):
        %r = spyre.loop.apply "relu"(%e) : (f32) -> f32
        spyre.loop.yield %r : f32
      }}
      %2 = spyre.loop.put %1 into %x dim 1 at %i : {b}, {x}, {i} -> {x}
      func.return %2 : {x}
    }}"""


def test_a_block_that_is_written_says_how_its_tensor_lies() -> None:
    (block,) = ops(passed(updated(), CHOOSE), BlockOp)
    layout = block.attributes[LAYOUT]
    assert isinstance(layout, LayoutAttr) and layout.data.stick is not None
    other = 1 if layout.data.stick == 2 else 2
    by_hand = passed(updated(f"{{spyre.layout = #spyre.layout<stick {other}>}}"), CONVERT)
    assert device_tensor(ops(by_hand, KernelOp)[0].output).layout.stick == other
    with pytest.raises(LayoutError, match="cannot be stick 0"):
        passed(updated("{spyre.layout = #spyre.layout<stick 0>}"), CONVERT)


def test_a_quicker_layout_is_found_by_trials() -> None:
    """With 2 sticks of columns in the lanes two cores find the greatest numbers, or it is laid out again."""
    usual = passed(few_columns_less_their_greatest(), CHOOSE, repair=False)
    better = passed(few_columns_less_their_greatest(), CHOOSE, why=True)
    assert [choice and choice.lanes for choice in said(usual)] == ["n", "r", "n"]
    assert [choice and choice.lanes for choice in said(better)] == ["m", "r", "m"]
    reasons = [LayoutReason.taken_from(op) for op in ops(better, NestOp)]
    assert {str(reason) for reason in reasons} == {"quickest in trials, of 3 legal ones"}
