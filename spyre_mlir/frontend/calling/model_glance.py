"""A quick look at a model: whether everything that its state is made of is still in its place.

Comparing objects takes a tenth of the time of comparing their texts. Classes, and objects that modules share, are
looked at once.

Decision: docs/decisions/0242-changes-of-a-model-are-said.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MemberDescriptorType
from typing import Any, cast
from weakref import ref

import torch

from spyre_mlir.frontend.calling.model_values import (
    ABSENT,
    attribute_of,
    attributes_of,
    has_values,
    is_same,
    mark,
)
from spyre_mlir.frontend.calling.read_attributes import read_attributes, read_names

HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_Marks = tuple[tuple[str, object], ...]


def hooks_of(held: Mapping[str, Any]) -> tuple[int, ...]:
    """Return torch's numbers of the forward hooks of a module that stores this."""
    return tuple(number for name in HOOKS for number in held[name])


def parameters_of(held: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the parameters of a module that stores this."""
    return tuple([name for name, parameter in held["_parameters"].items() if parameter is not None])


@dataclass(frozen=True, slots=True)
class _Module:
    """A module: by identity, as long as all modules are there.

    Attributes:
        structure: names and identities of its modules, identity of its own forward, hooks, names of parameters.
        marks: of the attributes that it stores, or might, and its forward reads.
        slots: of those that it stores in slots of its class.
        owners: identities and classes of objects whose attributes its forward reads.
    """

    module: ref[torch.nn.Module]
    kind: type[torch.nn.Module]
    structure: tuple[object, ...]
    marks: _Marks
    slots: _Marks
    owners: tuple[tuple[str, int, type[Any]], ...]

    def lasts(self) -> bool:
        if (module := self.module()) is None or type(module) is not self.kind:
            return False
        held = module.__dict__
        if _structure(held) != self.structure:
            return False
        for name, before in self.marks:
            after = held.get(name, ABSENT)
            if after is not before and not is_same(before, mark(after)):
                return False
        for name, number, kind in self.owners:
            owner: Any = held.get(name, ABSENT)
            if id(owner) != number or type(owner) is not kind:
                return False
        return not self.slots or _lasts(self.slots, _in_slots(module))


@dataclass(frozen=True)
class _Owner:
    """An object that modules have, by one of them and the attribute there, and marks of its attributes."""

    module: ref[torch.nn.Module]
    name: str
    attributes: Sequence[str]
    marks: _Marks

    def lasts(self) -> bool:
        if (module := self.module()) is None:
            return False
        return _lasts(self.marks, _stored(module.__dict__.get(self.name, ABSENT), self.attributes))


class ModelGlance:
    """The objects of a model at a moment."""

    def __init__(self, modules: Iterable[torch.nn.Module]) -> None:
        """Takes the modules as they are now; keeps none alive."""
        there = list(modules)
        self._modules = [_seen(module) for module in there]
        self._owners = [
            _Owner(ref(module), name, attributes, tuple(_stored(vars(module)[name], attributes)))
            for module, name, attributes in _owners(there)
        ]
        self._kinds = {kind: tuple(_of_class(kind)) for kind in dict.fromkeys(map(type, there))}

    def lasts(self) -> bool:
        """Return whether a comparison of all that modules say would give what it gave at that moment."""
        return (
            all(module.lasts() for module in self._modules)
            and all(owner.lasts() for owner in self._owners)
            and all(_lasts(before, _of_class(kind)) for kind, before in self._kinds.items())
        )


def _seen(module: torch.nn.Module) -> _Module:
    held = vars(module)
    own, objects = _names(type(module))
    owners = [(name, held.get(name, ABSENT)) for name in objects]
    return _Module(
        ref(module),
        type(module),
        _structure(held),
        tuple((name, mark(held.get(name, ABSENT))) for name in own),
        tuple(_in_slots(module)),
        tuple((name, id(owner), cast(type[Any], type(owner))) for name, owner in owners),
    )


def _in_slots(module: torch.nn.Module) -> Iterator[tuple[str, object]]:
    kind = type(module)
    slots = (name for name in _names(kind)[0] if isinstance(getattr(kind, name, None), MemberDescriptorType))
    return ((name, mark(attribute_of(module, name, {}))) for name in slots)


def _structure(held: Mapping[str, Any]) -> tuple[object, ...]:
    inside = held["_modules"]
    return (*inside, *map(id, inside.values()), id(held.get("forward")), *hooks_of(held), *parameters_of(held))


def _names(kind: type[torch.nn.Module]) -> tuple[list[str], dict[str, list[str]]]:
    """The attributes that the forward of a class reads, and those of objects, by the attribute that has the object."""
    own, objects = list[str](), dict[str, list[str]]()
    for name in read_attributes(kind):
        owner, _, attribute = name.rpartition(".")
        objects.setdefault(owner, []).append(attribute) if owner else own.append(name)
    return own, objects


def _owners(modules: Sequence[torch.nn.Module]) -> Iterator[tuple[torch.nn.Module, str, Sequence[str]]]:
    """Each object once, with the attributes that any module reads of it."""
    places, read = dict[int, tuple[torch.nn.Module, str]](), dict[int, dict[str, None]]()
    for module in modules:
        held = vars(module)
        for name, attributes in _names(type(module))[1].items():
            if name in held and has_values(owner := held[name]):
                places.setdefault(id(owner), (module, name))
                read.setdefault(id(owner), {}).update(dict.fromkeys(attributes))
    return ((*place, tuple(read[number])) for number, place in places.items())


def _stored(owner: object, names: Sequence[str]) -> Iterator[tuple[str, object]]:
    held = attributes_of(owner)
    return ((name, mark(attribute_of(owner, name, held))) for name in names)


def _of_class(kind: type[torch.nn.Module]) -> Iterator[tuple[str, object]]:
    """Marks of what a class has for its modules, and of the surroundings of its functions."""
    for name in _names(kind)[0]:
        yield name, mark(getattr(kind, name, ABSENT))
    for name, value in read_names(kind):
        yield name, mark(value)


def _lasts(before: _Marks, now: Iterable[tuple[str, object]]) -> bool:
    after = tuple(now)
    return len(before) == len(after) and all(
        name == same and is_same(was, value) for (name, was), (same, value) in zip(before, after, strict=True)
    )


__all__ = ["ModelGlance", "hooks_of", "parameters_of"]
