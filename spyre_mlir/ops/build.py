"""Interface of composed bodies: calls of op-table entries on values of known type.

The same body runs three ways: to write the ops of a program (`decompose-aten`), to compute numbers (the machine at
the aten level), and to find the types of results (the verifier).
"""

from __future__ import annotations

from typing import Protocol

from spyre_mlir.ops.value import Argument, Caller, Operand, Value


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

    def rounded(self, value: Value) -> Value:
        """A value that eager also rounds to the element type before the next step."""
        ...

    def full(self, shape: tuple[int, ...], number: float, element: str) -> Value:
        """One number everywhere."""
        ...

    def iota(self, count: int, element: str, *, start: float = 0, step: float = 1) -> Value:
        """The vector start, start + step, … of `count` elements."""
        ...
