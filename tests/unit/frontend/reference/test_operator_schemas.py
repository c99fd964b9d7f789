"""Calls of operators that the op table lacks: bound by torch's schemas, typed by their fake implementations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from xdsl.dialects.builtin import TensorType, f16, f32, i64
from xdsl.ir import Block, SSAValue

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.reference.operator_schemas import call_by_schema


@pytest.fixture(scope="module", autouse=True)
def operators() -> Iterator[None]:
    library = torch.library.Library("bound", "DEF")
    for signature, meaning in (
        ("top(Tensor self, int k=1, *, int dim=-1) -> (Tensor, Tensor)", lambda x, k=1, dim=-1: tuple(x.topk(k, dim))),
        ("joined(Tensor[] tensors, ScalarType dtype) -> Tensor", lambda ts, dtype: torch.cat(ts).to(dtype)),
    ):
        library.impl(library.define(signature), meaning, "CompositeExplicitAutograd")
    yield
    library._destroy()


def tensor(*shape: int) -> SSAValue:
    return Block(arg_types=[TensorType(f32, shape)]).args[0]


def test_arguments_get_their_names_and_results_their_types() -> None:
    x = tensor(4, 8)
    call = call_by_schema("bound::top", [x, 3], {"dim": 0})
    assert call.arguments == {"self": x, "k": 3, "dim": 0}
    assert call.results == [TensorType(f32, [3, 8]), TensorType(i64, [3, 8])]


def test_lists_of_tensors_and_element_types() -> None:
    x, y = tensor(2, 8), tensor(3, 8)
    call = call_by_schema("bound::joined", [[x, y]], {"dtype": "f16"})
    assert call.arguments == {"tensors": [x, y], "dtype": "f16"}
    assert call.results == [TensorType(f16, [5, 8])]


@pytest.mark.parametrize(
    ("overload", "positional", "named", "kind", "message"),
    [
        ("bound::gone", [], {}, LookupError, "neither the op table nor torch has an operator bound::gone; import the"),
        ("mull.Tensor", [], {}, LookupError, "neither .* has an operator mull.Tensor; did you mean mul.Tensor?"),
        ("bound::top", [4], {"by": 1}, TypeError, "bound::top takes self, k, dim, and got self, k, by"),
        ("bound::top", [4, 5], {}, TypeError, r"bound::top got 3 arguments without a name, and takes 2 \(self, k\)"),
        ("bound::top", [4], {"k": 9}, TypeError, "bound::top got k by place and by name"),
        ("bound::top", [], {"k": 9}, UnsupportedError, "bound::top refuses these arguments: "),
    ],
)
def test_calls_that_do_not_fit_are_refused(
    overload: str, positional: list[object], named: dict[str, object], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        call_by_schema(overload, [tensor(4, 8), *positional], named)
