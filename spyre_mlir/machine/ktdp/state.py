"""State of a run of a KTIR program: shared by its cores, and the values of each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.ir import Block, Operation, SSAValue

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.ktdp.groups import Exchange
from spyre_mlir.machine.ktdp.liveness import Liveness
from spyre_mlir.machine.ktdp.memory import KtirMemory, Scratchpad
from spyre_mlir.machine.ktdp.regions import Clocks
from spyre_mlir.machine.ktdp.structured import destinations
from spyre_mlir.machine.ktdp.values import Data, Mask, known


@dataclass(frozen=True)
class Points:
    """A set of offsets of a tile op; it is the same in each of its runs.

    Args:
        extents: of its box.
        order: which dimension each axis of the tile walks.
        mask: which offsets count; None when all do.
    """

    extents: tuple[int, ...]
    order: tuple[int, ...]
    mask: Mask | None


@dataclass
class Machine:
    """State shared by all cores of a run.

    Args:
        grid: extents, the first fastest.
        device: device memory.
        scratchpads: one per core.
        exchange: what cores give each other.
        liveness: last uses in the function.
        points: the offsets of tile ops that ran.
    """

    grid: tuple[int, ...]
    device: KtirMemory
    scratchpads: list[Scratchpad]
    exchange: Exchange
    liveness: Liveness
    points: dict[Operation, Points] = field(default_factory=dict[Operation, Points])

    @property
    def cores(self) -> int:
        """Number of cores."""
        return prod(self.grid)


@dataclass
class CoreState:
    """The values of a core, and its progress relative to the other cores.

    Args:
        number: which one.
        machine: what it shares with the others.
    """

    number: int
    machine: Machine
    values: dict[SSAValue, Any] = field(default_factory=dict[SSAValue, Any])
    clocks: Clocks = field(init=False)
    turns: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def __post_init__(self) -> None:
        self.clocks = np.zeros(self.machine.cores, np.int64)
        self.clocks[self.number] = 1

    @property
    def place(self) -> tuple[int, ...]:
        """Coordinates in the grid."""
        rest, found = self.number, list[int]()
        for extent in self.machine.grid:
            rest, coordinate = divmod(rest, extent)
            found.append(coordinate)
        return tuple(found)

    def whole(self, value: SSAValue) -> int:
        """Return the value of an index."""
        data: Data = self.values[value]
        if data.defined is not None:
            known(data, value.owner if isinstance(value.owner, Operation) else _first(value.owner), "an index")
        return data.number

    def _settle(self, op: Operation, results: Sequence[Any]) -> None:
        """Take over results, and let go of what nobody needs any more."""
        gone = self.machine.liveness.dying.get(op, ())
        reused = destinations(op)
        for value in gone:
            if value in reused:
                self._forget(value)
        for value, result in zip(op.results, results, strict=True):
            self._bind(value, result, op)
        for value in gone:
            if value not in reused:
                self._forget(value)

    def _bury(self, op: Operation) -> None:
        for value in self.machine.liveness.dying.get(op, ()):
            self._forget(value)

    def _bind(self, value: SSAValue, result: Any, op: Operation) -> None:
        if value in self.values:
            self._forget(value)
        self.values[value] = result
        if isinstance(result, Data) and result.bytes:
            self._pad.hold(id(result), result.bytes, op)

    def _forget(self, value: SSAValue) -> None:
        result = self.values.pop(value, None)
        if isinstance(result, Data) and result.bytes:
            self._pad.release(id(result))

    @property
    def _pad(self) -> Scratchpad:
        return self.machine.scratchpads[self.number]


def _first(block: Block) -> Operation:
    op = block.first_op
    if op is None:
        raise UnsupportedError("a block without ops does not run")
    return op
