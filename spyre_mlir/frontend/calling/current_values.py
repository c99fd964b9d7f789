"""Tensors of a program by name, those that follow from weights as the weights are now.

Decision: docs/decisions/0179-values-of-weights-alone-are-computed-at-load.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple
from weakref import ref

import torch

from spyre_mlir.frontend.calling.tensor_states import TensorState
from spyre_mlir.frontend.program.program import Program
from spyre_mlir.frontend.program.recipe import Recipe

# Of values that follow from files: larger ones are made again for each reader, as weights in files are read again.
_KEPT_BYTES = 1 << 20


class _Made(NamedTuple):
    value: ref[torch.Tensor]
    kept: torch.Tensor | None
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
        value = None if made is None else made.value()
        if (
            made is None
            or value is None
            or not all(
                state.lasts(tensor, contents=self._contents) for state, tensor in zip(made.states, read, strict=True)
            )
        ):
            states = tuple(TensorState.of(tensor, contents=self._contents) for tensor in read)
            value = recipe.value(self.leaves)
            kept = value if self._contents or value.nbytes <= _KEPT_BYTES else None
            self._made[name] = _Made(ref(value), kept, states)
        return value

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
    values = CurrentValues(program.values, program.recipes, program.read_ahead, stored=program.stored)
    if (in_calls := program.in_calls) is None:
        return replace(program, values=values)
    return replace(program, values=values, in_calls=lambda: with_current_values(in_calls()))


__all__ = ["CurrentValues", "with_current_values"]
