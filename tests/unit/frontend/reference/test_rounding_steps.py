"""Operators that jump: eager's elements where a last bit decides, and ours everywhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend.reference.rounding_steps import _JUMPING, _LAST, _LEAVING, _NAMING, RoundingSteps, is_step
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

F32 = np.float32
UNIT = 2.0**-23  # one unit in the last place of float32 at 1


def function(op: str, *, count: int = 4, element: str = "f32", result: str = "f32", places: str = "") -> ModuleOp:
    """A function of one operator on tensors of so many elements; `places` is the type of a second result."""
    several = f"(tensor<{count}x{result}>, tensor<{count}x{places}>)" if places else f"tensor<{count}x{result}>"
    named = "%0, %1" if places else "%0"
    name, _, attributes = op.partition(" ")
    return parse_module(
        f"""func.func @main(%x: tensor<{count}x{element}>) -> tensor<{count}x{result}> {{
          {named} = aten.{name}(%x) {attributes} : (tensor<{count}x{element}>) -> {several}
          func.return %0 : tensor<{count}x{result}>
        }}""",
        make_context(),
    )


def op_of(module: ModuleOp) -> AtenOp:
    return next(op for op in module.walk() if isinstance(op, AtenOp))


@pytest.mark.parametrize(
    ("module", "jumps"),
    [
        (function("floor"), True),
        (function("gt.Scalar {other = 1.0}", result="i1"), True),
        (function("sort {dim = 0}", places="i64"), True),
        (function("exp"), False),
        (function("floor", element="i32", result="i32"), False),
        (function('_to_copy {dtype = "i32"}', result="i32"), True),
        (function('_to_copy {dtype = "f16"}', result="f16"), False),
    ],
)
def test_steps_jump_on_floats(module: ModuleOp, jumps: bool) -> None:
    assert is_step(op_of(module)) is jumps


LEFT = """remainder.Tensor remainder.Scalar remainder.Scalar_Tensor fmod.Tensor fmod.Scalar fmod.Scalar_Tensor frac
round.decimals hardshrink threshold copysign.Tensor fake_quantize_per_tensor_affine fake_quantize_per_channel_affine"""
JUMPS = """floor ceil round trunc fix sign sgn signbit heaviside floor_divide floor_divide.Scalar div.Tensor_mode
div.Scalar_mode eq.Tensor eq.Scalar ne.Tensor ne.Scalar lt.Tensor lt.Scalar le.Tensor le.Scalar gt.Tensor gt.Scalar
ge.Tensor ge.Scalar bucketize.Tensor searchsorted.Tensor isclose"""
PLACES = "argmax argmin max.dim min.dim sort sort.stable argsort argsort.stable topk kthvalue median.dim cummax cummin"


def test_operators_that_jump() -> None:
    assert set(f"{LEFT} {JUMPS}".split()) == _JUMPING
    assert set(LEFT.split()) == _LEAVING, "their results hold last bits of their operands"
    assert set(PLACES.split()) == _NAMING
    assert dict.fromkeys(["sort", "sort.stable", "argsort", "argsort.stable", "topk", "kthvalue"], -1) == _LAST


def test_what_is_no_operator_is_no_step() -> None:
    module = function("floor")
    assert not is_step(module)


def steps(module: ModuleOp, *values: float) -> RoundingSteps:
    found = RoundingSteps.of(module, [np.array(values, F32)])
    assert found is not None
    return found


def test_a_function_without_steps_is_not_run() -> None:
    assert RoundingSteps.of(function("exp"), [np.ones(4, F32)]) is None


def test_half_precision_is_held_against_doubles_anyway() -> None:
    assert RoundingSteps.of(function("floor", element="f16", result="f16"), [np.ones(4, np.float16)]) is None


def test_an_operator_that_torch_lacks_leaves_no_steps() -> None:
    module = parse_module(
        """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = aten.floor(%x) : (tensor<4xf32>) -> tensor<4xf32>
          %1 = aten.call "acme::nonesuch"(%0) {x = #aten.operands<1>} : (tensor<4xf32>) -> tensor<4xf32>
          func.return %1 : tensor<4xf32>
        }""",
        make_context(),
    )
    assert RoundingSteps.of(module, [np.ones(4, F32)]) is None


def test_eager_and_wide_values_are_kept() -> None:
    module = function("floor")
    found = steps(module, 0.5, 1.5, 2.5, -0.5)
    op = op_of(module)
    assert found.eager[op][0].tolist() == [0, 1, 2, -1]
    assert found.wide[op.results[0]].tolist() == [0, 1, 2, -1]
    assert found.flips == []


def test_what_follows_a_step_sees_eagers_side_of_it() -> None:
    """0.7 times 10 is 6.9999999 of doubles, and 7 of float32: eager's floor is 7, and so is that of doubles then."""
    module = parse_module(
        """func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
          %0 = aten.mul.Tensor(%x) {other = 10.0} : (tensor<1xf32>) -> tensor<1xf32>
          %1 = aten.floor(%0) : (tensor<1xf32>) -> tensor<1xf32>
          func.return %1 : tensor<1xf32>
        }""",
        make_context(),
    )
    product, floor = (op for op in module.walk() if isinstance(op, AtenOp))
    found = steps(module, 0.7)
    assert found.eager[product][0].tolist() == found.eager[floor][0].tolist() == [7]
    assert found.wide[product.results[0]][0] == float(F32(0.7)) * 10 < 7
    assert found.wide[floor.results[0]].tolist() == [7]


