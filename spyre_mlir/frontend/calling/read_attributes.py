"""Which attributes the forward of a module reads, as its code says: nothing runs."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any, cast
from weakref import WeakKeyDictionary

import torch

_known: WeakKeyDictionary[type[torch.nn.Module], tuple[str, ...]] = WeakKeyDictionary()
_READS, _WRITES = ("LOAD_ATTR", "LOAD_METHOD"), ("STORE_ATTR", "DELETE_ATTR")


def read_attributes(kind: type[torch.nn.Module]) -> tuple[str, ...]:
    """Return the names that the forward of a class and its own functions behind it read and do not write.

    What they also write is state that calls change; `nn.Module` itself is left out, as `train` is no part of a call.
    """
    if kind not in _known:
        _known[kind] = _found(kind)
    return _known[kind]


def _found(kind: type[torch.nn.Module]) -> tuple[str, ...]:
    own = [vars(base) for base in kind.__mro__ if base not in torch.nn.Module.__mro__]
    reads, writes, waiting = set[str](), set[str](), ["forward"]
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        for held in own:
            for instruction in _instructions(held.get(name)):
                target = cast(str, instruction.argval)
                if instruction.opname in _WRITES:
                    writes.add(target)
                elif instruction.opname in _READS:
                    reads.add(target)
                    if target not in seen:
                        seen.add(target)
                        waiting.append(target)
    return tuple(sorted(name for name in reads - writes if not _is_code(getattr(kind, name, None))))


def _is_code(member: object) -> bool:
    return callable(member) or isinstance(member, property | cached_property)


def _instructions(member: Any) -> Iterator[dis.Instruction]:
    """The instructions of a function, a method or a property, those of functions inside it among them."""
    if isinstance(member, property):
        member = member.fget
    elif isinstance(member, cached_property):
        member = cast(Any, member).func
    member = inspect.unwrap(getattr(member, "__func__", member)) if callable(member) else member
    if isinstance(member, FunctionType):
        yield from _of_code(member.__code__)


def _of_code(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)


__all__ = ["read_attributes"]
