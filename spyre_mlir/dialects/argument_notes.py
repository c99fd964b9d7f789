"""Notes on the arguments of functions: attributes that the import writes and every level reads."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

NAME = "aten.name"
KIND = "aten.kind"
BOUNDS = "aten.bounds"

# Kinds of arguments that the host lays out ahead of time.
PREPARED_KINDS = ("parameter", "buffer", "constant")


def note_of(function: FuncOp, number: int, name: str) -> Attribute | None:
    """Return a note on an argument, None if there is none."""
    return None if function.arg_attrs is None else function.arg_attrs.data[number].data.get(name)


def kind_of(function: FuncOp, number: int) -> str | None:
    """Return the kind of an argument, None if that is not noted."""
    kind = note_of(function, number, KIND)
    return kind.data if isinstance(kind, StringAttr) else None


__all__ = ["BOUNDS", "KIND", "NAME", "PREPARED_KINDS", "kind_of", "note_of"]
