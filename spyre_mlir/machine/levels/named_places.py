"""Checks of the integers of a call: those that name places have one to name, those taken for zeros are zeros.

Decision: docs/decisions/0063-positions-are-compared.md
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.argument_notes import ZERO, NamedPlaces, note_of, places_of
from spyre_mlir.errors import InputError, NoSuchPlaceError
from spyre_mlir.machine.arrays import Array, first_index
from spyre_mlir.machine.levels.index_steps import index_of

_NONE: Mapping[str, int] = {}


def check_places(function: FuncOp, number: int, name: str, values: Array, sizes: Mapping[str, int] = _NONE) -> None:
    """Check that the integers of an argument name places that are there, where operators take them for indices.

    Args:
        function: with a note on the argument, if there is anything to check.
        number: of the argument.
        name: of the argument, for messages.
        values: its integers.
        sizes: values of the symbols of the program, by name.

    Raises:
        NoSuchPlaceError: one does not.
        InputError: the note is of another form.
    """
    given = values
    for asked in places_of(function, number) if given.size else ():
        low, high = asked.limits(sizes)
        values = given if asked.by is None else index_of(asked.by, given, sizes)
        if not values.size:
            continue
        if low <= int(values.min()) and int(values.max()) <= high:
            continue
        wrong = (values < low) | (values > high)
        if asked.but is not None:
            wrong &= values != asked.but
        if wrong.any():
            raise _error(asked, name, values, first_index(wrong), low, high)


def check_zeros(function: FuncOp, number: int, name: str, values: Array) -> None:
    """Check that the integers of an argument are zeros, where the program takes them for zeros.

    Args:
        function: with a note on the argument, if it does.
        number: of the argument.
        name: of the argument, for messages.
        values: its integers.

    Raises:
        InputError: one is not.
    """
    note = note_of(function, number, ZERO)
    if isinstance(note, StringAttr) and values.any():
        at = first_index(values != 0)
        raise InputError(
            f"{name} holds {int(values[tuple(at)]):,} at {at}, and was zero when the model was compiled: the program "
            f"leaves out the {note.data} that subtracts it",
            hint="compile the model with these weights",
        )


def _error(asked: NamedPlaces, name: str, values: Array, at: list[int], low: int, high: int) -> NoSuchPlaceError:
    taken = f"{low:,} to {high:,}" if low <= high else "none"
    taken += "" if asked.but is None else f", and {asked.but}"
    holds = "holds" if asked.by is None else "makes an index of"
    return NoSuchPlaceError(
        f"{name} {holds} {int(values[tuple(at)]):,}{f' at {at}' if at else ''}, and {asked.op} takes {taken}",
        where=asked.at or None,
        hint="pass indices of entries that are there, or a tensor with more of them",
    )


__all__ = ["check_places", "check_zeros"]
