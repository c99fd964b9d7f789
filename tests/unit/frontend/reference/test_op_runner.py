"""Operators called by their schemas: arguments, dtypes, who runs a call, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import TensorType, UnitAttr

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.host_call import HostCall, OperandSlot
from spyre_mlir.dialects.tensors import ELEMENTS
from spyre_mlir.errors import FaultKind, MachineFault, RegistrationError, UnsupportedError
from spyre_mlir.frontend.reference.op_runner import run_host_step, torch_values
from spyre_mlir.plugins import registry
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

X = np.array([[1.0, -2.0, 4.0], [0.0, 3.0, -1.0]], dtype=np.float32)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield


def called(
    overload: str,
    operands: list[Any],
    results: str,
    *,
    element: str = "f32",
    wide: bool = False,
    shape: tuple[int, ...] = (1,),
    **arguments: object,
) -> list[Any]:
    """The results of a call with operands in the first slots, each of an element type; results are of given ones.

    The shape of results matters for functions of plugins alone: torch's operators are believed.
    """
    arrays = [np.asarray(o) for o in operands]
    call = HostCall(
        overload,
        arguments,
        tuple(TensorType(ELEMENTS[element], a.shape) for a in arrays),
        tuple(TensorType(ELEMENTS[name], shape) for name in results.split()),
        f"{overload} at model.py:3",
    )
    return run_host_step(call, arrays, wide=wide)


def test_arguments_go_by_name() -> None:
    (found,) = called("add.Tensor", [X, X], "f32", self=OperandSlot(0), other=OperandSlot(1), alpha=3)
    assert np.array_equal(found, 4 * X)
    assert found.dtype == np.float32
    (found,) = called("sub.Tensor", [X, 2 * X], "f32", self=OperandSlot(1), other=OperandSlot(0))
    assert np.array_equal(found, X)


def test_lists_and_holes_hold_operands() -> None:
    (found,) = called("cat", [X, X + 1], "f32", tensors=[OperandSlot(1), OperandSlot(0)], dim=1)
    assert np.array_equal(found, np.concatenate([X + 1, X], 1))
    (found,) = called(
        "index.Tensor",
        [np.arange(6).reshape(2, 3), [2, 0]],
        "i64",
        element="i64",
        self=OperandSlot(0),
        indices=[None, OperandSlot(1)],
    )
    assert found.tolist() == [[2, 0], [5, 3]]


def test_names_of_the_table_stand_for_those_of_the_schema() -> None:
    (found,) = called("mm", [X, X.T], "f32", self=OperandSlot(0), other=OperandSlot(1))
    assert np.array_equal(found, X @ X.T)


def test_numbers_in_a_tensors_place_decide_no_dtype() -> None:
    (found,) = called("add.Tensor", [np.array([1, 2])], "i64", element="i64", self=OperandSlot(0), other=2)
    assert found.tolist() == [3, 4]
    (found,) = called("mul.Tensor", [X], "f32", self=OperandSlot(0), other=0.5)
    assert np.array_equal(found, X / 2)


def test_numbers_have_the_digits_of_the_floats_beside_them() -> None:
    for element, dtype in (("f64", np.float64), ("f32", np.float32)):
        (found,) = called(
            "add.Tensor", [np.array([0.2], dtype)], element, element=element, self=OperandSlot(0), other=0.1
        )
        assert found.tolist() == [float(dtype(0.2) + dtype(0.1))]
    (found,) = called("add.Tensor", [np.array([0.2])], "f16", element="f16", wide=True, self=OperandSlot(0), other=0.1)
    assert found.tolist() == [0.2 + 0.1]


def test_types_and_formats_are_spelled_as_text() -> None:
    (found,) = called("_to_copy", [X], "i32", self=OperandSlot(0), dtype="i32")
    assert (found.dtype, found.tolist()) == (np.int32, X.astype(int).tolist())
    (found,) = called("clone", [X], "f32", self=OperandSlot(0), memory_format="contiguous_format")
    assert np.array_equal(found, X)
    (found,) = called(
        "div.Tensor_mode", [X, X * 0 + 2], "f32", self=OperandSlot(0), other=OperandSlot(1), rounding_mode="floor"
    )
    assert found.tolist() == [[0, -1, 2], [0, 1, -1]]
    (found,) = called("sum", [X], "f64", wide=True, self=OperandSlot(0), dtype="f32")
    assert found.dtype == np.float64, "in double precision too"


def test_what_is_not_spelled_and_has_no_default_is_none() -> None:
    image, kernel = X.reshape(1, 1, 2, 3), np.ones((1, 1, 2, 2), np.float32)
    said = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "transposed": False, "output_padding": (0, 0)}
    (found,) = called(
        "convolution", [image, kernel], "f32", input=OperandSlot(0), weight=OperandSlot(1), groups=1, **said
    )
    assert found.tolist() == [[[[2, 4]]]]


def test_strides_are_no_part_of_a_view() -> None:
    (found,) = called("view", [X.T], "f32", self=OperandSlot(0), size=(6,))
    assert np.array_equal(found, X.T.reshape(6))


def test_several_results_without_those_that_are_no_tensors() -> None:
    values, places = called("max.dim", [X], "f32 i64", self=OperandSlot(0), dim=1)
    assert (values.tolist(), places.tolist()) == ([4, 3], [2, 1])
    assert places.dtype == np.int64


def test_results_get_the_dtype_of_their_types() -> None:
    (found,) = called("add.Tensor", [X, X], "f16", self=OperandSlot(0), other=OperandSlot(1))
    assert found.dtype == np.float16
    (found,) = called("gt.Scalar", [X], "i1", self=OperandSlot(0), other=0)
    assert found.dtype == np.bool_


def test_wide_calls_compute_and_give_doubles() -> None:
    third = np.array([1 / 3])
    for wide, dtype in ((True, np.float64), (False, np.float32)):
        (found,) = called("mul.Tensor", [third, third], "f32", wide=wide, self=OperandSlot(0), other=OperandSlot(1))
        assert found.dtype == dtype
    (found,) = called("mul.Tensor", [third, third], "f32", wide=True, self=OperandSlot(0), other=OperandSlot(1))
    assert found[0] == (1 / 3) * (1 / 3)
    (found,) = called("argmax", [X], "i64", wide=True, self=OperandSlot(0), dim=1)
    assert (found.dtype, found.tolist()) == (np.int64, [2, 1])


def test_bits_are_those_of_the_type_itself() -> None:
    (found,) = called("view.dtype", [np.array([1.0])], "i32", wide=True, self=OperandSlot(0), dtype="i32")
    assert found.tolist() == [0x3F800000]


def test_what_has_no_form_for_a_dtype_computes_in_another() -> None:
    square = X[:2, :2] + np.array([[10, 0], [0, 10]])
    (found,) = called("linalg_inv_ex", [square], "f16", element="f16", A=OperandSlot(0))[:1]
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, np.linalg.inv(square), atol=1e-3)


def test_a_refusal_is_a_fault_of_the_program() -> None:
    with pytest.raises(MachineFault) as refused:
        called("linalg_cholesky", [np.array([[0.0, 1.0], [1.0, 0.0]])], "f32", self=OperandSlot(0))
    assert refused.value.kind is FaultKind.HOST_STEP
    assert refused.value.message.startswith("host-step: torch refuses linalg_cholesky: ")
    assert "\n" not in refused.value.message
    assert refused.value.where == "linalg_cholesky at model.py:3"


@pytest.mark.parametrize(
    ("overload", "name"),
    [("nonesuch", "aten::nonesuch"), ("add.Nonesuch", "aten::add.Nonesuch"), ("acme::x", "acme::x")],
)
def test_an_operator_that_nobody_has_is_named(overload: str, name: str) -> None:
    with pytest.raises(UnsupportedError) as refused:
        called(overload, [X], "f32", self=OperandSlot(0))
    assert refused.value.message == f"the host has no operator {name}"
    assert refused.value.where == f"{overload} at model.py:3"
    assert "import the module that registers it" in str(refused.value.hint)


def test_no_result_needs_gradients_and_equals_keep_their_order() -> None:
    equal = np.zeros((1, 65), np.float32)
    (found, places) = called("sort", [equal], "f32 i64", self=OperandSlot(0), dim=1, descending=True)
    assert places.tolist() == [list(range(65))]
    assert not found.any()


def test_an_executor_of_a_plugin_goes_first() -> None:
    told: list[Any] = []

    def run(tensors: list[torch.Tensor], arguments: dict[str, Any]) -> list[torch.Tensor]:
        told.append(arguments)
        return [tensors[0] * 100]

    registry.register_executor("add.Tensor")(run)
    registry.register_fallback("add.Tensor")(lambda *_, **__: torch.zeros(2, 3))
    (found,) = called(
        "add.Tensor",
        [X, X],
        "f32",
        self=OperandSlot(0),
        other=OperandSlot(1),
        alpha=3,
        more=[OperandSlot(0)],
        less=[1],
        shape=X.shape,
    )
    assert np.array_equal(found, 100 * X)
    assert told == [{"alpha": 3, "less": [1]}], "without what holds tensors"


def test_an_executor_gets_what_the_schema_has_as_defaults() -> None:
    told: list[Any] = []

    def run(tensors: list[torch.Tensor], arguments: dict[str, Any]) -> list[torch.Tensor]:
        told.append(arguments)
        return [tensors[0], tensors[0]]

    registry.register_executor("topk")(run)
    registry.register_executor("my_word")(run)
    called("topk", [X], "f32 f32", self=OperandSlot(0), k=2, largest=False, shape=X.shape)
    called("my_word", [X], "f32 f32", inputs=[OperandSlot(0)], k=2, shape=X.shape)
    assert told == [{"k": 2, "dim": -1, "largest": False, "sorted": True}, {"k": 2}]


@pytest.mark.parametrize(("out", "kind"), [(torch.ones(1), "Tensor"), ([3], "list"), (None, "NoneType")])
def test_an_executor_gives_a_list_of_tensors(out: object, kind: str) -> None:
    def run(*_: object) -> object:
        return out

    registry.register_executor("add.Tensor")(run)
    with pytest.raises(RegistrationError) as refused:
        called("add.Tensor", [X, X], "f32", self=OperandSlot(0), other=OperandSlot(1))
    assert refused.value.message.startswith("the executor ")
    assert refused.value.message.endswith(f" of add.Tensor gives {kind}, not a list of tensors")
    assert refused.value.where == "add.Tensor at model.py:3"


def test_a_fallback_of_a_plugin_is_called_as_the_operator() -> None:
    told: list[Any] = []

    def run(*args: Any, **kwargs: Any) -> torch.Tensor:
        told.append((len(args), sorted(kwargs)))
        return args[0] - args[1]

    registry.register_fallback("add.Tensor", when=lambda build, self, other, alpha=1: alpha == 3)(run)
    (found,) = called("add.Tensor", [X, X], "f32", self=OperandSlot(0), other=OperandSlot(1), alpha=3, shape=X.shape)
    assert not found.any()
    (found,) = called("add.Tensor", [X, X], "f32", self=OperandSlot(0), other=OperandSlot(1), alpha=2)
    assert np.array_equal(found, 3 * X), "torch's, as the fallback does not want it"
    assert told == [(2, ["alpha"])]


def test_a_fallback_of_an_operator_that_torch_lacks_gets_names() -> None:
    registry.register_fallback("acme::scale")(lambda *, x, by: (x * by, x))
    found = called("acme::scale", [X], "f32 f32", x=OperandSlot(0), by=3, shape=X.shape)
    assert [np.array_equal(f, w) for f, w in zip(found, (3 * X, X), strict=True)] == [True, True]


def test_a_fallback_that_fails_is_named_with_the_place_of_the_call() -> None:
    registry.register_fallback("acme::scale")(lambda **_: 1 / 0)
    with pytest.raises(RegistrationError) as refused:
        called("acme::scale", [X], "f32", input=OperandSlot(0))
    assert refused.value.message.endswith(
        "<lambda>, registered for acme::scale, failed: ZeroDivisionError: division by zero"
    )
    assert (refused.value.where or "").endswith(", called for acme::scale at model.py:3")
    assert (refused.value.where or "").startswith(f"{__file__}:")


@pytest.mark.parametrize("wide", [False, True])
def test_every_op_of_a_function_has_its_values(wide: bool) -> None:
    module = parse_module(
        """func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
          %0 = aten.exp(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>
          %1, %2 = aten.max.dim(%0) {dim = 1} : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xi64>)
          func.return %1 : tensor<2xf32>
        }""",
        make_context(),
    )
    ops = [op for op in module.walk() if isinstance(op, AtenOp)]
    if wide:
        for op in ops:
            op.wide = UnitAttr()
    found = torch_values(module, [X])
    first, second = ops
    assert list(found) == ops
    ((exp,), (largest, places)) = found[first], found[second]
    exact = np.exp(X.astype(np.float64))
    np.testing.assert_allclose(exp, exact, rtol=1e-6)
    assert exp.dtype == largest.dtype == (np.float64 if wide else np.float32)
    assert places.tolist() == [2, 1]


def _unit() -> Any:
    from xdsl.dialects.builtin import UnitAttr

    return UnitAttr()
