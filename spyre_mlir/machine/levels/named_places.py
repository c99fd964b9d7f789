"""Checks of the integers of a call: those that name places have one to name, those taken for zeros are zeros.

Decision: docs/decisions/0063-positions-are-compared.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from spyre_mlir.dialects.argument_notes import NAME, ZERO, NamedPlaces, argument_name, note_of, places_of
from spyre_mlir.errors import InputError, NoSuchPlaceError
from spyre_mlir.machine.arrays import Array, first_index, tensor_type
from spyre_mlir.machine.levels.index_steps import as_operand, index_of

_NONE: Mapping[str, int] = {}


def check_places(function: FuncOp, values: Callable[[int], Array | None], sizes: Mapping[str, int] = _NONE) -> None:
    """Check that the integers of arguments name places that are there, where operators take them for indices.

    Args:
        function: with notes on the arguments, if there is anything to check.
        values: gives the numbers of an argument; None if they are not to be had, and nothing is checked.
        sizes: values of the symbols of the program, by name.

    Raises:
        NoSuchPlaceError: one does not.
        InputError: the note is of another form.
    """
    for number in range(len(function.function_type.inputs.data)):
        for asked in places_of(function, number):
            _check(function, number, asked, values, sizes)


def _check(
    function: FuncOp,
    number: int,
    asked: NamedPlaces,
    values: Callable[[int], Array | None],
    sizes: Mapping[str, int],
) -> None:
    read = {name: _number_of(function, name) for name in asked.others}
    given = {n: found for n in (number, *read.values()) if (found := values(n)) is not None}
    if len(given) < len({number, *read.values()}):
        return
    operands = {n: as_operand(found, _element_of(function, n)) for n, found in given.items()}
    others = {name: operands[n] for name, n in read.items()}
    indices = operands[number] if asked.by is None else index_of(asked.by, operands[number], sizes, others)
    low, high = asked.limits(sizes)
    if not indices.size or (low <= int(indices.min()) and int(indices.max()) <= high):
        return
    wrong = asked.outside(indices, low, high)
    if wrong.any():
        *some, last = (argument_name(function, n) for n in dict.fromkeys((number, *read.values())))
        names = f"{', '.join(some)} and {last}" if some else last
        raise _error(asked, names, indices, first_index(wrong), low, high)


def _element_of(function: FuncOp, number: int) -> Attribute:
    """Return the type of the elements of an argument."""
    return tensor_type(function.function_type.inputs.data[number]).get_element_type()


def _number_of(function: FuncOp, name: str) -> int:
    for number in range(len(function.function_type.inputs.data)):
        if note_of(function, number, NAME) == StringAttr(name):
            return number
    raise InputError(f"a note on indices reads the argument '{name}', and the function has none of this name")


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
    number, taken = int(values[tuple(at)]), asked.taken(low, high)
    holds = "holds" if asked.by is None else "makes an index of" if not asked.others else "make an index of"
    return NoSuchPlaceError(
        f"{name} {holds} {number:,}{f' at {at}' if at else ''}, and {asked.op} takes {taken}",
        where=asked.at or None,
        hint="pass indices of entries that are there, or a tensor with more of them",
    )


__all__ = ["check_places", "check_zeros"]
