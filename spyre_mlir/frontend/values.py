"""The tensors that belong to a program, as the rest of the package takes them."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import Any

from numpy.typing import NDArray

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.program import Program
from spyre_mlir.frontend.reference import to_numpy

Array = NDArray[Any]


class HostValues(MutableMapping[str, Array]):
    """The model's own tensors as numpy arrays, made when they are asked for, so that weights are in memory once.

    What calls may change is copied at once; a parameter is read from the model's tensor every time.
    """

    def __init__(self, program: Program) -> None:
        """Copies everything but parameters."""
        parameters = {a.name for a in program.arguments if a.kind == "parameter" and not a.mutated}
        self._tensors = program.values
        self._copies = {name: self._made(name) for name in program.values if name not in parameters}

    def _made(self, name: str) -> Array:
        return to_numpy(self._tensors[name])

    def __getitem__(self, name: str) -> Array:
        """The tensor; a parameter's array is made anew."""
        return self._copies[name] if name in self._copies else self._made(name)

    def __setitem__(self, name: str, value: Array) -> None:
        """A new value from here on."""
        self._copies[name] = value

    def __delitem__(self, name: str) -> None:
        """Not possible: the program needs all of them."""
        raise InputError(f"the program needs its tensor '{name}'")

    def __iter__(self) -> Iterator[str]:
        """Names in the order of the program."""
        return iter(self._tensors)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        """Whether there is a tensor of this name; makes none."""
        return name in self._tensors
