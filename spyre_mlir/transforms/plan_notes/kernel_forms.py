"""Kernels in whose place others stand, and how the same comes about once more in another copy of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from spyre_mlir.dialects.spyre import kernel

Made = Sequence[Sequence[kernel.KernelOp]]
Again = Callable[[Sequence[kernel.KernelOp]], Made]


@dataclass
class KernelForms:
    """The kernels of a block before any loop, as far as others have not taken their place.

    Attributes:
        kernels: in the order of the block.
    """

    kernels: list[kernel.KernelOp]
    _steps: list[tuple[list[int], Again]] = field(default_factory=list[tuple[list[int], Again]])

    def became(self, wholes: Sequence[kernel.KernelOp], made: Made, again: Again) -> None:
        """Note the kernels that stand for others.

        Args:
            wholes: the kernels, in their order.
            made: by kernel, those that stand where it stood.
            again: does the same to the same kernels of another copy.
        """
        places = [self.kernels.index(op) for op in wholes]
        _replace(self.kernels, places, made)
        self._steps.append((places, again))

    def again(self, kernels: Sequence[kernel.KernelOp]) -> list[kernel.KernelOp]:
        """Do the same to the kernels of another copy, and return those that it has then."""
        found = list(kernels)
        for places, again in self._steps:
            _replace(found, places, again([found[place] for place in places]))
        return found


def _replace(kernels: list[kernel.KernelOp], places: Sequence[int], made: Made) -> None:
    for place, ops in sorted(zip(places, made, strict=True), reverse=True, key=lambda pair: pair[0]):
        kernels[place : place + 1] = ops


__all__ = ["KernelForms"]
