"""Exchange between cores: partial results by group, with the happens-before order they establish."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import AffineSetAttr
from xdsl.ir import Operation
from xdsl.ir.affine import AffineConstraintKind

from spyre_mlir.dialects.ktdp.affine import bounds_of
from spyre_mlir.dialects.ktdp.cores import InterTileProduceOp, InterTileReduceOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.ktdp.regions import Clocks
from spyre_mlir.machine.ktdp.values import Data, undefined


def holds(members: AffineSetAttr, core: int, group: int) -> bool:
    """Return whether a core is in a set `(i)[g]`."""
    for rule in members.data.constraints:
        value = (rule.lhs - rule.rhs).eval([core], [group])
        good = {
            AffineConstraintKind.ge: value >= 0,
            AffineConstraintKind.le: value <= 0,
            AffineConstraintKind.eq: value == 0,
        }
        if not good[rule.kind]:
            return False
    return True


@dataclass
class Exchange:
    """Partial results in transit.

    Args:
        cores: how many run.
    """

    cores: int
    sent: int = field(default=0, init=False)
    _sent: dict[tuple[Operation, int, int], dict[int, tuple[Data, Clocks]]] = field(
        default_factory=dict[tuple[Operation, int, int], dict[int, tuple[Data, Clocks]]]
    )
    _members: dict[tuple[AffineSetAttr, AffineSetAttr], dict[int, list[int]]] = field(
        default_factory=dict[tuple[AffineSetAttr, AffineSetAttr], dict[int, list[int]]]
    )

    def members(self, groups: AffineSetAttr, members: AffineSetAttr) -> dict[int, list[int]]:
        """Cores of each group.

        Raises:
            UnsupportedError: a core is in two groups.
        """
        key = (groups, members)
        if key not in self._members:
            box = bounds_of(groups.data)
            numbers = [g for g in range(box.low[0], box.high[0] + 1) if _obeys(g, groups)]
            found = {g: [core for core in range(self.cores) if holds(members, core, g)] for g in numbers}
            everyone = [core for cores in found.values() for core in cores]
            if len(set(everyone)) != len(everyone):
                raise UnsupportedError("a core in two groups of one exchange does not run", hint="make groups disjoint")
            self._members[key] = found
        return self._members[key]

    def group(self, op: InterTileProduceOp, core: int) -> int | None:
        """Return the group that a core produces for."""
        return _group_of(self.members(_groups(op), op.producer_tiles_per_group), core)

    def consumer_group(self, op: InterTileReduceOp, producer: InterTileProduceOp, core: int) -> int | None:
        """Return the group that a core receives from."""
        return _group_of(self.members(_groups(producer), op.consumer_tiles_per_group), core)

    def publish(self, op: InterTileProduceOp, turn: int, group: int, core: int, partial: Data, clocks: Clocks) -> None:
        """Send a partial result; its receivers also learn what the core has done so far."""
        known = np.array(clocks)
        known[core] += 1
        self._sent.setdefault((op, turn, group), {})[core] = (partial, known)
        self.sent += 1

    def ready(self, op: InterTileProduceOp, turn: int, group: int) -> bool:
        """Return whether all producers of a group have sent."""
        wanted = self.members(_groups(op), op.producer_tiles_per_group)[group]
        return set(wanted) == set(self._sent.get((op, turn, group), {}))

    def learn(self, op: InterTileProduceOp, turn: int, group: int, clocks: Clocks) -> None:
        """Take over the producers' knowledge."""
        for _, known in self._sent.get((op, turn, group), {}).values():
            np.maximum(clocks, known, out=clocks)

    def partials(self, op: InterTileProduceOp, turn: int, group: int) -> list[Data]:
        """Return the sent partial results, by core."""
        return [partial for _, (partial, _) in sorted(self._sent.get((op, turn, group), {}).items())]

    def nothing(self, op: InterTileReduceOp) -> Data:
        """Return the value of a core that is not a consumer: undefined."""
        return undefined(op.result.type)


def _groups(op: InterTileProduceOp) -> AffineSetAttr:
    return op.future.type.groups


def _obeys(group: int, groups: AffineSetAttr) -> bool:
    return holds(groups, group, 0)


def _group_of(members: dict[int, list[int]], core: int) -> int | None:
    return next((group for group, cores in members.items() if core in cores), None)
