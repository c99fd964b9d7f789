"""Host steps and aten ops as calls: arguments with places for operands, types, and the place in the model."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, TensorType, UnitAttr, bf16, f16, f32, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten import make_op
from spyre_mlir.dialects.aten_arguments import NoneAttr, OperandsAttr
from spyre_mlir.dialects.host_call import HostCall, OperandSlot
from spyre_mlir.dialects.places import Source, location_of
from spyre_mlir.dialects.spyre.host import LoopHostOp

X, Y = TensorType(f32, [4]), TensorType(f32, [2])


def test_a_host_step_as_a_call() -> None:
    a, b, c = TestOp(result_types=[X, Y, X]).results
    attributes: dict[str, Attribute] = {
        "tensors": OperandsAttr(2),
        "indices": ArrayAttr([NoneAttr(), OperandsAttr(1)]),
        "k": IntegerAttr(3, i64),
    }
    op = LoopHostOp("aten.some", None, [b, a, c], attributes, [X, TensorType(i64, [4])])
    op.location = location_of(Source("model.py", 7))
    call = HostCall.of(op)
    assert call == HostCall(
        "some",
        {"tensors": [OperandSlot(0), OperandSlot(1)], "indices": [None, OperandSlot(2)], "k": 3},
        (Y, X, X),
        (X, TensorType(i64, [4])),
        "some at model.py:7",
    )
    assert call.is_wide is False


def test_calls_do_not_change() -> None:
    for fixed, field in ((OperandSlot(0), "number"), (HostCall("some", {}, (), (), "some"), "overload")):
        with pytest.raises(FrozenInstanceError):
            setattr(fixed, field, 1)


def test_an_aten_op_without_a_place_is_named_alone() -> None:
    (x,) = TestOp(result_types=[X]).results
    call = HostCall.of(make_op("neg", [x], {}, [X]))
    assert (call.overload, call.where, call.arguments) == ("neg", "neg", {"self": OperandSlot(0)})


@pytest.mark.parametrize(
    ("given", "result", "marked", "is_wide"),
    [
        (f32, f32, False, False),
        (f32, f32, True, True),
        (f16, f32, False, True),
        (f32, bf16, False, True),
        (i64, f32, False, False),
    ],
)
def test_half_precision_and_a_mark_keep_digits(
    given: Attribute, result: Attribute, marked: bool, is_wide: bool
) -> None:
    (x,) = TestOp(result_types=[TensorType(given, [4])]).results
    op = LoopHostOp("aten.some", None, [x], {"self": OperandsAttr(1)}, [TensorType(result, [4])])
    op.wide = UnitAttr() if marked else None
    assert HostCall.of(op).is_wide is is_wide
