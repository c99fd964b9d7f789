"""Values that follow from weights which calls give: computed once for the numbers that the weights have.

Programs of several sizes share them, and modules that share a program have their own.

Decision: docs/decisions/0216-values-of-given-weights-are-computed-once.md
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from spyre_mlir.frontend.calling.tensor_states import TensorState, place_of, storage_of
from spyre_mlir.frontend.program.program import Program

_Place = tuple[object, ...]
_Key = tuple[bytes, tuple[_Place, ...]]


@dataclass(frozen=True)
class _Made:
    """A value, and the states of what it follows from.

    Attributes:
        value: itself.
        states: of the tensors when it was computed, in the order of the recipe's leaves.
    """

    value: torch.Tensor
    states: tuple[TensorState, ...]


# All that some program keeps, by what is computed of which memory.
_SHARED: weakref.WeakValueDictionary[_Key, _Made] = weakref.WeakValueDictionary()


class GivenValues:
    """Values of a program that follow from weights which its calls give, as long as the weights' memory is there."""

    def __init__(self, program: Program) -> None:
        """Computes nothing."""
        self._recipes, self._own = program.given_recipes, program.read_ahead
        self._contents = {name: recipe.content_key for name, recipe in self._recipes.items()}
        self._kept: dict[_Key, _Made] = {}
        self._watched: dict[int, weakref.ref[object]] = {}

    def of(self, given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Return the values by name; a weight's elements say whether it has changed, as torch counts not every write.

        Args:
            given: the tensors of a call, by name.

        Raises:
            InputError: torch cannot compute a value from these weights.
        """
        known = {**self._own, **given}
        read = {leaf: known[leaf] for recipe in self._recipes.values() for leaf in recipe.leaves}
        states = {leaf: TensorState.of(tensor) for leaf, tensor in read.items()}
        values: dict[str, torch.Tensor] = {}
        for name, recipe in self._recipes.items():
            now = tuple(states[leaf] for leaf in recipe.leaves)
            places = tuple(place_of(read[leaf]) for leaf in recipe.leaves)
            key = self._contents[name], places
            made = _SHARED.get(key)
            if made is None or not _same(made.states, now):
                made = _SHARED[key] = _Made(recipe.value(read), now)
            if self._kept.get(key) is not made:
                self._kept[key] = made
                for leaf in recipe.leaves:
                    self._watch(read[leaf])
            values[name] = made.value
        return values

    def _watch(self, tensor: torch.Tensor) -> None:
        """Drop what follows from a tensor when its memory goes."""
        storage, identity = storage_of(tensor), place_of(tensor)[0]
        if id(storage) in self._watched:
            return
        kept, watched, number = self._kept, self._watched, id(storage)

        def forget(_: object) -> None:
            watched.pop(number, None)
            for key in [key for key in kept if any(place[0] == identity for place in key[1])]:
                del kept[key]

        watched[number] = weakref.ref(storage, forget)


def _same(before: tuple[TensorState, ...], now: tuple[TensorState, ...]) -> bool:
    pairs = zip(before, now, strict=True)
    return all((a.start, a.digest) == (b.start, b.digest) for a, b in pairs)


__all__ = ["GivenValues"]
