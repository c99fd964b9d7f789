"""Operators of values: which overload each calls, with the operands in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import TensorType, f32, i1, i64

from spyre_mlir.dialects.aten_build import TypeBuild
from spyre_mlir.dialects.aten_value import AtenValue
from spyre_mlir.dialects.tensors import TypedValue
from spyre_mlir.ops.value import Value


class Recorder:
    """Notes what is called."""

    def call(self, overload: str, *tensors: Any, **attributes: Any) -> Value:
        self.called = (overload, tensors, attributes)
        return tensors[0] if isinstance(tensors[0], Value) else tensors[1]


def value(*shape: int, element: Any = f32) -> AtenValue:
    return AtenValue(Recorder(), TypedValue(TensorType(element, shape)))


X, Y = value(3, 4), value(3, 4)
CALLS: dict[str, tuple[Callable[[], Value], str, tuple[Any, ...], dict[str, Any]]] = {
    "add": (lambda: X + Y, "add.Tensor", (X, Y), {}),
    "number first": (lambda: 2.0 - X, "sub.Tensor", (2.0, X), {}),
    "number last": (lambda: X - 2.0, "sub.Tensor", (X, 2.0), {}),
    "product": (lambda: 2 * X, "mul.Tensor", (2, X), {}),
    "quotient": (lambda: 1 / X, "div.Tensor", (1, X), {}),
    "matrix product": (lambda: X @ Y, "matmul", (X, Y), {}),
    "negative": (lambda: -X, "neg", (X,), {}),
    "magnitude": (lambda: abs(X), "abs", (X,), {}),
    "comparison": (lambda: X.lt(Y), "lt.Tensor", (X, Y), {}),
    "comparison with a number": (lambda: X.lt(0), "lt.Scalar", (X, 0), {}),
    "choice": (lambda: X.where(Y, 0.0), "where.self", (X, Y, 0.0), {}),
    "sum": (lambda: X.sum(-1, keepdim=True), "sum.dim_IntList", (X,), {"dim": (-1,), "keepdim": True}),
    "sum of all": (lambda: X.sum(), "sum.dim_IntList", (X,), {"dim": None, "keepdim": False}),
    "largest": (lambda: X.amax(), "amax", (X,), {"dim": (), "keepdim": False}),
    "view": (lambda: X.view(-1, 2), "view", (X,), {"size": (-1, 2)}),
}


@pytest.mark.parametrize("name", CALLS)
def test_operators_call_these_overloads(name: str) -> None:
    compute, *wanted = CALLS[name]
    made = compute()
    assert isinstance(made.build, Recorder)
    overload, tensors, attributes = made.build.called
    assert [overload, tuple(map(id, tensors)), attributes] == [wanted[0], tuple(map(id, wanted[1])), wanted[2]]


def test_a_value_knows_its_type() -> None:
    assert (X.shape, X.rank, X.element, X.number) == ((3, 4), 2, "f32", None)
    assert (X.is_float, X.is_whole, X.is_bool) == (True, False, False)
    assert (value(element=i64).is_whole, value(element=i1).is_whole, value(element=i1).is_bool) == (True, False, True)


def test_a_number_may_stand_in_its_place() -> None:
    number = AtenValue(Recorder(), 0.5)
    assert (number.shape, number.element, number.number, number.is_float) == ((), "", 0.5, False)
    assert AtenValue(Recorder(), True).is_bool


def test_two_values_are_equal_if_they_are_one() -> None:
    assert X == X
    assert X != Y


def test_one_result_and_all_results() -> None:
    build = TypeBuild()
    x = AtenValue(build, TypedValue(TensorType(f32, (3, 4))))
    values, places = build.call_all("sort", x)
    assert (values.element, places.element, places.shape) == ("f32", "i64", (3, 4))
    assert [v.shape for v in build.call_all("exp", x)] == [(3, 4)]
    with pytest.raises(TypeError, match="sort has 2 results: `call_all` gives them"):
        build.call("sort", x)
