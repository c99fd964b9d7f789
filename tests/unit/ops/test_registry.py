"""Functions registered for operations: look-ups under any spelling, names that are checked late, and own types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops import mapping, registry
from spyre_mlir.ops.registry import HookKind


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield


def first(*_: Any) -> Any: ...


def second(*_: Any) -> Any: ...


@pytest.mark.parametrize("spelling", ["relu", "aten::relu", "aten.relu", "aten.relu.default"])
def test_any_spelling_finds_what_any_other_registered(spelling: str) -> None:
    registry.register_executor("relu")(first)
    registry.register_op(spelling)(second)
    assert registry.get_execution_fn(spelling) is first
    assert registry.get_conversion_fn("relu") is second
    assert [r.op for r in registry.find(HookKind.EXECUTOR, spelling)] == ["relu"]
    assert registry.get_execution_fn("tanh") is None


def test_the_highest_priority_is_the_function() -> None:
    registry.register_executor("acme.twice")(first)
    registry.register_executor("acme::twice", priority=1)(second)
    assert registry.get_execution_fn("acme.twice.default") is second


@pytest.mark.parametrize(
    "register",
    [
        registry.register_executor,
        registry.register_fallback,
        registry.register_lowering,
        registry.register_op,
        registry.register_decomposition,
        lambda name: lambda function: mapping.map_op(name, "sigmoid")(function),
        lambda name: lambda _: registry.keep_whole(name),
    ],
)
def test_a_name_that_aten_lacks_is_refused_at_every_door(register: Callable[[str], Callable[[Any], Any]]) -> None:
    for name in ("sigmoyd", "aten::xyzzy"):
        with pytest.raises(RegistrationError, match="and ATen has no operator"):
            register(name)(first)
    assert registry.registered_ops() == []
    assert registry.kept_whole() == []


def test_names_from_before_torch_are_checked_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "check_name", lambda op: False)
    registry.register_executor("sigmoyd")(first)
    monkeypatch.undo()
    with pytest.raises(RegistrationError, match="ATen has no operator sigmoyd"):
        registry.check_names()
    registry.check_names()  # said once


def test_operations_that_nothing_has_are_unknown_until_they_are_met() -> None:
    registry.register_executor("nosuch.op")(first)
    registry.register_executor("my_word")(first)
    registry.register_fallback("relu")(first)
    assert registry.unknown_ops() == ["my_word", "nosuch::op"]
    registry.meet("nosuch.op")
    assert registry.unknown_ops() == ["my_word"]
