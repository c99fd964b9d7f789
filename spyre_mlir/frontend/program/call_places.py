"""Arguments of a call in the places that they had in the example: by place or by name, as Python has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from spyre_mlir.frontend.torch_private import TreeSpec, tree_map


def in_places(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], example: TreeSpec, names: Sequence[str | None]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call as the example had them, as far as they can be.

    A positional argument may come by its name, if it is one leaf; keyword arguments may come in any order.

    Args:
        args: positional arguments.
        kwargs: keyword arguments.
        example: the structure of the example, a tuple of arguments and a dictionary of keyword arguments.
        names: of its leaves; None for one without.
    """
    positional, named = example.children()
    left = dict(kwargs)
    for name in list(_positional_names(positional, names))[len(args) :]:
        if name is None or name not in left:
            break
        args = (*args, left.pop(name))
    keys: list[str] = named.context
    return args, {key: left[key] for key in keys} if left.keys() == set(keys) else left


def with_tuples(call: Any) -> Any:
    """Return arguments with tuples in the places of sizes of tensors (`x.shape`), as `torch.export` takes them."""
    return tree_map(_as_tuple, call, is_leaf=_is_size)


def _is_size(part: object) -> bool:
    return isinstance(part, torch.Size)


def _as_tuple(part: object) -> object:
    return tuple(part) if isinstance(part, torch.Size) else part


def _positional_names(positional: TreeSpec, names: Sequence[str | None]) -> Iterator[str | None]:
    """The name of each positional argument that is one leaf; None for the rest."""
    number = 0
    for child in positional.children():
        yield names[number] if child.is_leaf() else None
        number += child.num_leaves


__all__ = ["in_places", "with_tuples"]
