"""Values that the forward of a module reads."""

from __future__ import annotations

import enum
from collections.abc import Callable

import pytest
import torch

from spyre_mlir.frontend.calling.model_values import ABSENT, attribute_of, is_same, mark, shown, values_of
from tests.unit.frontend.calling.test_model_glance import Slots, Slotted


class Color(enum.StrEnum):
    """Text of a class of its own."""

    RED = "red"


def test_slots_are_stored_attributes() -> None:
    made = Slotted()
    assert {"scale": 1.0, "slots.eps": 1.0}.items() <= dict(values_of(made, vars(made))).items()
    assert attribute_of(Slots(), "eps", {}) == 1.0
    del made.scale
    assert attribute_of(made, "scale", {}) is ABSENT


@pytest.mark.parametrize("value", [1, -0.0, "a", None, torch.float32, torch.Size([2]), (1, (2.0, "a")), Color.RED])
def test_values_that_cannot_change_are_their_own_mark(value: object) -> None:
    assert mark(value) is value


def test_marks_tell_values_apart() -> None:
    entries = [1, 2]
    before = mark(entries)
    entries[0] = 3
    assert not is_same(before, mark(entries)) and is_same(mark([3, 2]), mark(entries))
    tensor = torch.zeros(2)
    before = mark(tensor)
    tensor.numpy()[0] = 1
    assert not is_same(before, mark(tensor))
    assert not is_same(mark(0.0), mark(-0.0)) and is_same(mark(float("nan")), mark(float("nan")))
    assert mark(ABSENT) is ABSENT
    assert mark(torch.nn.ReLU()) is torch.nn.ReLU and mark([torch.nn.ReLU()]) is list


def test_functions_are_told_apart_by_their_code() -> None:
    def times(number: int) -> Callable[[int], int]:
        return lambda n: n * number

    assert is_same(mark(times(1)), mark(times(2))) and not is_same(mark(times(1)), mark(times))
    assert is_same(mark(torch.relu), mark(torch.relu)) and not is_same(mark(torch.relu), mark(torch.neg))
    assert mark([].append) is type([].append)  # of an object, which a mark would keep alive
    assert [shown(mark(value)) for value in (test_slots_are_stored_attributes, torch.relu, 1, ABSENT)] == [
        *("the function test_slots_are_stored_attributes", "the function relu"),
        *("1", "no plain value"),
    ]
