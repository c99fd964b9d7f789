"""Containers among a model's inputs that a call puts tensors into, which no program does.

Torch gives a model copies of them while it traces, so that nothing of it is left in the trace. Lists and dictionaries
are refused. A cache of transformers is usually a result, too, which has the tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch

from spyre_mlir.errors import UnsupportedError, frames_of_ours
from spyre_mlir.frontend.capture.tracing.package_classes import is_cache
from spyre_mlir.frontend.torch_private import tree_flatten

_Container = list[Any] | dict[Any, Any]


class GivenCacheWarning(UserWarning):
    """A model changes a cache that it is given; a call of the compiled model does not."""


class GivenContainers:
    """The lists, dictionaries and caches that a call is given, and their contents."""

    def __init__(self) -> None:
        """Nothing is given yet."""
        self._before: list[tuple[str, _Container, _Container]] = []
        self._caches: list[tuple[str, object, list[object]]] = []
        self._changed: dict[str, str] = {}

    def take(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note the contents at the beginning of a call."""
        named = [*((f"args[{n}]", value) for n, value in enumerate(args)), *kwargs.items()]
        found = [pair for name, value in named for pair in _containers(name, value)]
        self._before = [(name, held, held.copy()) for name, held in found if isinstance(held, dict | list)]
        self._caches = [(name, held, tree_flatten(held)[0]) for name, held in found if is_cache(held)]

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
        for name, cache, before in self._caches:
            after = tree_flatten(cache)[0]
            if len(after) != len(before) or any(new is not old for new, old in zip(after, before, strict=True)):
                self._changed[name] = type(cache).__name__

    def warn_of_caches(self) -> None:
        """Say which caches a model changes that calls of the program leave as they are."""
        for name, kind in self._changed.items():
            warnings.warn(
                f"the model puts tensors into {name}, a {kind} among its inputs; a call of the compiled model leaves "
                "it as it is, and the cache among the results has them. Give that one to the next call, or a "
                "StaticCache, which calls write to; compile(..., generation=...) keeps caches by itself",
                GivenCacheWarning,
                stacklevel=frames_of_ours(),
            )


def _put(held: _Container, before: _Container) -> list[object]:
    """What is in a container that was not there, or in another place; what is left of a list may follow on itself."""
    if isinstance(held, dict) and isinstance(before, dict):
        return [value for key, value in held.items() if key not in before or before[key] is not value]
    left = iter(before)
    return [value for value in held if not any(value is old for old in left)]


def _containers(name: str, value: object) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict | list) or is_cache(value):
        yield name, value
    if isinstance(value, dict):
        inside = [(f"{name}[{key!r}]", part) for key, part in cast("dict[object, object]", value).items()]
    elif isinstance(value, list | tuple):
        inside = [(f"{name}[{n}]", part) for n, part in enumerate(cast("list[object]", value))]
    else:
        inside = list[tuple[str, object]]()
    for place, part in inside:
        yield from _containers(place, part)


__all__ = ["GivenCacheWarning", "GivenContainers"]
