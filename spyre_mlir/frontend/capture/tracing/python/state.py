"""Python state of a model that tracing must leave as it was: caches that a model fills when it is called."""

from __future__ import annotations

import sys
from collections import OrderedDict, defaultdict
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import cast

import torch

from spyre_mlir.frontend.torch_private import is_fake, tree_flatten

Held = dict[object, object] | list[object]
_DICTIONARIES = (dict, OrderedDict, defaultdict)
# What has attributes, but is no state of a model; so are objects of these packages, such as loggers.
_NO_STATE = (type, FunctionType, BuiltinFunctionType, MethodType, ModuleType, torch.Tensor)
_NO_STATE_OF = sys.stdlib_module_names | {"builtins", "torch"}


@contextmanager
def python_state_kept(model: torch.nn.Module, *, always: bool = False) -> Generator[None]:
    """Undoes what a call inside changes in the model's Python objects, if it left a tensor without values there.

    Torch restores attributes of modules. A table of angles in a dictionary of an object beside them stays, and with it
    the model could neither be copied nor run again.

    Args:
        model: the module.
        always: undo it whatever the call left.
    """
    before = [(held, held.copy()) for held in held_state(model)]
    try:
        yield
    finally:
        if always or any(_is_traced(held) for held, _ in before):
            for held, values in before:
                restore(held, values)


@contextmanager
def unset_buffers_as_attributes(model: torch.nn.Module) -> Generator[None]:
    """Makes buffers that are None attributes of modules meanwhile.

    A call may make such a buffer, a table for instance. `torch.export` would write it to an input of the model.
    """
    places = [(m, name) for m in model.modules() for name, held in m._buffers.items() if held is None]  # pyright: ignore[reportPrivateUsage]
    buffers = [(held, held.copy()) for held in {id(m): m._buffers for m, _ in places}.values()]  # pyright: ignore[reportPrivateUsage]
    added = [(vars(module), name) for module, name in places if name not in vars(module)]
    try:
        for module, name in places:
            del module._buffers[name]  # pyright: ignore[reportPrivateUsage]
        for attributes, name in added:
            attributes[name] = None
        yield
    finally:
        for attributes, name in added:
            attributes.pop(name, None)
        for held, values in buffers:
            restore(cast(Held, held), cast(Held, values))


def held_state(model: torch.nn.Module) -> Iterator[Held]:
    """Give every dictionary and list that can be reached from a module, attributes of objects among them, once."""
    found: dict[int, object] = {}
    waiting: list[object] = [model]
    while waiting:
        value = waiting.pop()
        if id(value) in found or isinstance(value, _NO_STATE):
            continue
        found[id(value)] = value
        if type(value) in _DICTIONARIES:
            held = cast(dict[object, object], value)
            yield held
            waiting.extend(held.values())
        elif isinstance(value, list | tuple):
            parts = cast(list[object] | tuple[object, ...], value)
            if type(parts) is list:
                yield parts
            waiting.extend(parts)
        elif _has_state(value):
            waiting.append(vars(value))


def _has_state(value: object) -> bool:
    own = isinstance(value, torch.nn.Module) or type(value).__module__.partition(".")[0] not in _NO_STATE_OF
    return own and hasattr(value, "__dict__")


def _is_traced(held: Held) -> bool:
    values = held.values() if isinstance(held, dict) else held
    return any(isinstance(leaf, torch.Tensor) and is_fake(leaf) for v in values for leaf in tree_flatten(v)[0])


def restore(held: Held, values: Held) -> None:
    """Give a dictionary or list the values of another."""
    if isinstance(held, list):
        held[:] = values
        return
    assert isinstance(values, dict)
    for key in [key for key in held if key not in values]:
        del held[key]
    held.update(values)
