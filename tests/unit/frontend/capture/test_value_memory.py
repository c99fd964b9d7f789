"""Memory of values: views are views of wholes, and a write is followed where nothing else shows it."""

from __future__ import annotations

import pytest
from torch.fx import Graph, Node

from spyre_mlir.frontend.capture.value_memory import Unfollowed, ValueMemory


def nodes(count: int) -> list[Node]:
    graph = Graph()
    return [graph.placeholder(f"n{number}") for number in range(count)]


def test_a_view_of_a_view_is_one_of_the_whole() -> None:
    whole, view, inner = nodes(3)
    memory = ValueMemory(lambda _: True)
    memory.view(view, whole)
    memory.view(inner, view)
    memory.view(whole, whole)
    assert [memory.whole(value) for value in (whole, view, inner)] == [whole, whole, whole]


def test_all_who_have_a_written_value_are_told() -> None:
    value, first, second = nodes(3)
    memory = ValueMemory(lambda _: True)
    memory.hold(first, value)
    memory.hold(second, value)
    assert list(memory.written(value)) == [first, second]


def test_a_write_through_a_view_is_not_followed() -> None:
    whole, view = nodes(2)
    memory = ValueMemory(lambda _: False)
    memory.view(view, whole)
    with pytest.raises(Unfollowed, match="through"):
        memory.written(view)


def test_a_write_behind_a_view_is_followed_if_nobody_reads_the_view_again() -> None:
    whole, view, inner, holder, last = nodes(5)
    read = {holder}
    memory = ValueMemory(lambda one: one in read)
    memory.view(view, whole)
    memory.view(inner, view)
    memory.hold(holder, inner)
    memory.hold(last, whole)
    with pytest.raises(Unfollowed, match="behind"):
        memory.written(whole)
    read.clear()
    assert list(memory.written(whole)) == [last]
