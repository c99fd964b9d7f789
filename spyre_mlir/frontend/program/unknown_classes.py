"""Structures of saved programs with classes that nothing has registered with torch.

A saved program names the classes of its arguments and results. torch knows them where the package that defines them has
registered them, which some packages do only when an instance is made. A stand-in keeps such a name and its parts: the
program can be read, run and written, and a bundle gives the class where it is loaded by then.

Private parts of torch used: ``torch.utils._pytree``'s registration of a class in Python alone, and its table of names.

Decision: docs/decisions/0226-classes-that-are-not-registered.md
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, cast

from torch.utils import _pytree
from torch.utils._pytree import MappingKey, SequenceKey

_SPECS = ("in_spec", "out_spec")
_NAMED_TUPLE = "collections.namedtuple"  # its context is the name of the class
_ENUM, _ENUM_CLASS = "__enum__", "fqn"  # torch imports the module of such a key
_names = cast("dict[str, type]", _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
_changes = Lock()


class UnknownClass(tuple[Any, ...]):
    """Parts of an instance of a class that is not registered, in order, and what the class keeps beside them."""

    kept: object = None

    def __new__(cls, *values: object) -> UnknownClass:
        """Take the parts one by one, as a named tuple does."""
        return super().__new__(cls, values)


Structure = dict[str, Any]
"""A structure of arguments or results, or a part of one, as torch serialises it."""


def structures_of(program: object) -> list[Structure]:
    """Return the structures of calls of a program, and their parts.

    Args:
        program: the JSON that `torch.export.save` writes of a graph.
    """
    texts = (item.get(key) for item in _objects(program) for key in _SPECS)
    return [part for text in texts for part in _objects(_read(text)) if "children_spec" in part]


def names_of_classes(structures: Iterable[Structure]) -> set[str]:
    """Return the names of the classes of structures."""
    pairs = ((part.get("type"), part.get("context")) for part in structures)
    names = (context if kind == _NAMED_TUPLE else kind for kind, context in pairs)
    return {name for name in names if isinstance(name, str)}


def modules_of_keys(structures: Iterable[Structure]) -> set[str]:
    """Return the modules that torch would import for keys that are members of an enumeration, and are not loaded."""
    items = (item for part in structures for item in _objects(_read(part.get("context"))))
    names = {str(item.get(_ENUM_CLASS)).partition(":")[0] for item in items if _ENUM in item}
    return {name for name in names if name not in sys.modules}


def _objects(value: object) -> Iterator[dict[str, Any]]:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield cast("dict[str, Any]", item)
            waiting += cast("dict[str, object]", item).values()
        elif isinstance(item, list):
            waiting += cast("list[object]", item)


def _read(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):  # what reads the program says so
        return None


@contextmanager
def stand_ins_for(names: Iterable[str]) -> Generator[None]:
    """Let torch read structures of the named classes: those that are not registered have stand-ins meanwhile."""
    with _changes:
        unknown = {name: _stand_in(name) for name in names if name not in _names}
        _names.update(unknown)
    try:
        yield
    finally:
        with _changes:
            for name, kind in unknown.items():
                if _names.get(name) is kind:  # or a package has registered its class
                    del _names[name]


def is_stand_in(kind: object) -> bool:
    """Return whether a class, or what torch keeps of a named tuple, stands for one that is not registered."""
    return isinstance(kind, type) and issubclass(kind, UnknownClass)


@cache
def _stand_in(name: str) -> type[UnknownClass]:
    """The class that stands for the one of a name; it stays registered, so that its structures can be written."""
    module, _, word = name.rpartition(".")
    kind = type(word, (UnknownClass,), {"__module__": module})

    def made(values: Iterable[object], kept: object) -> UnknownClass:
        instance = kind(*values)
        instance.kept = kept
        return instance

    def with_keys(instance: UnknownClass) -> tuple[list[tuple[Any, Any]], object]:
        names = _names_of_parts(instance.kept, len(instance))
        keys: list[Any] = [SequenceKey(n) for n in range(len(instance))]
        if names is not None:
            keys = [MappingKey(name) for name in names]
        return list(zip(keys, instance, strict=True)), instance.kept

    def parted(instance: UnknownClass) -> tuple[list[Any], object]:
        return list(instance), instance.kept

    cast(Any, _pytree)._private_register_pytree_node(
        kind,
        parted,
        made,
        serialized_type_name=name,
        flatten_with_keys_fn=with_keys,
    )
    return kind


def _names_of_parts(kept: object, count: int) -> list[str] | None:
    """The names of an instance's parts: what a mapping keeps, and the first of two lists that a dataclass keeps."""
    lists = cast("list[object]", kept) if isinstance(kept, list) else []
    names = cast("list[object]", lists[0]) if lists and isinstance(lists[0], list) else lists
    return [str(name) for name in names] if names and len(names) == count else None
