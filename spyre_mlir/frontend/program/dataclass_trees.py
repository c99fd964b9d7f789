"""Dataclasses among arguments and results: torch flattens them only during our own calls."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, cast

from spyre_mlir.frontend.program.tree_classes import is_tree_node, register_dataclass, unregister_dataclass
from spyre_mlir.frontend.torch_private import TreeSpec

# How many calls that are under way rely on a registration of ours.
_users: Counter[type] = Counter()
_lock = threading.RLock()


@contextmanager
def flat_dataclasses(*values: object) -> Generator[Callable[[object], None]]:
    """Let torch flatten the dataclasses in values, and those named in argument and result structures.

    Classes that somebody has registered stay as they are.

    Yields:
        What does the same for the dataclasses in another value, for as long.
    """
    held: set[type] = set()

    def see(value: object) -> None:
        for kind in set(_dataclasses(value)) - held:
            with _lock:
                if _users[kind] or not is_tree_node(kind):
                    if not _users[kind]:
                        register_dataclass(kind)
                    _users[kind] += 1
                    held.add(kind)

    try:
        for value in values:
            see(value)
        yield see
    finally:
        with _lock:
            for kind in held:
                _users[kind] -= 1
                if not _users[kind]:
                    unregister_dataclass(kind)


def _dataclasses(value: object) -> Iterator[type]:
    """The classes of all dataclass instances in a value, or of the dataclasses in a structure."""
    if isinstance(value, TreeSpec):
        kind = cast(Any, value).type
        if isinstance(kind, type) and is_dataclass(kind):
            yield kind
        inside: list[object] = list(value.children())
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value)
        inside = [getattr(value, f.name) for f in fields(value) if f.init]
    elif isinstance(value, Mapping):
        inside = list(cast("Mapping[object, object]", value).values())
    else:
        inside = list(cast("list[object]", value)) if isinstance(value, (list, tuple)) else []
    for part in inside:
        yield from _dataclasses(part)
