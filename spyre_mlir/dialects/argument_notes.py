"""Notes on the arguments of functions: attributes that the import writes and every level reads.

Integers that operators of the model take for indices have a note on the places that they have to name:

```mlir
func.func @main(%i: tensor<3xi64> {aten.places = [{op = "aten.gather", at = "model.py:12", size = 5 : i64}]}, …)
```
The device compares an index with every place, and finds none for an index outside. So the note is checked at every
call, by the host, at all levels. Where the program computes indices from the argument, `by` has the steps, each with
its operator, the type of its result and its arguments; ``"%0"`` is the argument, ``"%1"`` the first result, and
``"@name"`` another argument:

```mlir
{op = "aten.gather", at = "a.py:7", size = 5 : i64, by = [{call = "aten.mul", as = i64, self = "%0", other = 2 : i64}]}
{op = "aten.gather", at = "a.py:8", size = 5 : i64, by = [{call = "aten.add", as = i64, self = "%0", other = "@j"}]}
```

Floating-point inputs and results of a program may have the layout that torch-spyre gives a tensor on the card,
``{aten.layout = "default"}``; without the note they lie as their readers like it.

Decision: docs/decisions/0063-positions-are-compared.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue

from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.dialects.size_expressions import evaluate
from spyre_mlir.errors import InputError

NAME = "aten.name"
KIND = "aten.kind"
BOUNDS = "aten.bounds"
COUNTS = "aten.counts"  # of a constant vector of the integers 0, 1, 2, and so on
ZERO = "aten.zero"  # of integers that the program takes for zeros: the operator that subtracted them
BITS = "aten.bits"  # of a weight of 8-bit integers: how many bits its numbers need when it is imported
MUTATES = "aten.mutates"
REUSES = "aten.reuses"  # of a result: the input whose memory on the card it takes
PLACES = "aten.places"
WEIGHT = "aten.weight"  # of a parameter or a large buffer that `torch.compile` hands over at every call
LAYOUT = "aten.layout"

# In front of the name of another argument than the one that has the note, where a step reads it.
OF_ANOTHER = "@"

# The layout of a tensor that torch-spyre has placed.
DEFAULT = "default"

# Kinds of arguments that the host lays out ahead of time.
PARAMETER = "parameter"
PREPARED_KINDS = (PARAMETER, "buffer", "constant")


def note_of(function: FuncOp, number: int, name: str) -> Attribute | None:
    """Return a note on an argument, None if there is none."""
    return None if function.arg_attrs is None else function.arg_attrs.data[number].data.get(name)


def argument_name(function: FuncOp, number: int) -> str:
    """Return the name of an argument in messages: its ``aten.name``, else its number."""
    name = note_of(function, number, NAME)
    return f"argument {number}, '{name.data}'" if isinstance(name, StringAttr) else f"argument {number}"


def kind_of(function: FuncOp, number: int) -> str | None:
    """Return the kind of an argument, None if that is not noted; an input that is a weight counts as a parameter."""
    if note_of(function, number, WEIGHT) is not None:
        return PARAMETER
    kind = note_of(function, number, KIND)
    return kind.data if isinstance(kind, StringAttr) else None


def new_values(function: FuncOp) -> dict[int, int]:
    """Return the numbers of arguments that the function writes, with those of the results that are their new values."""
    return _named_arguments(function, MUTATES)


def _named_arguments(function: FuncOp, kind: str) -> dict[int, int]:
    """Arguments that notes of results name, with the numbers of these results."""
    names = {note_of(function, number, NAME): number for number in range(len(function.function_type.inputs))}
    notes = () if function.res_attrs is None else function.res_attrs.data
    found = ((note.data.get(kind), number) for number, note in enumerate(notes))
    return {names[old]: number for old, number in found if old is not None and old in names}


def overwritten(function: FuncOp) -> dict[int, int]:
    """Return the numbers of arguments whose memory on the card their new values take, with those of these results.

    These are arguments that the function writes, and inputs that results are noted to reuse.
    """
    return _named_arguments(function, REUSES) | new_values(function)


def note_reuses(function: FuncOp, reused: Mapping[int, int]) -> None:
    """Note that results take the memory of inputs, both by their numbers, the input first."""
    count = len(function.function_type.outputs)
    entries = [DictionaryAttr({})] * count if function.res_attrs is None else list(function.res_attrs.data)
    for argument, result in reused.items():
        if isinstance(name := note_of(function, argument, NAME), StringAttr):
            entries[result] = DictionaryAttr({**entries[result].data, REUSES: name})
    function.res_attrs = ArrayAttr(entries)


def is_prepared(function: FuncOp, value: SSAValue) -> bool:
    """Return whether a value is an argument that the host lays out ahead of time, and that the function only reads."""
    number = value.index if isinstance(value, BlockArgument) else -1
    return number >= 0 and kind_of(function, number) in PREPARED_KINDS and number not in new_values(function)


def counts_up(value: SSAValue) -> bool:
    """Return whether a value is an argument with the note that it has the integers 0, 1, 2, and so on."""
    function = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    number = value.index if isinstance(value, BlockArgument) else -1
    return isinstance(function, FuncOp) and note_of(function, number, COUNTS) is not None


def placed_arguments(function: FuncOp) -> set[int]:
    """Return the numbers of arguments that have the default layout."""
    return _placed(function.arg_attrs)


def placed_results(function: FuncOp) -> set[int]:
    """Return the numbers of results that have the default layout."""
    return _placed(function.res_attrs)


def _placed(notes: ArrayAttr[DictionaryAttr] | None) -> set[int]:
    entries = () if notes is None else notes.data
    return {number for number, note in enumerate(entries) if note.data.get(LAYOUT) == StringAttr(DEFAULT)}


def note_placed(function: FuncOp, arguments: Iterable[int], results: Iterable[int]) -> None:
    """Note arguments and results, by their numbers, that have the default layout."""
    taken, given = function.function_type.inputs.data, function.function_type.outputs.data
    function.arg_attrs = _with_placed(function.arg_attrs, len(taken), set(arguments))
    function.res_attrs = _with_placed(function.res_attrs, len(given), set(results))


def _with_placed(
    notes: ArrayAttr[DictionaryAttr] | None, count: int, placed: set[int]
) -> ArrayAttr[DictionaryAttr] | None:
    if not placed:
        return notes
    entries = [DictionaryAttr({})] * count if notes is None else list(notes.data)
    for number in placed:
        entries[number] = DictionaryAttr({**entries[number].data, LAYOUT: StringAttr(DEFAULT)})
    return ArrayAttr(entries)


@dataclass(frozen=True)
class NamedPlaces:
    """Demand of one operator on the integers of an argument.

    Attributes:
        op: the operator, as ``aten.gather``.
        at: its place in the model, for messages; empty if that is not known.
        size: how many places there are.
        from_end: how often the size is added to negative numbers: 0 if an operator takes none.
        plus: what the program adds to the integers before the operator has them.
        but: a number that names no place, and that the operator passes over.
        by: steps that make the integers of those of the argument, and of other arguments; None if they are its own.
    """

    op: str
    at: str
    size: int | SizeAttr
    from_end: int = 0
    plus: int = 0
    but: int | None = None
    by: ArrayAttr[Attribute] | None = None

    @property
    def others(self) -> list[str]:
        """Names of the other arguments that the steps read."""
        return [] if self.by is None else list(dict.fromkeys(_read_in(self.by)))

    @property
    def rule(self) -> NamedPlaces:
        """The demand without the operator that makes it."""
        return replace(self, op="", at="")

    def limits(self, sizes: Mapping[str, int]) -> tuple[int, int]:
        """Return the least and the largest integer that names a place; the largest is below the least if none does.

        Args:
            sizes: values of the symbols of the program, by name.
        """
        size = self.size if isinstance(self.size, int) else int(evaluate(self.size.text.data, sizes))
        return -self.from_end * size - self.plus, size - 1 - self.plus

    def taken(self, low: int, high: int) -> str:
        """Return the integers within limits in words, for messages."""
        numbers = f"{low:,} to {high:,}" if low <= high else "none"
        return numbers if self.but is None else f"{numbers}, and {self.but}"

    def outside(self, indices: Any, low: int, high: int) -> Any:
        """Return which of some indices, an array of numpy or a tensor, name no place within limits, as truth values."""
        found = (indices < low) | (indices > high)
        return found if self.but is None else found & (indices != self.but)

    def attribute(self) -> DictionaryAttr:
        """Return the entry of a note."""
        said: dict[str, object] = {"op": self.op, "at": self.at, "size": self.size}
        said |= {"from_end": self.from_end} if self.from_end else {}
        said |= {"plus": self.plus} if self.plus else {}
        said |= {} if self.but is None else {"but": self.but}
        said |= {} if self.by is None else {"by": self.by}
        return DictionaryAttr({name: to_attribute(value) for name, value in said.items()})

    @classmethod
    def read(cls, entry: Attribute) -> NamedPlaces:
        """Return the demand that an entry of a note states.

        Raises:
            InputError: it is not of this form.
        """
        said: Mapping[str, Attribute] = entry.data if isinstance(entry, DictionaryAttr) else {}
        words = [said.get(name) for name in ("op", "at")]
        size = said.get("size")
        numbers = {name: said[name] for name in ("from_end", "plus", "but") if name in said}
        known = all(isinstance(word, StringAttr) for word in words) and isinstance(size, IntegerAttr | SizeAttr)
        by = said.get("by")
        known = known and isinstance(by, ArrayAttr | None)
        if not known or not all(isinstance(number, IntegerAttr) for number in numbers.values()):
            raise InputError(
                f"an entry of {PLACES} is {entry}",
                hint='an entry is as {op = "aten.gather", at = "model.py:12", size = 5 : i64}',
            )
        op, at = (cast(StringAttr, word).data for word in words)
        given = {name: cast("IntegerAttr", number).value.data for name, number in numbers.items()}
        places = size if isinstance(size, SizeAttr) else cast("IntegerAttr", size).value.data
        return cls(op, at, places, **given, by=cast("ArrayAttr[Attribute] | None", by))


def _read_in(value: Attribute) -> Iterator[str]:
    """Names of arguments in a step, or a value of it."""
    if isinstance(value, StringAttr) and value.data.startswith(OF_ANOTHER):
        yield value.data.removeprefix(OF_ANOTHER)
    elif isinstance(value, DictionaryAttr):
        for part in value.data.values():
            yield from _read_in(part)
    elif isinstance(value, ArrayAttr):
        for item in cast("ArrayAttr[Attribute]", value):
            yield from _read_in(item)


def read_together(places: Mapping[str, Attribute]) -> set[str]:
    """Return the names of the arguments that indices are computed from together.

    Args:
        places: notes of arguments, by name.
    """
    read = {name: set(_read_in(note)) for name, note in places.items()}
    return {name for name, others in read.items() if others}.union(*read.values())


def places_attribute(places: Sequence[NamedPlaces]) -> ArrayAttr[DictionaryAttr]:
    """Return the note on an argument."""
    return ArrayAttr([one.attribute() for one in places])


def places_of(function: FuncOp, number: int) -> list[NamedPlaces]:
    """Return the demands on the integers of an argument; none if there is no note.

    Raises:
        InputError: the note is of another form.
    """
    note = note_of(function, number, PLACES)
    if note is None:
        return []
    entries = cast("ArrayAttr[Attribute]", note).data if isinstance(note, ArrayAttr) else (note,)
    return [NamedPlaces.read(entry) for entry in entries]


__all__ = [
    "BITS",
    "BOUNDS",
    "COUNTS",
    "DEFAULT",
    "KIND",
    "LAYOUT",
    "MUTATES",
    "NAME",
    "OF_ANOTHER",
    "PLACES",
    "PREPARED_KINDS",
    "REUSES",
    "WEIGHT",
    "ZERO",
    "NamedPlaces",
    "argument_name",
    "counts_up",
    "is_prepared",
    "kind_of",
    "new_values",
    "note_of",
    "note_placed",
    "note_reuses",
    "overwritten",
    "placed_arguments",
    "placed_results",
    "places_attribute",
    "places_of",
    "read_together",
]
