"""Arguments of a call, brought into the places of the example."""

from __future__ import annotations

from typing import Any

import pytest
from torch.utils._pytree import tree_flatten

from spyre_mlir.frontend.program.call_places import in_places

# A model called with (1, [2, 3], 4, k=5, l=6).
EXAMPLE = tree_flatten(((1, [2, 3], 4), {"k": 5, "l": 6}))[1]
NAMES = ["a", "b_0", "b_1", "c", "k", "l"]
PAIR = [2, 3]


@pytest.mark.parametrize(
    ("args", "kwargs", "wanted"),
    [
        ((1, PAIR, 4), {"l": 6, "k": 5}, (1, PAIR, 4)),
        ((1, PAIR), {"l": 6, "c": 4, "k": 5}, (1, PAIR, 4)),
    ],
)
def test_what_fits_is_as_in_the_example(args: Any, kwargs: Any, wanted: Any) -> None:
    found, named = in_places(args, kwargs, EXAMPLE, NAMES)
    assert found == wanted
    assert list(named.items()) == [("k", 5), ("l", 6)]


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {"a": 1, "b_0": 2, "b_1": 3, "c": 4}),  # the pair has no name of its own
        ((1, PAIR, 4), {"c": 4, "k": 5, "l": 6}),  # one argument, two values
        ((1,), {"c": 4, "k": 5, "l": 6}),  # nothing in the place before
        ((1, PAIR, 4), {"k": 5}),
        ((1, PAIR, 4, 7), {"k": 5, "l": 6}),
    ],
)
def test_what_does_not_fit_is_left_for_the_caller(args: Any, kwargs: Any) -> None:
    wanted = tree_flatten((args, kwargs))[1]
    assert tree_flatten(in_places(args, kwargs, EXAMPLE, NAMES))[1] != EXAMPLE
    if "a" not in kwargs:
        assert tree_flatten(in_places(args, kwargs, EXAMPLE, NAMES))[1] == wanted


def test_leaves_without_a_name_come_by_place_alone() -> None:
    names = ["a", None, None, None, "k", "l"]
    assert in_places((1, PAIR), {"c": 4, "k": 5, "l": 6}, EXAMPLE, names) == ((1, PAIR), {"c": 4, "k": 5, "l": 6})
