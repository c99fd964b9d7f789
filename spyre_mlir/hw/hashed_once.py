"""Values whose hash is computed once, because they are the keys of caches again and again."""

from __future__ import annotations

from typing import Any, TypeVar, cast

_Value = TypeVar("_Value")


def hashed_once(kind: type[_Value]) -> type[_Value]:
    """Decorator: objects of an immutable class keep their hash.

    The hash is no field, so equality, `replace` and text are as before. It is kept in the object's dictionary and would
    be pickled with it, so this is for classes that never leave the process.
    """
    compute = kind.__hash__

    def hash_once(self: Any) -> int:
        try:
            return self._hash
        except AttributeError:
            vars(self)["_hash"] = made = compute(self)
            return made

    cast(Any, kind).__hash__ = hash_once
    return kind


__all__ = ["hashed_once"]
