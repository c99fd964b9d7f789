"""A quick look at a model sees every change that a comparison says."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest
import torch

from spyre_mlir.frontend.calling import model_state
from spyre_mlir.frontend.calling.model_glance import ModelGlance
from spyre_mlir.frontend.calling.model_state import ModelState
from tests.unit.frontend.calling.test_model_state import CHANGES, model

FACTOR = 2.0


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


class Slots:
    """Numbers without a dictionary."""

    __slots__ = ("eps", "unread")

    def __init__(self) -> None:
        self.eps, self.unread = 1.0, 1


class Slotted(torch.nn.Module):
    """Reads a slot of its own, slots of an object, an object that no value is, a tuple, and a global."""

    __slots__ = ("scale",)
    kept = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.slots, self.numbers = 1.0, Slots(), (1, (2.0, "a"))
        self.function: Any = torch.relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x * self.scale + self.slots.eps) * self.numbers[0] * self.kept * FACTOR


SLOTTED: dict[str, Callable[[Any], object]] = {
    "'0.scale' is 2.0, was 1.0": lambda made: setattr(made[0], "scale", 2.0),
    "'0.scale' is no plain value, was 1.0": lambda made: delattr(made[0], "scale"),
    "'0.slots.eps' is 2.0, was 1.0": lambda made: setattr(made[0].slots, "eps", 2.0),
    "'0.numbers' is (1, (2.0, 'b')), was (1, (2.0, 'a'))": lambda made: setattr(made[0], "numbers", (1, (2.0, "b"))),
    "'0.function' is 3, was the function relu": lambda made: setattr(made[0], "function", 3),
    "'0.function' is the function neg, was the function relu": lambda made: setattr(made[0], "function", torch.neg),
    "'0.function' is the function doubled, was": lambda made: setattr(made[0], "function", doubled),
    "'0.slots.eps' is no plain value, was 1.0": lambda made: setattr(made[0], "slots", 3),
}


@pytest.mark.parametrize("said", [*CHANGES, *SLOTTED])
def test_every_change_is_seen_and_nothing_else(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, change = (model(), CHANGES[said]) if said in CHANGES else (slotted(), SLOTTED[said])
    state = ModelState(made)
    with monkeypatch.context() as patch:
        patch.delattr(model_state, "_named")  # nothing is compared where nothing changed
        assert state.changes() == ()
    change(made)
    told = state.changes()
    assert any(said in text for text in told)
    with monkeypatch.context() as patch:
        patch.delattr(model_state, "_named")
        assert state.changes() == told
    made[0].extra = torch.nn.Tanh()
    assert {*told, "module '0.extra' is new"} <= {*state.changes()}


def slotted() -> torch.nn.Sequential:
    return torch.nn.Sequential(Slotted())


def test_values_around_a_class_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [Slotted(), Slotted()]
    made[1].slots = made[0].slots
    glance = ModelGlance(made)
    assert glance.lasts()
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert not glance.lasts()
    monkeypatch.undo()
    monkeypatch.setattr(Slotted, "kept", 3.0)
    assert not glance.lasts()
    monkeypatch.undo()
    monkeypatch.setattr(Slotted, "forward", lambda _, x: x)
    assert not glance.lasts()
    monkeypatch.undo()
    assert glance.lasts()
    made[0].slots.unread = 2
    made[1].scale = float("1.0")  # another object, the same number
    assert glance.lasts()


def test_a_glance_keeps_no_module_alive() -> None:
    made = model()
    glance, gone = ModelGlance(made.modules()), ref(made[1])
    del made
    gc.collect()
    assert gone() is None and not glance.lasts()
