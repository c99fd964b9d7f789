"""Tensors of a program by name, those that follow from weights as the weights are now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import torch

from spyre_mlir.frontend.calling.tensor_states import TensorState
from spyre_mlir.frontend.program.program import Program
from spyre_mlir.frontend.program.recipe import Recipe


class _Made(NamedTuple):
    value: torch.Tensor
    states: tuple[TensorState, ...]


class CurrentValues(Mapping[str, torch.Tensor]):
    """Tensors of a program; those that follow from weights are computed when they are asked for, and after each write.

    Attributes:
        leaves: the buffers and weights that these follow from.
    """

    def __init__(
        self,
        held: Mapping[str, torch.Tensor],
        recipes: Mapping[str, Recipe],
        leaves: Mapping[str, torch.Tensor],
        *,
        stored: bool = False,
    ) -> None:
        """Computes nothing.

        Args:
            held: tensors by name.
            recipes: how constants follow from buffers and weights, by name; those that read no weight are among `held`.
            leaves: buffers and weights, as far as they are known.
            stored: whether these lie in files, whose contents nobody looks at again.
        """
        own = {n: r for n, r in recipes.items() if r.weight_leaves and all(leaf in leaves for leaf in r.leaves)}
        self._held = {n: t for n, t in held.items() if n not in own}
        self.leaves = {leaf: leaves[leaf] for recipe in own.values() for leaf in recipe.leaves}
        self._recipes, self._contents = own, not stored
        self._made: dict[str, _Made] = {}

    def __getitem__(self, name: str) -> torch.Tensor:
        """The tensor as it is now."""
        if (recipe := self._recipes.get(name)) is None:
            return self._held[name]
        read, made = [self.leaves[leaf] for leaf in recipe.leaves], self._made.get(name)
        if made is None or not all(
            state.lasts(tensor, contents=self._contents) for state, tensor in zip(made.states, read, strict=True)
        ):
            states = tuple(TensorState.of(tensor, contents=self._contents) for tensor in read)
            made = self._made[name] = _Made(recipe.value(self.leaves), states)
        return made.value

    def __contains__(self, name: object) -> bool:
        """Return whether there is a tensor of this name; computes none."""
        return name in self._held or name in self._recipes

    def __iter__(self) -> Iterator[str]:
        """Names: those that follow from weights are last."""
        return iter([*self._held, *self._recipes])

    def __len__(self) -> int:
        """Return their number."""
        return len(self._held) + len(self._recipes)


def with_current_values(program: Program) -> Program:
    """Return a program that also has the constants which follow from its weights, as far as these are known."""
    return replace(
        program, values=CurrentValues(program.values, program.recipes, program.read_ahead, stored=program.stored)
    )


__all__ = ["CurrentValues", "with_current_values"]
