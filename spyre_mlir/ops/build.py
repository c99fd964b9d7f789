"""What the body of a composed operation may do: call other entries of the op table on values it knows by type only.

The same body runs three ways: to write the ops of a program (`decompose-aten`), to compute numbers (the machine at
the aten level), and to find the types of results (the verifier).
"""

from __future__ import annotations

from typing import Any, Protocol


class Build(Protocol):
    """What a decomposition may do: call other table entries on values of the program."""

    def call(self, overload: str, *tensors: Any, **attributes: Any) -> Any:
        """Adds one op and returns its result, or a tuple of results; a Python number may stand for a tensor.

        Args:
            overload: ATen's name, ``.default`` dropped, e.g. ``add.Tensor``.
            tensors: the tensor arguments, in the order of the entry.
            attributes: the others, by name.
        """
        ...

    def shape(self, value: Any) -> tuple[int, ...]:
        """Shape of a value."""
        ...

    def element(self, value: Any) -> str:
        """Element type of a value by its MLIR name: ``f16``, ``i64``, ``i1``, …; "" for a Python number."""
        ...

    def is_bool(self, value: Any) -> bool:
        """Whether a value holds booleans."""
        ...

    def cast(self, value: Any, element: str = "", *, like: Any = None) -> Any:
        """A value as numbers of an element type, given by its MLIR name or by a value that has it."""
        ...

    def rounded(self, value: Any) -> Any:
        """A value that eager, too, rounds to the element type before it goes on: what a step is taken of."""
        ...

    def full(self, shape: tuple[int, ...], number: float, element: str) -> Any:
        """One number everywhere."""
        ...

    def iota(self, count: int, element: str, *, start: float = 0, step: float = 1) -> Any:
        """The vector start, start + step, … of `count` elements."""
        ...
