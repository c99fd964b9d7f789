"""Passes on torch's graph: where they can be registered, and in which order they are found."""

from __future__ import annotations

from typing import Any

import pytest

from spyre_mlir.errors import RegistrationError
from spyre_mlir.plugins import graph_passes, registry
from spyre_mlir.plugins.graph_passes import GraphHook


def first(graph: Any) -> None: ...


def second(graph: Any) -> None: ...


def test_the_highest_priority_of_a_point_comes_first() -> None:
    registry.register_graph_pass("decomposed")(second)
    registry.register_graph_pass(GraphHook.DECOMPOSED, priority=1)(first)
    assert [r.function for r in registry.graph_passes_at("decomposed")] == [first, second]
    assert registry.graph_passes_at(GraphHook.EXPORTED) == []


def test_what_is_registered_is_part_of_what_a_cache_compares() -> None:
    assert registry.registrations() == []
    registry.register_graph_pass("exported")(first)
    (found,) = registry.registrations()
    assert found == ("exported", graph_passes.graph_passes_at("exported"))


def test_passes_of_a_block_are_gone_behind_it() -> None:
    with registry.isolated():
        registry.register_graph_pass("exported")(first)
    assert registry.graph_passes_at("exported") == []


def test_what_is_no_point_or_no_function_is_refused() -> None:
    with pytest.raises(RegistrationError, match="there is no point 'aten' for passes on a graph") as refused:
        registry.register_graph_pass("aten")
    assert refused.value.hint == "the points are exported, decomposed"
    with pytest.raises(RegistrationError, match="a pass on a graph is a function, got 42"):
        registry.register_graph_pass("exported")(42)  # pyright: ignore[reportArgumentType]
