"""Host steps: their text, their operator and its arguments."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerAttr, TensorType, f32, i64
from xdsl.dialects.test import TestOp
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.aten_arguments import OperandsAttr
from spyre_mlir.dialects.spyre.host import HostOp, KernelHostOp, LoopHostOp
from tests.unit.dialects.texts import function, lines_of, only, read

ARGUMENTS = "%x: tensor<4xf32>, %y: tensor<2xi64>"


@pytest.mark.parametrize(("level", "kind"), [("loop", LoopHostOp), ("kernel", KernelHostOp)])
@pytest.mark.parametrize(
    "said",
    [
        '"aten.neg" because "it cannot" (%x) {self = #aten.operands<1>} : (tensor<4xf32>) -> tensor<4xf32>',
        '"aten.neg"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
        '"acme::pick"(%x, %y) {k = 2 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>',
    ],
)
def test_text(level: str, kind: type[HostOp], said: str) -> None:
    line = f"%r = spyre.{level}.host {said}"
    module = read(function(ARGUMENTS, line))
    assert line in lines_of(module)
    op = only(module, kind)
    assert (op.reason is not None and op.reason.data) == ("it cannot" if "because" in said else False)


def test_several_results() -> None:
    line = '%a, %b = spyre.loop.host "aten.topk"(%x) {k = 2 : i64} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)'
    assert line in lines_of(read(function(ARGUMENTS, line)))


@pytest.mark.parametrize("kind", [LoopHostOp, KernelHostOp])
def test_a_step_is_made_without_text(kind: type[HostOp]) -> None:
    x, y = TestOp(result_types=[TensorType(f32, [4])] * 2).results
    attributes = {"tensors": OperandsAttr(2), "dim": IntegerAttr(1, i64)}
    op = kind("aten.cat.out", "a reason", [x, y], attributes, [TensorType(f32, [8])])
    op.verify()
    assert op.overload == "cat.out"
    assert (op.callee.data, op.reason and op.reason.data) == ("aten.cat.out", "a reason")
    assert op.arguments() == {"tensors": [x, y], "dim": 1}
    assert [result.type for result in op.results] == [TensorType(f32, [8])]
    other = kind("acme::cat", None, [], {}, [])
    assert (other.overload, other.reason, other.arguments()) == ("acme::cat", None, {})


def test_types_are_those_of_a_function() -> None:
    with pytest.raises(ParseError, match=r"Expected '\('"):
        read(function(ARGUMENTS, 'spyre.loop.host "aten.neg"(%x) : tensor<4xf32>'))
