"""The state of a model that its program takes for granted: its modules, hooks, modes and Python values.

`torch.export` writes all of this into the program, and nothing of the program follows a later change. Calls compare.

Decision: docs/decisions/0242-changes-of-a-model-are-said.md
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from weakref import ref

import torch

from spyre_mlir.frontend.calling.read_attributes import read_attributes, read_names
from spyre_mlir.frontend.calling.tensor_states import TensorState
from spyre_mlir.frontend.torch_private import is_fake

_PLAIN = (int, float, complex, str, bool, type(None), torch.dtype, torch.device, torch.Size)
_CONTAINERS = (list, dict, set, frozenset)
_ENTRIES = 64
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_ABSENT = object()
# Of a tensor beside the weights; in larger ones torch's count shows writes.
_LOOKED_AT = 1 << 20


class ModelChangedWarning(UserWarning):
    """A model is no longer what its program was made of, and the program computes what it was."""


@dataclass(frozen=True)
class _ModuleState:
    """A module at the moment of its import.

    Attributes:
        module: the module, which may be gone.
        kind: its class, which parametrizations change.
        forward: a forward of this module alone.
        hooks: torch's numbers of its forward hooks.
        parameters: names of those it has.
        values: of the attributes that its forward reads.
    """

    module: ref[torch.nn.Module]
    kind: type[torch.nn.Module]
    forward: object
    hooks: tuple[int, ...]
    parameters: tuple[str, ...]
    values: Mapping[str, object]

    @classmethod
    def of(cls, module: torch.nn.Module) -> _ModuleState:
        held = vars(module)
        hooks = tuple(number for name in _HOOKS for number in held[name])
        own = tuple(name for name, parameter in held["_parameters"].items() if parameter is not None)
        return cls(ref(module), type(module), held.get("forward"), hooks, own, dict(_values(module, held)))

    def changes(self, name: str, module: torch.nn.Module) -> Iterator[str]:
        """Say how a module differs from what it was: that it is another one, or else which attributes differ."""
        now = _ModuleState.of(module)
        if (text := self._structure(now)) is not None:
            yield f"module '{name}' {text}" if name else f"the model {text}"
            return
        for attribute in sorted({*self.values, *now.values}):
            before, after = self.values.get(attribute, _ABSENT), now.values.get(attribute, _ABSENT)
            if not _is_same(before, after):
                place = f"{name}.{attribute}".lstrip(".") if " of " not in attribute else attribute
                yield f"'{place}' {_difference(before, after)}"

    def _structure(self, now: _ModuleState) -> str | None:
        if self.module() is not now.module() or self.kind is not now.kind:
            return f"is another one: {now.kind.__name__}, was {self.kind.__name__}"
        if self.parameters != now.parameters:
            return f"has parameters {', '.join(now.parameters) or 'none'}, had {', '.join(self.parameters) or 'none'}"
        if self.forward is not now.forward:
            return "has another forward"
        return "has other hooks" if self.hooks != now.hooks else None


def autocast_now() -> str:
    """Return the type to which `torch.autocast` casts on the host now; "" if it does not."""
    return str(torch.get_autocast_dtype("cpu")) if torch.is_autocast_enabled("cpu") else ""


class ModelState:
    """The state of a model when a program was made of it."""

    def __init__(self, model: torch.nn.Module) -> None:
        """Takes the state that it has now; keeps no module alive."""
        self._model = ref(model)
        self._modules = {name: _ModuleState.of(module) for name, module in _named(model).items()}
        self._autocast = autocast_now()

    def changes(self) -> tuple[str, ...]:
        """Say what differs now, one text each."""
        if (model := self._model()) is None:
            return ()
        now = _named(model)
        gone = [f"there is no module '{name}'" for name in self._modules if name not in now]
        new = [f"module '{name}' is new" for name in now if name not in self._modules]
        changed = [text for name, module in now.items() for text in self._of(name, module)]
        return (*self._of_autocast(), *changed, *gone, *new)

    def _of(self, name: str, module: torch.nn.Module) -> Iterator[str]:
        return iter(()) if (before := self._modules.get(name)) is None else before.changes(name, module)

    def _of_autocast(self) -> Iterator[str]:
        """A program that was made under autocast has its types wherever it is called."""
        if (now := autocast_now()) and now != self._autocast:
            yield f"the call is under autocast to {now}, which compilation was not"


def _named(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    return dict(cast("Iterator[tuple[str, torch.nn.Module]]", model.named_modules()))


def _values(module: torch.nn.Module, held: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """The plain values and tensors that a module's forward reads, by name; no weights and modules.

    They are attributes of the module and of objects that it has, and globals and variables around its class.
    """
    for name in read_attributes(type(module)):
        owner, _, attribute = name.rpartition(".")
        of: Any = module if not owner else held.get(owner, _ABSENT)
        if not owner or not isinstance(of, torch.nn.Module | torch.Tensor):
            yield from _value(name, _attribute(of, attribute, held if not owner else getattr(of, "__dict__", {})))
    for name, value in read_names(type(module)):
        yield from _value(f"{name} of {type(module).__name__}", value)


def _attribute(of: object, name: str, held: Mapping[str, Any]) -> object:
    """An attribute as it is stored: nothing runs."""
    return held[name] if name in held else getattr(type(of), name, _ABSENT)


def _value(name: str, value: object) -> Iterator[tuple[str, object]]:
    if _is_plain(value):
        yield name, value
    elif isinstance(value, _CONTAINERS) and _is_plain_container(cast(object, value)):
        yield name, _Container(repr(cast(object, value)))
    elif isinstance(value, torch.Tensor) and _has_numbers(value):
        yield name, TensorState.of(value, contents=value.nbytes <= _LOOKED_AT)


@dataclass(frozen=True)
class _Container:
    """A list, set or dictionary of plain values, as text: its entries may change in place."""

    text: str

    def __repr__(self) -> str:
        return self.text


def _is_plain_container(value: object, depth: int = 2) -> bool:
    """Whether a container has plain values, or a few such containers, and not too many to look at in every call."""
    if not isinstance(value, _CONTAINERS):
        return _is_plain(value)
    items = cast("Collection[object]", value)
    inside = [*cast("Mapping[object, object]", value).values(), *items] if isinstance(value, dict) else items
    return depth > 0 and len(items) <= _ENTRIES and all(_is_plain_container(item, depth - 1) for item in inside)


def _has_numbers(tensor: torch.Tensor) -> bool:
    dense = tensor.layout is torch.strided and not tensor.is_nested
    return dense and tensor.device.type == "cpu" and not is_fake(tensor)


def _is_plain(value: object) -> bool:
    if type(value) in _PLAIN:
        return True
    return all(map(_is_plain, value)) if type(value) is tuple else isinstance(value, _PLAIN)  # pyright: ignore[reportUnknownArgumentType]


def _is_same(before: object, after: object) -> bool:
    # Zeros of both signs are equal, and no NaN is: the text tells.
    return before is after or repr(before) == repr(after)


def _difference(before: object, after: object) -> str:
    if isinstance(before, TensorState) or isinstance(after, TensorState):
        return "is another tensor, or has other numbers"
    return f"is {_shown(after)}, was {_shown(before)}"


def _shown(value: object) -> str:
    return "no plain value" if value is _ABSENT else repr(value)


__all__ = ["ModelChangedWarning", "ModelState", "autocast_now"]
