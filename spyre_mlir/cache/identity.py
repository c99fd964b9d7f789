"""Digest of Python values by what they are: functions by their code and all it reads, classes by their members.

What other processes could not recognise has no digest, and is named instead.

Decision: docs/decisions/0122-a-cache-of-text.md
"""

from __future__ import annotations

import dis
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from hashlib import sha256
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, cast

import numpy as np

from spyre_mlir.cache.errors import NotCacheableError
from spyre_mlir.cache.sources import is_versioned, package_digest

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
_BY_NAME = (BuiltinFunctionType, type(str.join), type(object.__init__), logging.Logger)
# Two that are equal may be one object or two, by how Python has read the code.
_VALUES: tuple[type, ...] = (tuple, frozenset, CodeType)
_OF_TORCH = frozenset({"dtype", "device", "layout", "memory_format"})
# What Python and dataclasses write into classes, and what follows from the other members.
_UNTOLD = frozenset(
    {
        *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__slots__", "__firstlineno__"),
        *("__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__static_attributes__"),
        *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__abstractmethods__", "_abc_impl"),
        *("__parameters__", "__orig_bases__"),
    }
)


def identity(value: object) -> str:
    """Return the digest of a value.

    Raises:
        NotCacheableError: the value, or something it depends on, has none.
    """
    try:
        return _Identity({}).of(value)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:  # objects of others may answer anything
        raise NotCacheableError(f"{value!r} has no identity: {error}") from error


