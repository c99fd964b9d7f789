"""Interface of composed bodies: calls of op-table entries on values of known type.

The same body runs three ways: to write the ops of a program (`decompose-aten`), to compute numbers (the machine at
the aten level), and to find the types of results (the verifier).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.value import Argument, Caller, Operand, Value


class LoopBody(Protocol):
    """The body of a loop, for one entry of each sliced tensor."""

    def __call__(
        self, b: Build, carried: Sequence[Value], entries: Sequence[Value], others: Sequence[Value]
    ) -> tuple[Sequence[Value], Sequence[Value]]:
        """Gives the values that it carries on, and its entries, tensors of one entry along dimension 0."""
        ...


class Build(Caller, Protocol):
    """Caller of other table entries on values of the program; see `Caller.call`."""

    def call_all(self, overload: str, *tensors: Operand, **attributes: Argument) -> tuple[Value, ...]:
        """Adds one op as `call` does, and gives all of its results."""
        ...

    def cast(self, value: Value, element: str = "", *, like: Value | None = None) -> Value:
        """A value as numbers of an element type, given by its MLIR name or by a value that has it."""
        ...

    def bounds(self, value: Value) -> tuple[int, int] | None:
        """Return the least and the largest integer that a value may be, if anything is known but its type."""
        ...

    def repeated(self, value: Value) -> Ints:
        """Return the dimensions along which all entries are known to be equal, in ascending order."""
        ...

    def rounded(self, value: Value) -> Value:
        """A value that eager also rounds to the element type before the next step."""
        ...

    def loop(
        self,
        body: LoopBody,
        carried: Sequence[Value],
        sliced: Sequence[Value],
        others: Sequence[Value],
        *,
        backwards: bool = False,
    ) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Loops over the entries of tensors: gives the values carried in the end, and the entries of all trips, joined.

        Args:
            body: reads nothing but what it is given.
            carried: the values that it begins with.
            sliced: tensors with equally many entries along dimension 0, at least one.
            others: given to all trips.
            backwards: whether the first trip takes and gives the last entries.
        """
        ...

    def full(self, shape: tuple[int, ...], number: float, element: str) -> Value:
        """One number everywhere."""
        ...

    def iota(self, count: int, element: str, *, start: float = 0, step: float = 1) -> Value:
        """The vector start, start + step, … of `count` elements."""
        ...
