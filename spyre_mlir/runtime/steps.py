"""Division of a program's launches into steps that a card can run alone.

A card shows what is in its device memory, not in the scratchpads. A step is a run of launches that hand nothing to
another step through a scratchpad: mostly one kernel. Every stretch of device memory that it touches is one argument of
the step's own bundle, so that the results of all its kernels can be seen, also those in what was the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from spyre_mlir.dialects.superdsc.model.keys import LX
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.machine.bundle.external_bundle import ExternalLaunch

# Formats whose elements a transfer of torch-spyre makes from a tensor of torch, in the order of the tensor: the element
# type of that tensor. torch-spyre csrc/types_mapping.h; certain.
HOST_TYPES = {"SEN169_FP16": np.dtype(np.float16), "IEEE_FP32": np.dtype(np.float32)}


@dataclass(frozen=True)
class Stretch:
    """Device memory that a step touches, whole sticks of one format.

    Attributes:
        low: first byte.
        high: one past the last byte.
        format: of its elements.
    """

    low: int
    high: int
    format: str

    @property
    def elements(self) -> int:
        """How many elements it holds."""
        return (self.high - self.low) // HOST_TYPES[self.format].itemsize


@dataclass(frozen=True)
class CardStep:
    """Launches that a card runs as one bundle.

    Attributes:
        first: number of the first launch in the program.
        launches: in order.
    """

    first: int
    launches: tuple[ExternalLaunch, ...]

    @property
    def name(self) -> str:
        """The name of its first launch, and of the last if there are several."""
        names = [launch.name for launch in self.launches]
        return names[0] if len(names) == 1 else f"{names[0]}-{names[-1]}"

    @property
    def last(self) -> int:
        """Number of the last launch in the program."""
        return self.first + len(self.launches) - 1

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """Device memory that its launches touch, by address."""
        spans: list[tuple[int, int, str]] = []
        for launch in self.launches:
            for index, operand in enumerate(launch.view.operands):
                if operand.component != LX:
                    sticks = launch.sticks(index)
                    low, high = int(sticks[0]) * STICK_BYTES, (int(sticks[-1]) + 1) * STICK_BYTES
                    spans.append((low, high, operand.format))
        found: list[Stretch] = []
        for low, high, form in sorted(spans):
            if found and low < found[-1].high:
                last = found[-1]
                mixed = form if form == last.format else f"{last.format} and {form}"
                found[-1] = Stretch(last.low, max(high, last.high), mixed)
            else:
                found.append(Stretch(low, high, form))
        return tuple(found)

    @cached_property
    def obstacle(self) -> str:
        """Return why a card cannot be given the step; empty if it can."""
        for launch in self.launches:
            for operand in launch.view.operands:
                if operand.component != LX and not operand.symbolic:
                    return "its addresses are numbers; compile with addresses='symbolic'"
            if any(self._stretch_of(address) is None for address in launch.symbols.values()):
                return "a symbol is a size or lies in no tensor"
        if not self.stretches:
            return "it touches scratchpads only"
        odd = next((s.format for s in self.stretches if s.format not in HOST_TYPES), None)
        return f"no published transfer gives a tensor of {odd}" if odd is not None else ""

    def _stretch_of(self, address: int) -> int | None:
        return next((n for n, s in enumerate(self.stretches) if s.low <= address < s.high), None)

    def place(self, address: int) -> tuple[int, int]:
        """Return the number of the stretch that an address is in, and its offset there.

        Raises:
            ValueError: it is in none.
        """
        number = self._stretch_of(address)
        if number is None:
            raise ValueError(f"{address:#x} lies in no tensor of the step")
        return number, address - self.stretches[number].low


def card_steps(launches: Sequence[ExternalLaunch]) -> list[CardStep]:
    """Divide launches into the shortest steps that hand nothing on through a scratchpad."""
    starts = set(range(len(launches)))
    written: list[tuple[int, frozenset[int]]] = []
    for number, launch in enumerate(launches):
        last = len(launch.view.operands) - 1
        for index, operand in enumerate(launch.view.operands):
            if operand.component != LX:
                continue
            sticks = frozenset(launch.sticks(index).tolist())
            if index < last:
                earliest = min((n for n, made in written if made & sticks), default=number)
                starts -= set(range(earliest + 1, number + 1))
            else:
                written = [(n, made - sticks) for n, made in written]
                written = [(n, made) for n, made in written if made] + [(number, sticks)]
    bounds = [*sorted(starts), len(launches)]
    return [CardStep(first, tuple(launches[first:end])) for first, end in pairwise(bounds)]


__all__ = ["HOST_TYPES", "CardStep", "Stretch", "card_steps"]
