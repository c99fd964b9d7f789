"""Calls inside a composition: arguments, rewrites by the table and by plugins, element types, and their spelling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, TensorType, f16, f32, f64, i1, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_arguments import NoneAttr, OperandsAttr, to_attribute
from spyre_mlir.dialects.aten_build import AtenBuild, TypeBuild, result_types, spelled
from spyre_mlir.dialects.aten_value import AtenValue, raw_of
from spyre_mlir.dialects.tensors import TypedValue
from spyre_mlir.errors import RegistrationError, UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.table import OpEntry, Table
from spyre_mlir.plugins import registry


class Recording(AtenBuild):
    """Writes down the ops it is asked to make."""

    def __init__(self) -> None:
        self.made: list[tuple[str, dict[str, Any]]] = []

    def get(self, overload: str, *tensors: Any, **attributes: Any) -> object:
        """What a call stands for."""
        return raw_of(self.call(overload, *tensors, **attributes))

    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> Any:
        self.made.append((overload, dict(bound)))
        return TypedValue(result)


class Inside(Recording):
    inside = True


def value(element: Attribute, *shape: int) -> TypedValue:
    return TypedValue(TensorType(element, shape))


def entry(overload: str) -> OpEntry:
    found = ATEN.find(overload)
    assert found is not None
    return found


X, Y, HALF, MASK, WHOLE = value(f32, 4, 8), value(f32, 8), value(f16, 8), value(i1, 8), value(i64, 8)


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[None]:
    with registry.isolated():
        yield


def test_a_call_binds_tensors_in_order_and_defaults() -> None:
    build = Recording()
    assert build.get("add.Tensor", X, Y) == X
    assert build.get("add.Tensor", Y, other=2) == Y
    assert build.made == [
        ("add.Tensor", {"self": X, "other": Y, "alpha": 1}),
        ("add.Tensor", {"self": Y, "other": 2, "alpha": 1}),
    ]


def test_calls_that_the_table_cannot_take() -> None:
    build = Recording()
    with pytest.raises(UnsupportedError, match="nothing is called by a decomposition, and the op table lacks it"):
        build.call("nothing", X)
    with pytest.raises(TypeError, match=r"mul\.Tensor needs self, other$"):
        build.call("mul.Tensor")
    with pytest.raises(TypeError, match=r"mul\.Tensor has no argument beta, gamma$"):
        build.call("mul.Tensor", X, Y, beta=1, gamma=2)
    by_name = r"add\.Tensor got 3 arguments without a name, and takes 2 \(self, other\); by name it takes alpha$"
    with pytest.raises(TypeError, match=by_name):
        build.call("add.Tensor", X, Y, 2)
    with pytest.raises(TypeError, match=r"sum\.dim_IntList got 2 arguments without a name, and takes 1 \(self\)"):
        build.call("sum.dim_IntList", X, [1])
    with pytest.raises(TypeError, match=r"mul\.Tensor got other by place and by name$"):
        build.call("mul.Tensor", X, Y, other=X)
    assert build.made == []


def test_the_table_rewrites_ops() -> None:
    build = Recording()
    assert build.get("add.Tensor", X, Y, alpha=3) == X
    assert build.made == [
        ("mul.Tensor", {"self": Y, "other": 3}),
        ("add.Tensor", {"self": X, "other": Y, "alpha": 1}),
    ]


def test_an_op_that_is_kept_whole_is_not_rewritten() -> None:
    registry.keep_whole("add.Scalar")  # another overload of the same entry
    registry.keep_whole("logical_not")
    build = Recording()
    build.call("add.Tensor", X, Y, alpha=3)
    assert build.made == [("add.Tensor", {"self": X, "other": Y, "alpha": 3})]
    with pytest.raises(UnsupportedError, match="logical_not is kept whole, and the device runs it only in parts"):
        build.call("logical_not", MASK)
    inside = Inside()
    inside.call("add.Tensor", X, Y, alpha=3)
    assert [overload for overload, _ in inside.made] == ["mul.Tensor", "add.Tensor"]


def test_plugins_rewrite_first_and_may_pass_a_call_on() -> None:
    registry.register_decomposition("neg", priority=3)(lambda build, self: None)
    registry.register_decomposition("neg", priority=2, when=lambda build, self: self.shape == (8,))(
        lambda build, self: (self, AtenValue(build, X))
    )
    registry.register_decomposition("neg")(lambda build, self: build.call("mul.Tensor", self, -1.0))
    build = Recording()
    assert [raw_of(one) for one in build.call_all("neg", Y)] == [Y, X]
    assert build.made == []
    build.call("neg", X)
    assert build.made == [("mul.Tensor", {"self": X, "other": -1.0})]


@pytest.mark.parametrize("made", [3, (X, "x")])
def test_a_plugin_gives_values(made: object) -> None:
    registry.register_decomposition("neg")(lambda build, self: made)
    with pytest.raises(RegistrationError, match=r"<lambda> decomposes neg to .*, not to a value of the build or a tup"):
        Recording().call("neg", X)


def test_what_a_value_knows() -> None:
    build = TypeBuild()
    (ssa,) = TestOp(result_types=[TensorType(f16, [3])]).results
    values = [AtenValue(build, one) for one in (X, ssa, 2.0)]
    assert [v.shape for v in values] == [(4, 8), (3,), ()]
    assert [v.element for v in values] == ["f32", "f16", ""]
    assert [v.number for v in values] == [None, None, 2.0]
    assert [AtenValue(build, v).is_bool for v in (MASK, X, WHOLE)] == [True, False, False]
    assert build.rounded(values[0]) is values[0]


def test_a_cast_only_where_the_type_differs() -> None:
    build = Recording()
    x, y, whole = (AtenValue(build, one) for one in (X, Y, WHOLE))
    assert build.cast(x, "f32") is x
    assert build.cast(x, like=y) is x
    assert build.made == []
    assert raw_of(build.cast(y, "f16")) == HALF
    assert raw_of(build.cast(y, like=whole)) == WHOLE
    assert [(overload, bound["dtype"]) for overload, bound in build.made] == [("_to_copy", "f16"), ("_to_copy", "i64")]


def test_one_number_everywhere_and_the_numbers_from_a_start() -> None:
    build = Recording()
    assert raw_of(build.full((2, 3), 1.5, "f16")) == value(f16, 2, 3)
    assert raw_of(build.iota(4, "i64", start=2, step=3)) == value(i64, 4)
    assert raw_of(build.iota(5, "f32")) == value(f32, 5)
    assert build.made == [
        ("full", {"size": (2, 3), "fill_value": 1.5, "dtype": "f16"}),
        ("arange.start_step", {"start": 2, "end": 14, "step": 3, "dtype": "i64"}),
        ("arange.start_step", {"start": 0, "end": 5, "step": 1, "dtype": "f32"}),
    ]


def test_a_call_says_what_it_computes_in() -> None:
    build = Recording()
    with pytest.raises(TypeError, match=r"mul\.Tensor gets f16 and f32: cast one like the other"):
        build.call("mul.Tensor", X, HALF)
    with pytest.raises(TypeError, match=r"mul\.Tensor gets numbers only, which have no element type: .*`full`"):
        build.call("mul.Tensor", 2.0, 3)
    for other in (MASK, WHOLE, 0.5):
        assert build.get("mul.Tensor", X, other) == X
    assert build.get("gt.Tensor", X, HALF) == value(i1, 4, 8)  # a truth value, whatever is compared
    assert build.get("_to_copy", 2.0, dtype="f16") == value(f16)


def test_types_of_results() -> None:
    assert result_types(entry("mul.Tensor"), {"self": X, "other": Y}) == [X.type]
    assert result_types(entry("logical_not"), {"self": X}) == [TensorType(i1, [4, 8])]
    arguments = {"self": X, "k": 2, "dim": -1, "largest": True, "sorted": True}
    assert result_types(entry("topk"), arguments) == [TensorType(f32, [4, 2]), TensorType(i64, [4, 2])]


def test_types_are_those_of_the_table() -> None:
    registry.register_decomposition("neg")(lambda build, self: AtenValue(build, Y))
    registry.keep_whole("logical_not")
    assert raw_of(TypeBuild().call("neg", X)) == X
    assert raw_of(TypeBuild().call("logical_not", X)) == value(i1, 4, 8)


def optional(self: Lanes, first: Lanes | None = None, second: Lanes | None = None, *, mode: str = "none") -> Lanes:
    return self


OPTIONAL = Table("tried").pointwise(aten=["optional"])(optional)
A, B, C = TestOp(result_types=[TensorType(f32, [4])] * 3).results


@pytest.mark.parametrize(
    ("said", "bound", "operands", "attributes"),
    [
        (OPTIONAL, {"self": A, "first": B, "second": C, "mode": "none"}, [A, B, C], {}),
        (OPTIONAL, {"self": A, "first": None, "second": None, "mode": "none"}, [A], {}),
        (OPTIONAL, {"self": A, "first": None, "second": B, "mode": "none"}, [A, B], {"first": NoneAttr()}),
        (
            OPTIONAL,
            {"self": A, "first": 2.0, "second": None, "mode": "up"},
            [A],
            {"first": FloatAttr(2.0, f64), "second": NoneAttr(), "mode": StringAttr("up")},
        ),
        (entry("cat"), {"tensors": [A, B], "dim": 0}, [A, B], {"tensors": OperandsAttr(2)}),
        (
            entry("index.Tensor"),
            {"self": A, "indices": [None, B]},
            [A, B],
            {"indices": ArrayAttr([NoneAttr(), OperandsAttr(1)])},
        ),
        (
            entry("full"),
            {"size": (2,), "fill_value": 1, "dtype": "f16"},
            [],
            {"size": to_attribute((2,)), "fill_value": IntegerAttr(1, i64), "dtype": f16},
        ),
        (
            entry("full"),
            {"size": (), "fill_value": 1, "dtype": None},
            [],
            {"size": to_attribute(()), "fill_value": IntegerAttr(1, i64)},
        ),
    ],
)
def test_spelling_of_arguments(
    said: OpEntry, bound: dict[str, Any], operands: list[Any], attributes: dict[str, Attribute]
) -> None:
    assert spelled(said, bound) == (operands, attributes)
