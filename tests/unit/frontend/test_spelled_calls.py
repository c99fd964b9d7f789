"""Operators and their arguments as text."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.spelled_calls import RealAt, meant, spelled, spelled_operator


def test_text_means_the_arguments_that_it_was_made_of() -> None:
    given = {"xs": [RealAt(1), RealAt(0)], "dtype": torch.float16, "limit": float("inf"), "name": "a", "none": None}
    first, second = torch.ones(1), torch.zeros(2)
    text = spelled(given)
    assert text is not None
    assert meant(text, [first, second]) == {**given, "xs": [second, first]}


@pytest.mark.parametrize("value", [torch.device("cpu"), slice(1), [object()]])
def test_what_has_no_literal_is_no_argument(value: object) -> None:
    assert spelled({"x": value}) is None


@pytest.mark.parametrize("name", ["nobody.here.default", "aten.add.nothing", "aten"])
def test_an_operator_that_nothing_has_registered_is_named(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"the host has no operator {name}"):
        spelled_operator(name)
