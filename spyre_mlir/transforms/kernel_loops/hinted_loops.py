"""Loops that hints ask for: around the kernels with the hint, and those behind them that run quicker in the loop.

The loop begins with the first kernel that asks for it, and has at least the kernels in a row that ask for the same.
What is not named has no loop. Which of two loops is the outer one, and where the loop ends, is decided by predicted
time.

Decision: docs/decisions/0183-loops-by-hint.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf, prod

from xdsl.ir import Block

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.hints import HintError
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.group_loops import GroupLoops
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow, ops_from
from spyre_mlir.transforms.kernel_loops.row_loops import pieces_of, row_loops
from spyre_mlir.transforms.kernel_loops.running_sums import most_trips
from spyre_mlir.transforms.kernel_loops.tiled_body import TiledBody
from spyre_mlir.transforms.kernel_loops.trials import InnerLoop, Trial, cuts
from spyre_mlir.transforms.kernel_plans.divided_blocks import kernels_in
from spyre_mlir.transforms.utils.hints import hinted_place, hinted_tile
from spyre_mlir.transforms.utils.kernels.loops import whole_loops

MOST_ENDS = 6  # places where a loop may end that are tried
MOST_LOOPS = 2  # inside each other
MOST_SHOWN = 12  # numbers of trips in a message
HINTED = "a hint asks for it"
NOT_IN_ORDER = "its blocks are not side by side in every operand"


def put_hinted_loops(block: Block, builder: GroupLoops) -> float:
    """Put kernels into the loops that their hints ask for, and return the predicted time of all loops, in us.

    Raises:
        HintError: a kernel cannot run in such a loop.
        LoweringError: no division of a kernel in the loop is legal.
    """
    total_us = 0.0
    for op in kernels_in(block):
        if op.parent_block() is not block:
            continue  # in the loop of a kernel before it
        trips = {name: n for name, n in hinted_tile(op).items() if n > 1}
        if trips:
            _check(op, trips, builder.choices.spec)
            us, quickest = _quickest(op, trips, builder)
            builder.put(quickest, us, HINTED)
            total_us += us
    return total_us


def _quickest(op: kernel.KernelOp, trips: Mapping[str, int], builder: GroupLoops) -> tuple[float, Trial]:
    """The quickest of the loops that a hint allows, with its time."""
    trials = [trial for group in grow(op, ops_from(op.next_op), builder.rows) for trial in _trials(group, trips)]
    if not trials:
        raise _refused(op, trips, builder.choices.spec, _why_none(op, trips))
    alone = {other: _usual_us(other, builder) for trial in trials for other in trial.group.ops}
    best: tuple[float, float, Trial] | None = None
    for trial in trials:
        inside = trial.group.ops
        timed = replace(trial, usual_us=sum(alone[other] for other in inside))
        us = builder.us(trial, inf)
        builder.record.loops.append(replace(timed.told(us, inf), hinted=True))
        rest = sum(alone[other] for other in alone if other not in inside)
        if us is not None and (best is None or us + rest < best[0]):
            best = us + rest, us, timed
    if best is None:
        builder.check(trials[0])
        raise _refused(
            op, trips, builder.choices.spec, "no division of the kernels in the loop keeps what hints ask for"
        )
    return best[1:]


def _why_none(op: kernel.KernelOp, trips: Mapping[str, int]) -> str:
    """Why no loop around a kernel is possible, although each of them would be."""
    whole = [value for value in op.operands if hinted_place(value) == "lx"]
    if not whole:
        return f"the kernel has no loop over {' inside of one over '.join(trips)}"
    makers = [u.operation for u in whole[0].uses if isinstance(u.operation, kernel.KernelOp)]
    maker = next(other for other in makers if other.output is whole[0])
    return f"a hint wants all of what {maker.function_name} makes in LX, and loops have a part of it per trip"


def _usual_us(op: kernel.KernelOp, builder: GroupLoops) -> float:
    """The time of a kernel by itself, which stays as it is; infinite if it cannot be divided."""
    space, choices = op.space, builder.choices
    try:
        choices.divide(op)
        return choices.usual_us(op, frozenset())
    except (LoweringError, HintError):
        return inf
    finally:
        op.space = space


def _trials(group: RowGroup, trips: Mapping[str, int]) -> Iterator[Trial]:
    """The loops around the first kernels of a group that a hint of the first one allows."""
    outer = group.loops[0]
    if outer not in trips:
        return
    inner = next((name for name in trips if name != outer), None)
    count, asking = _allowed(group, trips[outer], trips)
    if count == 0:
        return
    whole = group.first(count)
    ends = sorted({asking, *(n for n in cuts(whole) if n > asking)})
    for end in [*ends[: MOST_ENDS - 1], *ends[MOST_ENDS - 1 :][-1:]]:
        part = whole.first(end)
        if part.is_summed and (inner is not None or trips[outer] > most_trips(part.ops[-1], trips[outer])):
            continue
        loop = None if inner is None else InnerLoop(trips[inner], [inner] * end)
        trial = Trial(part, (TripSpan.of_all(trips[outer]),), loop, 0.0, 0.0)
        if not _asks_for_whole(part) and (loop is None or _agrees(trial, loop)):
            yield trial


def _allowed(group: RowGroup, trips: int, wanted: Mapping[str, int]) -> tuple[int, int]:
    """How many kernels of a group may be in the loop, and how many have to as they ask for it."""
    asking = 0
    for number, op in enumerate(group.ops):
        tile = hinted_tile(op)
        same = tile.get(group.loops[number]) == trips and _cut(tile) == _cut(wanted)
        if (tile and not same) or group.pieces_at(number) % trips or any(d.split > 1 for d in op.space.data):
            return number, asking
        if tile:
            asking = number + 1
    return len(group.ops), asking


def _cut(tile: Mapping[str, int]) -> list[int]:
    return sorted(n for n in tile.values() if n > 1)


def _asks_for_whole(group: RowGroup) -> bool:
    """Return whether a hint wants something in the scratchpads that kernels outside of the loop use."""
    asked = {value for op in group.ops for value in group.facts(op).asked}
    return not asked.issubset(group.internal())


def _agrees(trial: Trial, inner: InnerLoop) -> bool:
    """Return whether all kernels of a loop share the one inside of it, and ask for nothing else."""
    body = TiledBody(trial.group, trial.spans[0])
    try:
        within = body.within(inner.loops)
        if within is None or within.pieces % inner.trips:
            return False
        pairs = zip(within.ops, within.loops, strict=True)
        return all(hinted_tile(op).get(loop, inner.trips) == inner.trips for op, loop in pairs)
    finally:
        body.drop()


def _check(op: kernel.KernelOp, trips: Mapping[str, int], spec: SpyreSpec) -> None:
    """Refuse what no loop around a kernel can be."""
    if len(trips) > MOST_LOOPS:
        raise _refused(op, trips, spec, f"at most {MOST_LOOPS} loops are around a kernel")
    if any(d.split > 1 for d in op.space.data):
        raise _refused(op, trips, spec, "the program divides it, which holds for the whole; take that away")
    blocks, whole = _blocks(op), whole_loops(op)
    for name, count in trips.items():
        if name not in blocks:
            kept = name in op.maps.data[-1].names
            why = whole.get(name, NOT_IN_ORDER) if kept else "the kernel sums it, or reduces it otherwise"
            raise _refused(op, trips, spec, f"{name} stays whole: {why}")
        if blocks[name] % count:
            same = blocks[name] == op.space.extents[name]
            units = f"{blocks[name]} elements" if same else f"{blocks[name]} pieces, whole sticks"
            raise _refused(op, trips, spec, f"equal blocks of its {units} are needed")
    if prod(trips.values()) > spec.loop_trips:
        raise _refused(op, trips, spec, f"the device counts {spec.loop_trips} trips")


def _blocks(op: kernel.KernelOp) -> dict[str, int]:
    """By loop that a loop of trips can go over, the most equal blocks that keep sticks whole."""
    return {name: pieces_of(op, name, rows) for name, rows in row_loops(op).items()}


def _refused(op: kernel.KernelOp, trips: Mapping[str, int], spec: SpyreSpec, why: str) -> HintError:
    said = ", ".join(f"{count} trips over {name}" for name, count in trips.items())
    return HintError(
        f"a hint asks for {said}: {why}",
        where=placed(op.function_name, op.location),
        hint=f"possible trips are {_possible(op, spec)}; 1 is no loop",
    )


def _possible(op: kernel.KernelOp, spec: SpyreSpec) -> str:
    found = [
        f"{name}: {', '.join([*map(str, counts[:MOST_SHOWN]), *(['…'] if len(counts) > MOST_SHOWN else [])])}"
        for name, blocks in _blocks(op).items()
        for counts in [divisors(blocks, spec.loop_trips)]
    ]
    return "; ".join(found) or "none over any of its loops"


__all__ = ["MOST_SHOWN", "put_hinted_loops"]
