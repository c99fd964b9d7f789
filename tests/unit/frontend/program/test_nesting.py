"""Structures of calls that differ from the example's: the place, and what is there."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest

from spyre_mlir.frontend.program.nesting import difference
from spyre_mlir.frontend.torch_private import tree_flatten

Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    ("example", "call", "message"),
    [
        ((1,), ([1, 2],), "args[0]: expected one value, got a list of 2"),
        (([1, 2],), (1,), "args[0]: expected a list of 2, got one value"),
        (([1, 2],), ((1, 2),), "args[0]: expected a list of 2, got a tuple of 2"),
        ((1, [1, 2]), (1, [1, 2, 3]), "args[1]: expected a list of 2, got a list of 3"),
        ((1, {"a": (1, [2])}), (1, {"a": (1, 2)}), "args[1]['a'][1]: expected a list of 1, got one value"),
        (({"a": 1},), ({},), "args[0]: expected a dict of 'a', got a dict of nothing"),
        ((Pair(1, 2),), (Pair(1, [2]),), "args[0][1]: expected one value, got a list of 1"),
        ((Pair(1, 2),), ((1, 2),), "args[0]: expected a Pair of 2, got a tuple of 2"),
    ],
)
def test_the_first_difference_is_named(example: tuple[Any, ...], call: tuple[Any, ...], message: str) -> None:
    assert difference(tree_flatten((example, {}))[1], tree_flatten((call, {}))[1]) == message


def test_keyword_arguments_go_by_their_names() -> None:
    example, call = ((1,), {"k": 2, "past": [3]}), ((1,), {"k": 2, "past": []})
    message = "argument 'past': expected a list of 1, got a list of 0"
    assert difference(tree_flatten(example)[1], tree_flatten(call)[1]) == message
