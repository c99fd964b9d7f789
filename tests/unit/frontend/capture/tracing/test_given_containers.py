"""Lists and dictionaries of a caller that a model writes to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from tests.functions import FunctionModel

X = torch.ones(2)


@pytest.mark.parametrize(
    ("function", "given", "place"),
    [
        (lambda given: given.append(given[0] * 2), [X], "list among its inputs, args[0]"),
        (lambda given: given.insert(0, given[0] * 2), [X], "list among its inputs, args[0]"),
        (lambda given: given.reverse(), [X, X], "list among its inputs, args[0]"),
        (lambda given: given.update(b=given["a"] * 2), {"a": X}, "dict among its inputs, args[0]"),
        (lambda given: given.update(a=given["a"] * 2), {"a": X}, "dict among its inputs, args[0]"),
        (lambda given: given["a"][0].append(given["b"] + 1), {"a": ([],), "b": X}, "args[0]['a'][0]"),
    ],
)
def test_what_would_be_lost_is_refused(function: Callable[[Any], None], given: Any, place: str) -> None:
    def model(given: Any) -> torch.Tensor:
        function(given)
        return X * 3

    with pytest.raises(UnsupportedError) as refused:
        spyre_mlir.compile(FunctionModel(model), (given,))
    assert refused.value.message.startswith("the model puts a tensor into a ")
    assert refused.value.message.endswith(place)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda given: given.pop(0) + given[0].add_(1), [X * 2, X * 3]),
        (lambda given: given.pop("a") * given.setdefault("scale", 3), {"a": X, "b": X}),
        (lambda given: {**given, "b": given["a"] * 2}["b"], {"a": X}),
    ],
)
def test_what_is_taken_out_is_the_callers(function: Callable[[Any], Any], given: Any) -> None:
    def copied() -> Any:
        return given.copy() if isinstance(given, dict) else [x.clone() for x in given]

    compiled = spyre_mlir.compile(FunctionModel(function), (copied(),), numerics="exact")
    assert torch.equal(compiled(copied()), function(copied()))
