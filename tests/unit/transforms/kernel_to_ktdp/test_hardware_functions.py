"""Hardware functions in KTIR, run and compared with numpy in double precision."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from spyre_mlir.ops import ATEN
from spyre_mlir.ops.hardware_functions import FUNCTIONS
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Code, shape_of
from spyre_mlir.transforms.kernel_to_ktdp.hardware_functions import fold, folds, has_form, known_functions
from tests.unit.machine.modules import device
from tests.unit.transforms.kernel_to_ktdp.kernels import Array, kernels, lines, written

SINGLE = device((1, 32), 1, (1, 0), "IEEE_FP32")
HALF = device((1, 64), 1, (1, 0))
NUMBERS = np.array([[-30.0, -3.5, -2.0, -1.0, -0.25, 0.0, 0.25, 1.0, 2.0, 3.5, 30.0, 0.5, -0.5, 1.5, -1.5, 7.0] * 2])
OTHERS = np.roll(NUMBERS, 5)
OTHERS[OTHERS == 0] = NUMBERS[OTHERS == 0]
OTHERS[0, :3] = NUMBERS[0, :3]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Callable[[Any], Any]] = {
    "identity": lambda x: x,
    "neg": lambda x: -x,
    "abs": np.abs,
    "exp": np.exp,
    "tanh": np.tanh,
    "floor": np.floor,
    "relufwd": lambda x: np.maximum(x, 0),
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "gelufwd": lambda x: x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2))),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
}
POSITIVE: dict[str, Callable[[Any], Any]] = {
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "realdiv": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": np.equal,
    "notequal": np.not_equal,
    "greaterequal": np.greater_equal,
    "lesserequal": np.less_equal,
    "greaterthan": np.greater,
    "lesserthan": np.less,
}


def run(function: str, *inputs: Array, kind: str = SINGLE, more: str = "") -> Array:
    width = inputs[0].shape[1]
    names = "abc"[: len(inputs)]
    uses = ", ".join(f"%{n}[0, n] : {kind}" for n in names)
    body = f'spyre.kernel.compute "{function}" [n = {width}] ins({uses}) outs(%out[0, n] : {kind}) {more}'
    host = dict.fromkeys([*names, "out"], "f32" if kind is SINGLE else "f16")
    (found,) = written(kernels(dict.fromkeys(names, kind), body, kind, host)).run(list(inputs))
    return found


def close(got: Array, wanted: Array) -> None:
    np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=1e-6)


def test_all_functions_are_compared() -> None:
    compared = {*UNARY, *POSITIVE, *BINARY, "where3", "softplus", "batchnormfwd"}
    of_ops = {entry.opfunc for entry in ATEN if entry.opfunc is not None}
    assert {name for name in of_ops if has_form(name)} == compared
    assert {name for name in FUNCTIONS if folds(name)} == {"sum", "max", "min"}
    assert {*compared, "sum", "max", "min"} <= set(known_functions())


def test_what_mlir_cannot_say_has_no_ktir() -> None:
    assert not any(has_form(name) for name in ("clip", "fp32toint32", "addi32toi32", "batchmatmul", "sum", "nobody"))
    assert not any(folds(name) for name in ("absmax", "mean", "prod", "add", "nobody"))


def test_a_number_is_scaled_and_shifted() -> None:
    scale, shift = OTHERS / 4, np.roll(NUMBERS, 11)
    close(run("batchnormfwd", NUMBERS, scale, shift), NUMBERS * scale + shift)


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_any_number(name: str) -> None:
    close(run(name, NUMBERS), UNARY[name](NUMBERS))


@pytest.mark.parametrize("name", POSITIVE)
def test_functions_of_positive_numbers(name: str) -> None:
    positive = np.abs(NUMBERS) + 0.125
    close(run(name, positive), POSITIVE[name](positive))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(name: str) -> None:
    close(run(name, NUMBERS, OTHERS), BINARY[name](NUMBERS, OTHERS).astype(np.float64))


def test_no_number_equals_itself_and_all_others_differ() -> None:
    nothing = np.full((1, 32), np.nan)
    assert not run("equal", nothing, nothing).any()
    assert run("notequal", nothing, nothing).all()


def test_a_choice_takes_the_second_where_the_first_is_not_0() -> None:
    close(run("where3", NUMBERS.round(), OTHERS, OTHERS * 3), np.where(NUMBERS.round() != 0, OTHERS, OTHERS * 3))


@pytest.mark.parametrize(("beta", "threshold"), [(1.0, 20.0), (2.0, 3.0), (0.5, -1.0)])
def test_softplus_is_its_argument_above_the_threshold(beta: float, threshold: float) -> None:
    numbers = f"op_info {{softplusBeta = {beta} : f64, softplusThresh = {threshold} : f64}}"
    wanted = np.where(beta * NUMBERS > threshold, NUMBERS, np.log1p(np.exp(beta * NUMBERS)) / beta)
    close(run("softplus", NUMBERS, more=numbers), wanted)


def test_nothing_overflows_on_the_way() -> None:
    large = np.full((1, 32), 200.0)
    close(run("mish", large), large)
    close(run("mish", -large), 0 * large)
    numbers = "op_info {softplusBeta = 1.0 : f64, softplusThresh = 500.0 : f64}"
    close(run("softplus", large, more=numbers), large)


def test_several_ops_are_rounded_once() -> None:
    """Half precision at the end of the way, single precision on it."""
    x = np.tile(NUMBERS, (1, 2)).astype(np.float16)
    for name in ("gelufwd", "silu", "mish", "sigmoid"):
        wanted = UNARY[name](x.astype(np.float64))
        found = run(name, x, kind=HALF)
        exact = np.asarray(wanted, np.float16)
        assert (found == exact).mean() > 0.9, name
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-6)


def test_a_function_of_one_counterpart_stays_in_its_type() -> None:
    body = f'spyre.kernel.compute "exp" [n = 64] ins(%a[0, n] : {HALF}) outs(%out[0, n] : {HALF})'
    assert lines(written(kernels({"a": HALF}, body, HALF)), "extf", "truncf", "math.exp") == [0, 0, 1]


@pytest.mark.parametrize(
    ("name", "combine", "neutral"),
    [("sum", arith.AddfOp, 0.0), ("max", arith.MaximumfOp, -np.inf), ("min", arith.MinimumfOp, np.inf)],
)
def test_a_fold_drops_dimensions_and_combines_both_sides(name: str, combine: type[Operation], neutral: float) -> None:
    code = Code({})
    made = fold(code, name, Code({}).empty(f32, (2, 3, 4)), [0, 2])
    *_, filled, op = code.ops
    assert isinstance(op, linalg.ReduceOp) and isinstance(filled, linalg.FillOp)
    assert shape_of(made) == shape_of(filled.results[0]) == (3,)
    assert list(op.dimensions.get_values()) == [0, 2]
    (number,) = (o for o in code.heads if isinstance(o, arith.ConstantOp))
    assert isinstance(number.value, FloatAttr) and number.value.value.data == neutral
    both, end = op.regions[0].block.ops
    assert isinstance(both, combine) and tuple(both.operands) == tuple(op.regions[0].block.args)
    assert tuple(end.operands) == tuple(both.results)
    op.verify()
