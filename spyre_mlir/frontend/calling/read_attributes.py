"""Which attributes the forward of a module reads, as its code says: nothing runs."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch

_known: WeakKeyDictionary[type[torch.nn.Module], tuple[str, ...]] = WeakKeyDictionary()
_Place = tuple[int, str]  # of a function: which class of the order of resolution has it, by which name
_Read = tuple[_Place, FunctionType, tuple[str, ...], tuple[tuple[str, int], ...]]
_surroundings: WeakKeyDictionary[type[torch.nn.Module], tuple[_Read, ...]] = WeakKeyDictionary()
_READS, _WRITES = ("LOAD_ATTR", "LOAD_METHOD"), ("STORE_ATTR", "DELETE_ATTR")
_WRITES_NAMES = ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF")
_WRITES_ENTRIES = ("STORE_SUBSCR", "DELETE_SUBSCR")
_NAMES = ("LOAD_GLOBAL", "LOAD_DEREF")
# How many instructions before a write say the container and the place of an entry, as a rule: as an attribute, a name.
_BEFORE: Mapping[tuple[str, ...], int] = {_READS: 5, _NAMES: 2}
_LONGEST = 10
_BEFORE_SUM = slice(-_LONGEST, -7)  # the same of `held[key] += 1`, which reads the entry first
_CHANGE_CONTAINERS = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault"}
    | {"sort", "update"}
)


def read_attributes(kind: type[torch.nn.Module]) -> tuple[str, ...]:
    """Return the names that the forward of a class and its own functions behind it read and do not write.

    What they also write is state that calls change; `nn.Module` itself is left out, as `train` is no part of a call. So
    are entries of containers that the forward or a private function writes; a public one, as peft's `unmerge`, is for
    users too. Attributes of objects beside the module are ``config.eps``.
    """
    if kind not in _known:
        _known[kind] = _found(kind)
    return _known[kind]


def read_names(kind: type[torch.nn.Module]) -> Iterator[tuple[str, object]]:
    """Return the names of the surroundings that the same functions read, of modules and of closures, and the values.

    The functions are among them, as their classes have them now.
    """
    if kind not in _surroundings:
        _surroundings[kind] = tuple((place, function, *_names(function)) for place, function in _behind_forward(kind))
    for (number, own), function, names, free in _surroundings[kind]:
        base, held = kind.__mro__[number], function.__globals__
        yield f"{base.__name__}.{own}", _function(vars(base).get(own))
        yield from ((name, held[name]) for name in names if name in held)
        for name, place in free:
            with suppress(ValueError):  # it has no value yet
                yield name, (function.__closure__ or ())[place].cell_contents


def _names(function: FunctionType) -> tuple[tuple[str, ...], tuple[tuple[str, int], ...]]:
    """The globals that a function reads and does not write, and the variables of its closure, with their places.

    Of containers it writes no entries either.
    """
    code = list(_of_code(function.__code__))
    written = {str(i.argval) for i in code if i.opname in _WRITES_NAMES} | set(_changed_containers(code, _NAMES))
    read = {str(i.argval) for i in code if i.opname == "LOAD_GLOBAL"}
    free = [(name, place) for place, name in enumerate(function.__code__.co_freevars) if name not in written]
    return tuple(sorted(read - written)), tuple(free)


def _found(kind: type[torch.nn.Module]) -> tuple[str, ...]:
    reads, writes = set[str](), set[str]()
    for _, function in _behind_forward(kind):
        code = list(_of_code(function.__code__))
        reads.update(_read(code))
        writes |= {str(i.argval) for i in code if i.opname in _WRITES}
        if function.__name__ == "forward" or function.__name__.startswith("_"):
            writes.update(_changed_containers(code, _READS))
    plain = (name for name in reads if not any(part in writes for part in name.split(".")))
    return tuple(sorted(name for name in plain if not _is_code(getattr(kind, name, None))))


def _read(code: Sequence[dis.Instruction]) -> Iterator[str]:
    """The names of attributes that code reads, in pairs as well."""
    last = ""
    for instruction in code:
        target = str(instruction.argval) if instruction.opname in _READS else ""
        if target:
            yield from (target, f"{last}.{target}") if last else (target,)
        last = target


def _changed_containers(code: Sequence[dis.Instruction], loads: tuple[str, ...]) -> Iterator[str]:
    """The names, by the instructions that load them, of containers that code changes entries of."""
    for number, instruction in enumerate(code):
        before = code[max(0, number - _LONGEST) : number]
        if instruction.opname in _WRITES_ENTRIES:
            is_sum = number > 0 and before[-1].opname == "SWAP"
            near = before[_BEFORE_SUM] if is_sum else before[-_BEFORE[loads] :]
        elif instruction.opname in _READS and str(instruction.argval) in _CHANGE_CONTAINERS:
            near = before[-1:]
        else:
            continue
        yield from (str(i.argval) for i in near if i.opname in loads)


def _behind_forward(kind: type[torch.nn.Module]) -> Iterator[tuple[_Place, FunctionType]]:
    """The forward of a class, and the functions and properties of the class that it reaches, with their places."""
    own = [(at, vars(base)) for at, base in enumerate(kind.__mro__) if base not in torch.nn.Module.__mro__]
    waiting = ["forward"]
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        for at, held in own:
            if (function := _function(held.get(name))) is None:
                continue
            yield (at, name), function
            reached = {str(i.argval) for i in _of_code(function.__code__) if i.opname in _READS} - seen
            seen |= reached
            waiting += reached


def _is_code(member: object) -> bool:
    return callable(member) or isinstance(member, property | cached_property)


def _function(member: Any) -> FunctionType | None:
    """The function behind a method or a property."""
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, cached_property):
        member = cast(Any, member).func
    member = inspect.unwrap(getattr(member, "__func__", member)) if callable(member) else member
    return member if isinstance(member, FunctionType) else None


def _of_code(code: CodeType) -> Iterator[dis.Instruction]:
    """The instructions of a function, those of functions inside it among them."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)


__all__ = ["read_attributes", "read_names"]
