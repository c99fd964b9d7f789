"""The plain values, functions and tensors that the forward of a module reads, and whether they are still the same.

Decision: docs/decisions/0242-changes-of-a-model-are-said.md
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any, cast

import torch

from spyre_mlir.frontend.calling.read_attributes import read_attributes, read_names
from spyre_mlir.frontend.calling.tensor_states import TensorState
from spyre_mlir.frontend.torch_private import is_fake

ABSENT = object()
_PLAIN = (int, float, complex, str, bool, type(None), torch.dtype, torch.device, torch.Size)
_NEVER_CHANGE = frozenset(_PLAIN)
_CONTAINERS = (list, dict, set, frozenset)
_FUNCTIONS = (FunctionType, BuiltinFunctionType)
_ENTRIES = 64
# Of a tensor beside the weights; in larger ones torch's count shows writes.
_LOOKED_AT = 1 << 20


def values_of(module: torch.nn.Module, held: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Return the plain values, functions and tensors that a module's forward reads, by name; no weights and modules.

    They are attributes of the module and of objects that it has, and globals and variables around its class.
    """
    for name in read_attributes(type(module)):
        owner, _, attribute = name.rpartition(".")
        of: Any = module if not owner else held.get(owner, ABSENT)
        if not owner or has_values(of):
            yield from _value(name, attribute_of(of, attribute, held if not owner else attributes_of(of)))
    for name, value in read_names(type(module)):
        yield from _value(f"{name} of {type(module).__name__}", value)


def has_values(owner: object) -> bool:
    """Return whether attributes of an object beside a module are values of that module."""
    return not isinstance(owner, torch.nn.Module | torch.Tensor)


def attributes_of(owner: object) -> Mapping[str, object]:
    """Return what an object stores by name."""
    try:
        return object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return {}


def attribute_of(of: object, name: str, held: Mapping[str, Any]) -> object:
    """Return an attribute as it is stored, in a slot too: nothing of the object runs."""
    if name in held:
        return held[name]
    member = getattr(type(of), name, ABSENT)
    if not isinstance(member, MemberDescriptorType):
        return member
    try:
        return member.__get__(of)
    except AttributeError:
        return ABSENT


def mark(value: object) -> object:
    """Return an object that tells a value from any other; objects that are no values have their class.

    Values that cannot change are their own mark.
    """
    kind = type(value)
    if kind in _NEVER_CHANGE or value is ABSENT:
        return value
    if issubclass(kind, (*_PLAIN, *_CONTAINERS, *_FUNCTIONS, tuple, torch.Tensor)):
        return next((seen for _, seen in _value("", value)), cast(object, kind))
    return kind


def is_same(before: object, after: object) -> bool:
    """Return whether two values are one. Zeros of both signs are equal, and no NaN is: the text tells."""
    return before is after or repr(before) == repr(after)


def _value(name: str, value: object) -> Iterator[tuple[str, object]]:
    if _is_plain(value):
        yield name, value
    elif isinstance(value, _CONTAINERS) and _is_plain_container(cast(object, value)):
        yield name, _Container(repr(cast(object, value)))
    elif isinstance(value, FunctionType):
        yield name, value.__code__  # which keeps no module alive, and is one for functions that each call makes
    elif isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType | type | None):
        yield name, value
    elif isinstance(value, torch.Tensor) and _has_numbers(value):
        yield name, TensorState.of(value, contents=value.nbytes <= _LOOKED_AT)


def shown(value: object) -> str:
    """Return a value of a module in words."""
    if isinstance(value, CodeType | BuiltinFunctionType):
        return f"the function {value.co_qualname if isinstance(value, CodeType) else value.__name__}"
    return "no plain value" if value is ABSENT else repr(value)


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


__all__ = ["ABSENT", "attribute_of", "attributes_of", "has_values", "is_same", "mark", "shown", "values_of"]
