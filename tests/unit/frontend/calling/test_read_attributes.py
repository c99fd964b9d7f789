"""Attributes that the forward of a class reads, found in its code."""

from __future__ import annotations

from functools import wraps
from typing import Any

import pytest
import torch

from spyre_mlir.frontend.calling.read_attributes import read_attributes, read_names


def wrapped(function: Any) -> Any:
    @wraps(function)
    def call(*args: Any) -> Any:
        return function(*args)

    return call


class Base(torch.nn.Module):
    inherited: float
    inner: float

    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.inherited


class Model(Base):
    first: float
    seen: int
    nested: float
    never: float

    @wrapped
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = self.seen + 1
        return self.helper(x) + sum(self.nested for _ in range(2)) + self.property_of_it

    @property
    def property_of_it(self) -> float:
        return self.first

    def not_called(self) -> float:
        return self.never


def test_functions_behind_the_forward_count_and_what_they_write_does_not() -> None:
    found = read_attributes(Model)
    assert {"inherited", "nested", "first"} <= set(found)
    assert not {"seen", "never", "inner"} & set(found)
    assert "training" in read_attributes(torch.nn.Dropout)
    assert "training" not in read_attributes(torch.nn.Linear)


LIMIT, CALLS = 3, 0
COUNTS, SEEN = {"calls": 0}, list[int]()


def test_of_containers_and_objects_what_calls_change_is_left_out() -> None:
    added, inside = 1, list[int]()

    class Held(torch.nn.Module):
        config: Any
        names: list[str]
        kept: list[int]
        found: dict[str, int]
        sums: dict[str, int]
        merged: list[int]
        closed: bool

        def unmerge(self) -> None:
            self.merged.pop()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            global CALLS  # noqa: PLW0603, what is tested
            CALLS += 1
            self.kept.append(1)
            self.found["a"] = LIMIT
            self.sums["a"] += 1
            COUNTS["calls"] += 1
            SEEN.append(1)
            inside.append(1)
            self.config.steps = 2
            if self.closed:
                self.unmerge()
            return x * self.config.eps if self.names or self.merged else x + added + self.config.steps

    found = set(read_attributes(Held))
    assert {"names", "merged", "config.eps"} <= found
    assert not {"kept", "found", "sums", "config.steps"} & found
    assert {"added": 1, "LIMIT": 3}.items() <= dict(read_names(Held)).items()
    assert not {"CALLS", "COUNTS", "SEEN", "inside"} & dict(read_names(Held)).keys()


def test_functions_behind_the_forward_are_those_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    class Base(torch.nn.Module):
        def turn(self, x: torch.Tensor) -> torch.Tensor:
            return -x

    class Turned(Base):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.turn(x)

    before = dict(read_names(Turned))
    assert {"Turned.forward": Turned.forward, "Base.turn": Base.turn}.items() <= before.items()
    monkeypatch.setattr(Base, "turn", Turned.forward)
    assert dict(read_names(Turned)) == before | {"Base.turn": Turned.forward}