def test_an_element_at_the_boundary_is_eagers() -> None:
    """floor(2 - 3 units) is 1 for eager; ours, which saw 2, is excused. 1.5 and 3 are not, far from and on a side."""
    module = function("floor")
    found, op = steps(module, 2 - 3 * UNIT, 1.5, 3.5, 2.0), op_of(module)
    settled = found.settle(op, [np.array([2.0, 2.0, 3.0, 2.0])])
    assert [s.tolist() for s in settled] == [[1, 2, 3, 2]]
    (flip,) = found.flips
    assert (flip.op, flip.elements, flip.total) == ("floor", 1, 4)


def test_an_element_far_from_the_boundary_stays_ours() -> None:
    module = function("floor")
    found, op = steps(module, 2 - 12 * UNIT, 1.5, 3.5, 2.0), op_of(module)
    assert found.settle(op, [np.array([2.0, 1.0, 3.0, 2.0])])[0].tolist() == [2, 1, 3, 2]
    assert found.flips == []


def test_what_agrees_stays_as_it_is() -> None:
    module = function("floor")
    found, op = steps(module, 2 - 3 * UNIT, 1.5, np.nan, np.inf), op_of(module)
    values = [np.array([1.0, 1.0, np.nan, np.inf])]
    assert found.settle(op, values)[0] is values[0]
    assert found.flips == []


def test_other_ops_are_not_settled() -> None:
    module, other = function("floor"), function("floor")
    found, values = steps(module, 0.5, 1.5, 2.5, 3.5), [np.array([9.0] * 4)]
    assert found.settle(op_of(other), values) is values


def test_truth_values_flip_with_their_operand() -> None:
    module = function("gt.Scalar {other = 1.0}", result="i1")
    found, op = steps(module, 1.0, 1.0, 1 + 2 * UNIT, 3.0), op_of(module)
    settled = found.settle(op, [np.array([True, False, False, False])])
    assert settled[0].tolist() == [False, False, True, False], "3 is greater than 1, whatever eager does"
    assert settled[0].dtype == np.bool_
    assert found.flips[0].elements == 2


def test_what_is_left_of_operands_may_differ_in_last_bits() -> None:
    """fmod(3 - 2 units of 3, 1) is nearly 1, or nearly 0 on the other side of the boundary."""
    module = function("fmod.Scalar {other = 1.0}", count=3)
    below = 3 - 2 * 2.0**-22
    found, op = steps(module, below, 2.5, 2.25), op_of(module)
    settled = found.settle(op, [np.array([0.0, 0.5 + UNIT, 0.75])])
    assert settled[0].tolist() == [below - 2, 0.5 + UNIT, 0.75]
    assert (found.flips[0].elements, found.flips[0].total) == (1, 3)


def test_places_of_nearly_equal_elements_are_eagers() -> None:
    module = function("sort {dim = 0}", places="i64")
    found, op = steps(module, 1.0, 1 + 2 * UNIT, 5.0, 9.0), op_of(module)
    values = [np.array([1.0, 1 + UNIT, 5.0, 9.0]), np.array([1, 0, 3, 2])]
    settled = found.settle(op, values)
    assert settled[1].tolist() == [0, 1, 3, 2], "5 and 9 are not nearly equal"
    assert settled[0].tolist() == values[0].tolist(), "as far apart as rounding leaves them"
    assert (found.flips[0].elements, found.flips[0].total) == (2, 4)


def reduced(op: str, shape: str, result: str) -> ModuleOp:
    name, _, attributes = op.partition(" ")
    return parse_module(
        f"""func.func @main(%x: tensor<{shape}xf32>) -> tensor<{result}i64> {{
          %0 = aten.{name}(%x) {attributes} : (tensor<{shape}xf32>) -> tensor<{result}i64>
          func.return %0 : tensor<{result}i64>
        }}""",
        make_context(),
    )


@pytest.mark.parametrize(
    ("attributes", "result", "ours", "settled"),
    [
        ("{dim = 1}", "2x", [1, 0], [0, 0]),
        ("{dim = 0}", "3x", [1, 0, 1], [0, 0, 1]),
        ("{dim = 1, keepdim = true}", "2x1x", [[1], [0]], [[0], [0]]),
        ("{}", "", 1, 0),
    ],
)
def test_the_largest_of_nearly_equal_elements_is_eagers(attributes: str, result: str, ours: Any, settled: Any) -> None:
    module = reduced(f"argmax {attributes}", "2x3", result)
    x = np.array([[7.0, 7 - 2.0**-21, 1.0], [7 - 2.0**-21, 3.0, 2.0]], F32)
    found, op = RoundingSteps.of(module, [x]), op_of(module)
    assert found is not None
    assert found.settle(op, [np.array(ours)])[0].tolist() == settled


def test_a_place_of_a_much_smaller_element_stays_ours() -> None:
    module = reduced("argmax {dim = 1}", "2x3", "2x")
    found, op = RoundingSteps.of(module, [np.array([[7, 3, 1], [1, 2, 9]], F32)]), op_of(module)
    assert found is not None
    assert found.settle(op, [np.array([1, 2])])[0].tolist() == [1, 2]
    assert found.flips == []
