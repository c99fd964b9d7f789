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
    ("overload", "positional", "named", "message"),
    [
        ("bound::gone", [], {}, "neither the op table nor torch has an operator bound::gone"),
        ("bound::top", [3, 4], {}, "bound::top takes self, k, dim, and got self, k, by"),
        ("bound::top", [3, 4, 5], {}, "bound::top takes self, k, dim, and got self, k, by"),
        ("bound::top", [3, 4], {"k": 9}, "bound::top got k by place and by name"),
        ("bound::top", [], {"k": 9}, "bound::top refuses these arguments: "),
    ],
)
def test_calls_that_do_not_fit_are_refused(
    overload: str, positional: list[object], named: dict[str, object], message: str
) -> None:
    more = {"by": 1} if "by" in message else {}
    with pytest.raises(UnsupportedError) as refused:
        call_by_schema(overload, [tensor(4, 8), *positional[1:]], {**named, **more})
    assert refused.value.message.startswith(message)
