"""Layouts of arguments and results in the text: written, followed where they are edited, or refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.utils.test_value import create_ssa_value

from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, KernelOp, RestickifyOp, ToDeviceOp, device_tensor
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutChoice, LayoutError
from spyre_mlir.hw.formats import FP32
from spyre_mlir.hw.sticks import StickLayout
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.text.render import module_text
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer
from spyre_mlir.transforms.loop_to_kernel.layout_text.argument_layouts import ArgumentLayouts
from tests.unit.machine.modules import numbers
from tests.unit.transforms.levels import ops, passed

CHOOSE, CONVERT = "choose-layouts", "convert-spyre-loop-to-spyre-kernel"
X, W, Y = "tensor<64x128xf32>", "tensor<192x128xf32>", "tensor<64x192xf32>"
ROWS, COLUMNS = "#spyre.layout<stick 1, order [1, 0]>", "#spyre.layout<stick 0, order [0, 1]>"


def linear(x: str = "", w: str = "", y: str = "") -> str:
    """A product of an input and a weight; what is said of each is a layout."""

    def notes(kind: str, said: str) -> str:
        parts = [*([kind] if kind else []), *([f"spyre.layout = {said}"] if said else [])]
        return f" {{{', '.join(parts)}}}" if parts else ""

    given = notes('aten.kind = "input"', x), notes('aten.kind = "parameter"', w)
    return f"""func.func @main(%x: {X}{given[0]}, %w: {W}{given[1]}) -> ({Y}{notes("", y)}) {{
      %0 = spyre.loop.nest [m = 64, n = 192, k = 128] ins(%x[m, k] : {X}, %w[n, k] : {W}) -> [m, n] : {Y}
        reduce "arith.addf" {{
      ^bb0(%e: f32, %g: f32):
        %p = arith.mulf %e, %g : f32
        spyre.loop.yield %p : f32
      }}
      func.return %0 : {Y}
    }}"""


def sent(module: ModuleOp) -> list[tuple[int, tuple[int, ...]]]:
    """Stick dimension and order of what the host sends."""
    found = [device_tensor(op.result).layout for op in ops(module, ToDeviceOp)]
    return [(layout.stick, layout.order) for layout in found]


def check_numbers(module: ModuleOp) -> None:
    x, w = numbers(64, 128), numbers(192, 128)
    np.testing.assert_allclose(run_function(module, [x, w])[0], x @ w.T, rtol=1e-4, atol=1e-4)


def test_arguments_and_results_say_how_they_lie_and_kernels_do_not_repeat_it() -> None:
    made = passed(linear(), CHOOSE)
    (function,) = ops(made, FuncOp)
    assert function.arg_attrs is not None and function.res_attrs is not None
    said = [str(note.data[LAYOUT]) for note in (*function.arg_attrs, *function.res_attrs)]
    assert said == [ROWS, COLUMNS, ROWS]
    text = module_text(made)
    assert module_text(passed(text, CONVERT)) == module_text(passed(linear(), CONVERT))
    assert LAYOUT not in module_text(passed(text, CONVERT))


@pytest.mark.parametrize("x", ["#spyre.layout<stick 0>", COLUMNS])
@pytest.mark.parametrize("stop", [True, False])
def test_an_input_is_sent_as_it_says_and_laid_out_again_for_its_readers(x: str, stop: bool) -> None:
    text = module_text(passed(linear(x=x), CHOOSE)) if stop else linear(x=x)
    made = passed(text, CONVERT)
    assert sent(made)[0] == (0, (0, 1))
    assert len(ops(made, RestickifyOp)) == 1 and not ops(passed(linear(), CONVERT), RestickifyOp)
    check_numbers(made)


def test_a_weight_has_the_order_that_it_says() -> None:
    made = passed(linear(w="#spyre.layout<order [1, 0]>"), CONVERT)
    assert sent(made)[1] == (0, (1, 0)) and sent(passed(linear(), CONVERT))[1] == (0, (0, 1))
    assert not ops(made, RestickifyOp)
    check_numbers(made)


def test_a_result_leaves_as_it_says() -> None:
    for y, stick, order, inserted in ((COLUMNS, 0, (0, 1), 1), ("#spyre.layout<order [0, 1]>", 1, (0, 1), 1)):
        made = passed(linear(y=y), CONVERT)
        (fetched,) = ops(made, FromDeviceOp)
        layout = device_tensor(fetched.operands[0]).layout
        assert (layout.stick, layout.order) == (stick, order)
        assert len(ops(made, KernelOp)) == 1 + inserted
        check_numbers(made)


@pytest.mark.parametrize(
    ("said", "message", "hint"),
    [
        ({"w": ROWS}, "the layout of %w cannot be stick 1", "legal is what its readers read: stick 0, order [0, 1]"),
        ({"x": "#spyre.layout<order [0]>"}, "does not list each dimension", "for example"),
        ({"x": "#spyre.layout<lanes m, stick 0>"}, "of an argument or result is", "without lanes"),
        ({"x": "1 : i64"}, "of an argument or result is 1", "write #spyre.layout<stick 1, order [1, 0]>"),
        ({"y": f"[{ROWS}, {COLUMNS}]"}, "result 0 has several layouts", "say one"),
        (
            {"x": f"[{ROWS}, {COLUMNS}]"},
            "the layout of %x cannot be stick 0",
            "legal is what its readers read: stick 1",
        ),
    ],
)
@pytest.mark.parametrize("name", [CHOOSE, CONVERT])
def test_what_cannot_be_is_refused(said: dict[str, str], message: str, hint: str, name: str) -> None:
    with pytest.raises(LayoutError, match=re.escape(message)) as refused:
        passed(linear(**said), name)
    assert refused.value.hint is not None and hint in refused.value.hint


@pytest.mark.parametrize("edited", ["x", "y"])
def test_what_programs_on_the_card_place_stays_as_they_place_it(edited: str) -> None:
    text = linear(**{edited: COLUMNS}).replace(
        f"spyre.layout = {COLUMNS}", f'aten.layout = "default", spyre.layout = {COLUMNS}'
    )
    with pytest.raises(LayoutError, match="cannot be stick 0") as refused:
        passed(text, CONVERT)
    assert refused.value.hint is not None and "option inputs=free leaves it open: stick 1" in refused.value.hint


def test_a_tensor_that_is_sent_twice_says_both_layouts() -> None:
    second = f"""  %1 = spyre.loop.nest [m = 192, k = 128] ins(%w[m, k] : {W}) -> [m] : tensor<192xf32>
        reduce "arith.addf" attributes {{spyre.layout = #spyre.layout<lanes k>}} {{
      ^bb0(%e: f32):
        spyre.loop.yield %e : f32
      }}
      func.return %0, %1 : {Y}, tensor<192xf32>"""
    text = linear().replace(f"func.return %0 : {Y}", second).replace(f"-> ({Y})", f"-> ({Y}, tensor<192xf32>)")
    made = passed(text, CHOOSE)
    (function,) = ops(made, FuncOp)
    assert function.arg_attrs is not None
    assert str(function.arg_attrs.data[1].data[LAYOUT]) == f"[{COLUMNS}, {ROWS}]"
    assert module_text(passed(module_text(made), CONVERT)) == module_text(passed(text, CONVERT))
    one = module_text(made).replace(f"[{COLUMNS}, {ROWS}]", COLUMNS)
    with pytest.raises(LayoutError, match="%w is read in another layout, too: stick 1") as refused:
        passed(one, CONVERT)
    assert refused.value.hint is not None and refused.value.hint.startswith("say all of them: stick 0")


@pytest.mark.parametrize("own", [(0, 1), (1, 0)])
def test_of_several_orders_that_are_said_a_tensor_keeps_its_own(own: tuple[int, int]) -> None:
    """An argument that is sent once as indices and once as numbers may lie otherwise each time."""
    host = create_ssa_value(TensorType(i64, [2, 16]))
    said = [LayoutChoice(stick=1, order=order) for order in ((0, 1), (1, 0))]
    buffer = PlannedBuffer((2, 16), FP32.name, StickLayout(own, 1, (2, 32)), host)
    assert ArgumentLayouts({host: said}).order(buffer).layout.order == own
    assert ArgumentLayouts({host: said[:1]}).order(buffer).layout.order == (0, 1)
