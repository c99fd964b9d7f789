"""Buffers that no checkpoint has, from the modules that made them, built again from their configuration.

A rotary table registers `inv_freq` as a non-persistent buffer: it is in no checkpoint, and on the meta device it has no
value. The module that owns it, or one around that, can be built again on the CPU if it takes nothing but the
configuration that it keeps, or that a module around it keeps. Weights are not made again: memory that nobody has set,
in which modules keep them until a checkpoint is there, stays on the meta device.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection, Iterator
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from spyre_mlir.frontend.torch_private import is_real

log = logging.getLogger(__name__)


def rebuilt_buffers(model: object, names: Collection[str]) -> dict[str, torch.Tensor]:
    """Return the values of buffers of a model by building their modules again; those that cannot be are left out.

    Args:
        model: a module, of any device; of anything else nothing can be built.
        names: the buffers.
    """
    if not isinstance(model, torch.nn.Module):
        return {}
    old = dict(model.named_buffers(remove_duplicate=False))
    made: dict[str, torch.nn.Module | None] = {}
    found: dict[str, torch.Tensor] = {}
    for name in names:
        for path in _outwards(name.rpartition(".")[0]):
            if path not in made:
                made[path] = _rebuilt(model, path)
            inside = name.removeprefix(f"{path}.") if path else name
            value = _buffer(made[path], inside)
            if value is not None and name in old and value.shape == old[name].shape:
                found[name] = value.to(old[name].dtype)
                break
    return found


def _buffer(module: torch.nn.Module | None, name: str) -> torch.Tensor | None:
    """A buffer of a module, if it has a value."""
    value = None if module is None else dict(module.named_buffers(remove_duplicate=False)).get(name)
    return None if value is None or not is_real(value) else value.detach()


def _rebuilt(model: torch.nn.Module, path: str) -> torch.nn.Module | None:
    """A module of the same class from the nearest configuration; None if it takes more, or refuses it."""
    owner = model.get_submodule(path)
    parts = (model.get_submodule(outer) for outer in _outwards(path))
    config = next((c for part in parts if (c := getattr(part, "config", None)) is not None), None)
    first, *others = [*inspect.signature(type(owner)).parameters.values(), None]
    if config is None or first is None or first.name != "config":
        return None
    if any(p is not None and p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in others):
        return None
    try:
        with cast(Any, torch.random).fork_rng(devices=[]), torch.device("cpu"), _UnsetOnMeta(), torch.no_grad():
            return type(owner)(config)
    except (TypeError, ValueError, AttributeError, RuntimeError, KeyError, NotImplementedError) as error:
        log.debug("%s cannot be built again: %s", path, error)
        return None


def _outwards(path: str) -> Iterator[str]:
    """The path of a module and of those around it, from the inside; the model is ""."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


class _UnsetOnMeta(TorchFunctionMode):
    """Makes memory that nobody has set on the meta device, where it takes no room and no time to fill."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch."""
        given = cast("dict[str, Any]", kwargs or {})
        if func is torch.empty and given.get("device") is None:
            given = {**given, "device": "meta"}
        return func(*args, **given)
