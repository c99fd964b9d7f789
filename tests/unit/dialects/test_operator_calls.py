"""Calls of operators that the op table lacks, as ops: by the schemas that somebody provides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from xdsl.dialects.builtin import TensorType, f32, i64
from xdsl.ir import Block

from spyre_mlir.dialects import operator_calls
from spyre_mlir.dialects.operator_calls import OperatorCall, op_by_schema, results_of
from spyre_mlir.errors import UnsupportedError

X, Y = Block(arg_types=[TensorType(f32, [2, 3]), TensorType(f32, [3])]).args


def schemas(overload: str, positional: Sequence[object], named: Mapping[str, object]) -> OperatorCall:
    assert overload == "acme::weigh"
    return OperatorCall(
        dict(zip(("a", "b"), positional, strict=True)) | named, [TensorType(f32, [2]), TensorType(i64, [2])]
    )


def test_the_op_has_the_arguments_and_results_of_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_calls, "_PROVIDED", [])
    operator_calls.provide(schemas)
    op = op_by_schema("acme::weigh", [X, Y], {"by": 2.0})
    assert (op.name, op.overload, list(op.operands)) == ("aten.call", "acme::weigh", [X, Y])
    assert op.arguments() == {"a": X, "b": Y, "by": 2.0}
    assert [r.type for r in op.results] == [TensorType(f32, [2]), TensorType(i64, [2])]
    build: Any = object()
    first, second = results_of(build, op)  # pyright: ignore[reportGeneralTypeIssues]
    assert (first.shape, first.element, second.element) == ((2,), "f32", "i64")


def test_without_torch_nobody_knows_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_calls, "_PROVIDED", [])
    with pytest.raises(UnsupportedError, match="the op table lacks acme::weigh, and torch is not loaded"):
        op_by_schema("acme::weigh", [X, Y], {})