class _Identity:
    """One walk through a value and all it depends on; what comes again is told by its number.

    Args:
        seen: numbers of the objects that were met, by address.
    """

    def __init__(self, seen: dict[int, int]) -> None:
        self._digest = sha256()
        self._seen = seen
        self._kept: list[object] = []  # addresses are theirs as long as they live

    def of(self, value: object) -> str:
        self._tell(value)
        return self._digest.hexdigest()

    def _say(self, *words: object) -> None:
        for word in words:
            text = str(word).encode()
            self._digest.update(f"{len(text)}:".encode() + text)

    def _tell(self, value: object) -> None:
        if isinstance(value, _PLAIN):
            self._say(type(value).__name__, repr(value))
            return
        if not isinstance(value, _VALUES):
            if id(value) in self._seen:
                self._say("again", self._seen[id(value)])
                return
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
        for kinds, tell in self._kinds():
            if isinstance(value, kinds):
                tell(value)
                return
        self._instance(value)

    def _kinds(self) -> Iterator[tuple[Any, Callable[[Any], None]]]:
        yield Enum, lambda member: self._several("enum", [type(member), member.name])
        yield (tuple, list), lambda items: self._several(type(items).__name__, items)
        yield (
            (set, frozenset),
            lambda items: self._several("set", sorted(_Identity({**self._seen}).of(i) for i in items)),
        )
        yield (dict, MappingProxyType), self._mapping
        yield FunctionType, self._function
        yield MethodType, lambda method: self._several("method", [method.__func__, method.__self__])
        yield partial, lambda call: self._several("partial", [call.func, call.args, call.keywords])
        yield type, self._class
        yield ModuleType, lambda module: self._module(module.__name__)
        yield CodeType, self._code
        yield (staticmethod, classmethod), lambda made: self._several(type(made).__name__, [made.__func__])
        yield property, lambda made: self._several("property", [made.fget, made.fset, made.fdel])
        yield re.Pattern, lambda pattern: self._several("pattern", [pattern.pattern, pattern.flags])
        yield PurePath, lambda path: self._several("path", [str(path)])
        yield (np.ndarray, np.generic), self._array
        yield _BY_NAME, self._named

    def _several(self, kind: str, items: Any) -> None:
        self._say(kind, len(items))
        for item in items:
            self._tell(item)

    def _mapping(self, items: Mapping[object, object]) -> None:
        self._several("mapping", [part for pair in items.items() for part in pair])

    def _array(self, array: Any) -> None:
        if array.dtype.hasobject:
            raise NotCacheableError("an array of Python objects has no identity")
        self._several("array", [str(array.dtype), tuple(array.shape), np.ascontiguousarray(array).tobytes()])

    def _named(self, value: Any) -> None:
        name = getattr(value, "__qualname__", getattr(value, "name", ""))
        self._say("name", getattr(value, "__module__", ""), name)
        bound = getattr(value, "__self__", None)
        if bound is not None and not isinstance(bound, ModuleType):
            self._tell(bound)

    def _module(self, name: str) -> None:
        if is_versioned(name):
            self._say("module", name)
        elif name != "__main__":
            self._say("module", name, package_digest(name.partition(".")[0]))

    def _function(self, function: FunctionType) -> None:
        if _is_found_by_name(function):
            self._say("function", function.__module__, function.__qualname__)
            return
        self._say("function", function.__qualname__)
        self._module(function.__module__)
        self._tell(function.__code__)
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        self._several("bound", [function.__defaults__, function.__kwdefaults__, cells, function.__dict__])
        if not is_versioned(function.__module__):
            self._globals(function)

    def _globals(self, function: FunctionType) -> None:
        """What the code reads of its module, and the packages that it imports."""
        for code in _codes(function.__code__):
            for name in code.co_names:
                if name in function.__globals__:
                    self._say("global", name)
                    self._tell(function.__globals__[name])
            for name in _imported(code):
                self._module(name)

    def _code(self, code: CodeType) -> None:
        counts = (code.co_argcount, code.co_kwonlyargcount, code.co_posonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self._several("code", [code.co_code, code.co_exceptiontable, counts, names])
        # Constants are compared by type too: 0.0 is no -0.0, and 1 is no True.
        self._several("constants", code.co_consts)

    def _class(self, kind: type) -> None:
        self._say("class", kind.__module__, kind.__qualname__)
        if _is_found_by_name(kind):
            return
        self._module(kind.__module__)
        self._several("bases", kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            if name not in _UNTOLD and not isinstance(member, (MemberDescriptorType, GetSetDescriptorType)):
                self._say("member", name)
                self._tell(member)

    def _instance(self, value: object) -> None:
        """An object of a class: what a dataclass or a class of a plugin holds; nothing is known of others."""
        kind = type(value)
        if kind.__module__ in ("typing", "types", "dataclasses") or _is_of_torch(kind):
            self._say("value", kind.__qualname__, value)
        elif _is_found_by_name(value):
            self._named(value)
        elif (wrapped := getattr(value, "__wrapped__", None)) is not None and kind.__module__ == "functools":
            self._several("cached", [wrapped])
        elif is_dataclass(value):
            self._several("object", [kind, {f.name: getattr(value, f.name) for f in fields(value)}])
        elif not is_versioned(kind.__module__) and hasattr(value, "__dict__"):
            self._several("object", [kind, vars(value)])
        else:
            raise NotCacheableError(f"an object of {kind.__module__}.{kind.__qualname__} has no identity")


def _is_found_by_name(value: object) -> bool:
    """Return whether the versions in a key say what a function, a class or an object with a name is."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or not is_versioned(module):
        return False
    found: object = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value


def _is_of_torch(kind: type) -> bool:
    """Return whether objects of a class are operators or types of torch, which their text names."""
    return kind.__module__ == "torch._ops" or (kind.__module__ == "torch" and kind.__qualname__ in _OF_TORCH)


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - it raises where there is none
    except ValueError:
        return False
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code and those in it, as of functions inside a function."""
    yield code
    for constant in cast("tuple[object, ...]", code.co_consts):
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _imported(code: CodeType) -> Iterator[str]:
    """Modules that import statements inside a code name, but for parts of the importer's own package (``from . …``)."""
    instructions = list(dis.get_instructions(code))
    for level, _, instruction in zip(instructions, instructions[1:], instructions[2:], strict=False):
        if instruction.opname == "IMPORT_NAME" and level.argval == 0:
            yield str(instruction.argval)
