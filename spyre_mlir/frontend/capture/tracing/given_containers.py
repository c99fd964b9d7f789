"""Lists and dictionaries among a model's inputs that a call puts tensors into, which no program does.

Torch gives a model copies of them while it traces, so that nothing of it is left in the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.torch_private import tree_flatten

_Container = list[Any] | dict[Any, Any]


class GivenContainers:
    """The lists and dictionaries that a call is given, and their contents."""

    def __init__(self) -> None:
        """Nothing is given yet."""
        self._before: list[tuple[str, _Container, _Container]] = []

    def take(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note the contents at the beginning of a call."""
        named = [*((f"args[{n}]", value) for n, value in enumerate(args)), *kwargs.items()]
        found = (pair for name, value in named for pair in _containers(name, value))
        self._before = [(name, held, held.copy()) for name, held in found]

    def check(self) -> None:
        """Refuse a call that has put a tensor into one of them; what it has taken out is the caller's.

        Raises:
            UnsupportedError: it has.
        """
        for name, held, before in self._before:
            if any(isinstance(leaf, torch.Tensor) for leaf in tree_flatten(_put(held, before))[0]):
                raise UnsupportedError(
                    f"the model puts a tensor into a {type(held).__name__} among its inputs, {name}",
                    hint='return the tensor, or torch.compile(model, backend="spyre")',
                )


def _put(held: _Container, before: _Container) -> list[object]:
    """What is in a container that was not there, or in another place; what is left of a list may follow on itself."""
    if isinstance(held, dict) and isinstance(before, dict):
        return [value for key, value in held.items() if key not in before or before[key] is not value]
    left = iter(before)
    return [value for value in held if not any(value is old for old in left)]


def _containers(name: str, value: object) -> Iterator[tuple[str, _Container]]:
    if isinstance(value, dict | list):
        yield name, cast(_Container, value)
    if isinstance(value, dict):
        inside = [(f"{name}[{key!r}]", part) for key, part in cast("dict[object, object]", value).items()]
    elif isinstance(value, list | tuple):
        inside = [(f"{name}[{n}]", part) for n, part in enumerate(cast("list[object]", value))]
    else:
        inside = list[tuple[str, object]]()
    for place, part in inside:
        yield from _containers(place, part)


__all__ = ["GivenContainers"]
