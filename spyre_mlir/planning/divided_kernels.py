"""Kernels with their possible divisions over the cores, as plain data, and the predicted times of these."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from spyre_mlir.hw.cost import CostKind, Work, total_us
from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SPYRE, SpyreSpec

ELEMENT_BYTES = DL16.bits // 8
OUTSIDE = -1  # the number of a buffer that is in device memory whatever the plan


@dataclass(frozen=True, eq=False)
class DividedKernel:
    """One division of a kernel.

    Attributes:
        splits: slices of every loop.
        work: what the kernel then does, all operands in device memory.
        views: per operand, the slices that cores see of it; None where these are no slices that a scratchpad can hold.
        sizes: per operand, bytes of one core's slice.
        in_place: inputs whose place the result may take.
    """

    splits: Mapping[str, int]
    work: Work
    views: tuple[Hashable | None, ...]
    sizes: tuple[int, ...]
    in_place: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Kernel:
    """A kernel of the sequence.

    Attributes:
        operands: numbers of its buffers, the result last.
        candidates: the divisions to choose from.
        copied: inputs in device memory that are no buffers of the sequence, and may be copied to the scratchpads.
        required: buffers among its operands that have to be in the scratchpads.
        wished: those of them that may be in device memory if no plan has them in the scratchpads.
        throughout: buffers among its operands that hold numbers before the first kernel, so that they take room there.
    """

    operands: tuple[int, ...]
    candidates: tuple[DividedKernel, ...]
    copied: frozenset[int] = frozenset()
    required: frozenset[int] = frozenset()
    wished: frozenset[int] = frozenset()
    throughout: frozenset[int] = frozenset()


class Prices:
    """Predicted times of kernels, each computed once.

    Attributes:
        parameters: the numbers of a profile.
        spec: the machine.
    """

    def __init__(self, parameters: CostParameters = CALIBRATED, spec: SpyreSpec = SPYRE) -> None:
        """Know no time yet."""
        self.parameters, self.spec = parameters, spec
        self._us: dict[tuple[DividedKernel, frozenset[int]], float] = {}
        self._floors: dict[tuple[DividedKernel, frozenset[int]], float] = {}
        self._all_floors: dict[tuple[tuple[DividedKernel, ...], frozenset[int]], Sequence[float]] = {}
        self._least: dict[tuple[tuple[DividedKernel, ...], tuple[frozenset[Hashable], ...]], float] = {}
        self._copies: dict[tuple[DividedKernel, int], float] = {}

    def us(self, candidate: DividedKernel, local: frozenset[int]) -> float:
        """Return the time of a kernel that is divided so, with some operands in the scratchpads."""
        key = candidate, local
        if (known := self._us.get(key)) is None:
            known = self._us[key] = total_us(candidate.work, self.parameters, local=local)
        return known

    def floor_us(self, candidate: DividedKernel, local: frozenset[int]) -> float:
        """Return a time that none is below in which some of these operands are in the scratchpads, or all."""
        key = candidate, local
        if (known := self._floors.get(key)) is None:
            known = total_us(candidate.work, self.parameters, scratchpad=False, local=local)
            self._floors[key] = known
        return known

    def floors_us(self, candidates: tuple[DividedKernel, ...], local: frozenset[int]) -> Sequence[float]:
        """Return the same for each division of a kernel; equal kernels share theirs."""
        key = candidates, local
        if (known := self._all_floors.get(key)) is None:
            known = self._all_floors[key] = [self.floor_us(candidate, local) for candidate in candidates]
        return known

    def least_us(self, candidates: tuple[DividedKernel, ...], possible: tuple[frozenset[Hashable], ...]) -> float:
        """Return a time that no division of a kernel is below; equal kernels share theirs.

        Args:
            candidates: its divisions.
            possible: per operand, the slices in which the scratchpads may hold it.
        """
        key = candidates, possible
        if (known := self._least.get(key)) is None:
            held = [frozenset([n for n, s in enumerate(possible) if c.views[n] in s]) for c in candidates]
            known = self._least[key] = min([self.floor_us(*pair) for pair in zip(candidates, held, strict=True)])
        return known

    def copy_us(self, candidate: DividedKernel, operand: int) -> float:
        """Return the time to copy an operand to the scratchpads in the slices that a kernel sees."""
        key = candidate, operand
        if (known := self._copies.get(key)) is None:
            known = self._copies[key] = total_us(_copy(candidate, operand), self.parameters)
        return known


def _copy(candidate: DividedKernel, operand: int) -> Work:
    source = replace(candidate.work.operands[operand], readers=1, small=False, local=False)
    return Work(
        kind=CostKind.POINTWISE,
        cores=candidate.work.cores,
        elements=source.needed // ELEMENT_BYTES,
        operands=(source, replace(source, written=True, local=True)),
    )


def with_local(work: Work, local: frozenset[int]) -> Work:
    """Return the work with these operands in the scratchpads, and no others."""
    operands = tuple(
        [o if o.local == (n in local) else replace(o, local=not o.local) for n, o in enumerate(work.operands)]
    )
    return replace(work, operands=operands)


__all__ = ["ELEMENT_BYTES", "OUTSIDE", "DividedKernel", "Kernel", "Prices", "with_local"]
