"""Forms of calls: equal for calls that are taken apart alike, and only for those."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Graph, Node

from spyre_mlir.frontend.capture.call_form import CallForm
from spyre_mlir.frontend.capture.operator_tracing import TensorForm, TensorNumber
from spyre_mlir.frontend.capture.value_memory import Unfollowed

aten = torch.ops.aten
GRAPH = Graph()
A, B, C = (GRAPH.placeholder(name) for name in "abc")
FORMS: dict[Node, TensorForm] = {
    A: TensorForm.of(torch.ones(2, 3), offset=False),
    B: TensorForm.of(torch.zeros(2, 3), offset=False),
    C: TensorForm.of(torch.ones(3, 2).t(), offset=False),
}


def form(*args: Any, **kwargs: Any) -> CallForm:
    return CallForm(aten.add.Tensor, args, kwargs, FORMS)


def test_tensors_are_numbers_and_one_that_is_read_twice_has_one() -> None:
    made = form([A, B], A, alpha=2)
    assert made.args == [[TensorNumber(0), TensorNumber(1)], TensorNumber(0)]
    assert made.kwargs == {"alpha": 2}
    assert made.tensors == [A, B]
    assert made.forms == (FORMS[A], FORMS[B])


def test_other_tensors_of_the_same_form_have_the_same_key() -> None:
    assert form(A, 1).key == form(B, 1).key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((A, 1), (A, 1.0)),
        ((A, 1), (A, True)),
        ((A, 0.0), (A, -0.0)),
        ((A, None), (A,)),
        ((A, torch.float32), (A, torch.float16)),
        ((A, [1, 2]), (A, [[1], 2])),
        ((A, A), (A, B)),
        ((A, 1), (C, 1)),
    ],
)
def test_what_differs_has_another_key(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert form(*one).key != form(*other).key


def test_settings_of_torch_and_keywords_are_in_the_key() -> None:
    before = form(A, 1).key
    assert form(A, 1, alpha=1).key != before
    torch.set_default_dtype(torch.float64)
    try:
        assert form(A, 1).key != before
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("odd", [torch.Generator(), GRAPH.placeholder("number")])
def test_what_is_no_tensor_and_no_plain_value_is_not_followed(odd: object) -> None:
    with pytest.raises(Unfollowed):
        form(A, odd)
