"""Notes on the arguments of functions: attributes that the import writes and every level reads."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

NAME = "aten.name"
KIND = "aten.kind"
BOUNDS = "aten.bounds"
MUTATES = "aten.mutates"

# Kinds of arguments that the host lays out ahead of time.
PREPARED_KINDS = ("parameter", "buffer", "constant")


def note_of(function: FuncOp, number: int, name: str) -> Attribute | None:
    """Return a note on an argument, None if there is none."""
    return None if function.arg_attrs is None else function.arg_attrs.data[number].data.get(name)


def kind_of(function: FuncOp, number: int) -> str | None:
    """Return the kind of an argument, None if that is not noted."""
    kind = note_of(function, number, KIND)
    return kind.data if isinstance(kind, StringAttr) else None


def new_values(function: FuncOp) -> dict[int, int]:
    """Return the numbers of arguments that the function writes, with those of the results that are their new values."""
    names = {note_of(function, number, NAME): number for number in range(len(function.function_type.inputs))}
    notes = () if function.res_attrs is None else function.res_attrs.data
    return {
        names[old]: n for n, note in enumerate(notes) if (old := note.data.get(MUTATES)) in names and old is not None
    }


__all__ = ["BOUNDS", "KIND", "MUTATES", "NAME", "PREPARED_KINDS", "kind_of", "new_values", "note_of"]
