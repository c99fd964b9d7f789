"""Buffers that no checkpoint has, from the modules that made them, built again from their configuration.

A rotary table registers `inv_freq` as a non-persistent buffer: it is in no checkpoint, and on the meta device it has no
value. The module that owns it can be built again on the CPU, if it takes the configuration that it keeps, or that a
module around it keeps; the rest of the model is not needed.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection, Iterator
from typing import Any, cast

import torch

log = logging.getLogger(__name__)


def rebuilt_buffers(model: object, names: Collection[str]) -> dict[str, torch.Tensor]:
    """Return the values of buffers of a model by building their modules again; those that cannot be are left out.

    Args:
        model: a module, of any device; of anything else nothing can be built.
        names: the buffers.
    """
    if not isinstance(model, torch.nn.Module):
        return {}
    made: dict[str, torch.nn.Module | None] = {}
    found: dict[str, torch.Tensor] = {}
    for name in names:
        path, _, buffer = name.rpartition(".")
        if path not in made:
            made[path] = _rebuilt(model, path)
        value = dict(() if (owner := made[path]) is None else owner.named_buffers(recurse=False)).get(buffer)
        old = dict(model.named_buffers(remove_duplicate=False)).get(name)
        if value is not None and old is not None and value.shape == old.shape:
            found[name] = value.detach().to(old.dtype)
    return found


def _rebuilt(model: torch.nn.Module, path: str) -> torch.nn.Module | None:
    """A module of the same class from the nearest configuration; None if it takes none, or refuses it."""
    owner = model.get_submodule(path)
    config = next((c for part in _outwards(model, path) if (c := getattr(part, "config", None)) is not None), None)
    first, *others = [*inspect.signature(type(owner)).parameters.values(), None]
    if config is None or first is None or first.name != "config":
        return None
    if any(p is not None and p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in others):
        return None
    try:
        with cast(Any, torch.random).fork_rng(devices=[]), torch.device("cpu"), torch.no_grad():
            return type(owner)(config)
    except (TypeError, ValueError, AttributeError, RuntimeError, KeyError) as error:
        log.debug("%s cannot be built again: %s", path, error)
        return None


def _outwards(model: torch.nn.Module, path: str) -> Iterator[torch.nn.Module]:
    """A module and those around it, from the inside."""
    while path:
        yield model.get_submodule(path)
        path = path.rpartition(".")[0]
    yield model
