"""Choice of the loop in the lanes: the cheapest of the legal ones, counted in sticks moved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod

from xdsl.dialects.func import ReturnOp
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.division import DividedLoop, divide
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.legality import stick_for
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import UNIT, IndexMap, StickLayout
from spyre_mlir.transforms.loop_to_kernel.data_formats import Forms
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.host_blocks import written_block
from spyre_mlir.transforms.loop_to_kernel.later_reads import WIDE_STEPS, weight_of, written_lanes
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RELAID, LayoutPlanner, block_of, lanes_of
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import Lane, allowed_lanes, check_said

# A copy and the re-laying of the copy, against reading in place: only the order of candidates depends on it.
_COPY_FACTOR = 4

# A layout is no worse than another if it moves so many sticks more: a microsecond of the card's memory.
LITTLE = 1200

Later = Callable[[SSAValue, int], float]

WRITTEN = "it is written where its destination lies"


def read_cost(
    versions: DeviceForms,
    index: IndexMap,
    lane: str | None,
    extents: Mapping[str, int],
    readers: int = 1,
    relaid: float = RELAID,
) -> float:
    """Return the sticks moved by reading a tensor with `lane` in the lanes, conversion and relayout included.

    A nest moves what it reads of a tensor, which may be a part. Conversions and relayouts move all of it; nests that
    read as many parts share them.

    Args:
        versions: the tensor.
        index: the map through which a nest reads it.
        lane: the loop in the lanes.
        extents: of the nest's loops.
        readers: how many nests read the tensor.
        relaid: as in `weight_of`.
    """
    stick = stick_for(index, lane, block_of(versions.format))
    if stick is None:
        return _COPY_FACTOR * _sticks(versions, UNIT)
    whole = _sticks(versions, stick)
    read = min(whole, _touched(index, lane, versions.format, extents))
    # Of a placed input `_by_fewer_cores` takes the whole relayout back, and counts it again for the cores it has.
    shared = 1 if versions.placed else max(1, min(readers, whole // max(1, read)))
    if versions.find(stick) is not None or versions.free_layout:
        return read
    if versions.origin is not None and not versions.buffers:
        narrowed = whole + _sticks(versions.origin, stick)
        return narrowed + read_cost(versions.origin, index, lane, extents, readers, relaid)
    moved = _relaid(versions, stick, relaid) * (1 if versions.format == DL16.name else WIDE_STEPS)
    return read + moved // shared


def _touched(index: IndexMap, lane: str | None, form: str, extents: Mapping[str, int]) -> int:
    """Sticks that a nest touches through a map, each counted once, whole blocks in the lanes."""
    used, block = {n for e in index for n, _ in e.terms}, block_of(form)
    rows = prod(extents[n] for n in used if n != lane)
    return rows * (-(-extents[lane] // block) * block // lanes_of(form) if lane in used else 1)


def _by_fewer_cores(
    versions: DeviceForms, index: IndexMap, lane: str | None, cores: int, spec: SpyreSpec, relaid: float
) -> float:
    """Sticks per core that laying a placed input out again takes beyond `read_cost`, shared by so many cores.

    Its stick dimensions are divided by whole sticks, which leaves few rows or columns to few cores; and what has no
    whole sticks of rows is copied first.
    """
    if not versions.placed:
        return 0.0
    stick = stick_for(index, lane, block_of(versions.format))
    if stick is None or versions.find(stick) is not None:
        return 0.0
    placed, lanes = versions.buffers[0], block_of(versions.format)
    old = placed.layout.stick
    if UNIT in (old, stick):
        return 0.0
    extents = dict(enumerate(versions.shape))

    def share(sticks: float, *dims: int) -> float:
        loops = [DividedLoop(str(d), -(-e // lanes) if d in dims else e, kept=True) for d, e in extents.items()]
        return sticks / prod(divide(loops, [], spec).values())

    moved = _relaid(versions, stick, relaid)
    copied = share(2 * placed.sticks, old) if extents[stick] % lanes else 0.0
    return copied + share(moved, old, stick) - moved / cores


def _relaid(versions: DeviceForms, stick: int, relaid: float) -> float:
    """Sticks read and written by a restickify, `weight_of` each.

    Where one side is sparse, both have a stick for every element.
    """
    source = versions.buffers[0]
    if UNIT not in (stick, source.layout.stick):
        return weight_of(versions.format, relaid) * (source.sticks + _sticks(versions, stick))
    dense = source.sticks if stick == UNIT else _sticks(versions, stick)
    return 2 * dense * lanes_of(versions.format)


def _sticks(versions: DeviceForms, stick: int) -> int:
    return write_cost(versions.shape, stick, versions.format)


@lru_cache(maxsize=1 << 12)
def write_cost(shape: tuple[int, ...], stick: int, form: str) -> int:
    """Return the sticks of a result with this stick dimension."""
    return StickLayout.published(shape, stick, block_of(form)).sticks(lanes_of(form))


def candidates(space: Sequence[IterDim]) -> list[str | None]:
    """Return loops in order of preference for equal cost: innermost first, sparse last."""
    return [*(d.name for d in reversed(space)), None]


@lru_cache(maxsize=1 << 12)
def usable_cores(
    space: tuple[IterDim, ...], reduced: tuple[str, ...], lane: str | None, lanes: int, spec: SpyreSpec
) -> int:
    """Return the number of usable cores with `lane` in the lanes: whole sticks there, elements elsewhere."""
    loops = [
        DividedLoop(d.name, -(-d.extent // lanes) if d.name == lane else d.extent, d.name not in reduced) for d in space
    ]
    return prod(divide([lp for lp in loops if lp.kept], [], spec).values())


def lane_of_result(op: loop.NestOp, stick: int, lanes: int) -> str | None:
    """Return the loop in the lanes of the result if its stick dimension is `stick`."""
    if stick == UNIT:
        return None
    expr = op.output_map.data[stick]
    return next((n for n, _ in expr.terms if stick_for(op.output_map.data, n, lanes) == stick), None)


def result_lane(op: loop.NestOp, lane: str | None) -> str | None:
    """Return the loop in the lanes of the result; None if it is reduced."""
    return None if lane in op.reduced else lane


def legal_lanes(op: loop.NestOp, form: str) -> list[Lane]:
    """Return the loops that may be in the lanes, the first ones preferred, and the stick dimensions of the result.

    Raises:
        LoweringError: there are none.
    """
    found = dict(written_lanes(op.space, op.output_map, shape_of(op.result), block_of(form)))
    if not found:
        raise LoweringError("no loop can walk the lanes of the result")
    return [(lane, found[lane]) for lane in candidates(op.space.data) if lane in found]


def _nothing_later(_value: SSAValue, _stick: int) -> float:
    return 0.0


def cheapest_lane(op: loop.NestOp, forms: Forms, later: Later = _nothing_later, relaid: float = RELAID) -> str | None:
    """Return the cheapest loop that may be in the lanes of the result; `later` is what a stick dimension costs then."""
    form, shape, found = forms.format, shape_of(op.result), list[tuple[float, str | None, int]]()
    lanes, allowed = block_of(form), allowed_lanes(op, legal_lanes(op, form))
    if len(allowed) == 1:
        return allowed[0][0]
    extents, reduced, spec = op.space.extents, op.reduced, spec_at(op)
    readers = [value.uses.get_length() for value in op.inputs]
    operands = list(zip(forms.operands, [m.data for m in op.input_maps], readers, strict=True))
    for lane, stick in allowed:
        cost = write_cost(shape, stick, form)
        cost += sum([read_cost(v, index, lane, extents, count, relaid) for v, index, count in operands])
        cores = usable_cores(op.space.data, reduced, lane, lanes, spec)
        more = sum([_by_fewer_cores(v, index, lane, cores, spec, relaid) for v, index, _ in operands])
        found.append((cost / cores + more, lane, stick))
    cores = spec.cores_per_card
    # Loops that leave a result in one layout may differ: one that is summed may have to be brought to the lanes first.
    now = {s: cores * min(per_core for per_core, _, other in found if other == s) for _, _, s in reversed(found)}
    stick = with_later(op.result, min(found, key=lambda one: one[0])[2], now, later)
    return min((one for one in found if one[2] == stick), key=lambda one: one[0])[1]


def with_later(value: SSAValue, best: int, now: Mapping[int, float], later: Later) -> int:
    """Return the stick dimension of a tensor that costs least in the end.

    Args:
        value: the tensor.
        best: its cheapest stick dimension for now, which stays where another one would save little, unless the
            tensor is only a result: how that is placed is certain, and laying it out again takes kernels of its own.
        now: by stick dimension, sticks that making the tensor moves.
        later: sticks that what follows moves.
    """
    only_result = all(isinstance(use.operation, ReturnOp) for use in value.uses)
    if len(now) < 2 or (min(now.values()) < LITTLE and not only_result):
        return best
    total = {stick: sticks + later(value, stick) for stick, sticks in now.items()}
    least = min(total, key=lambda stick: (total[stick], stick != best))
    return least if only_result or total[best] - total[least] >= LITTLE else best


def lane_for(p: LayoutPlanner, op: loop.NestOp, forms: Forms) -> str | None:
    """Return the loop in the lanes: that of the destination, or of the block that is written, if there is one."""
    dest = written_block(p, op) if op.dest is None else p.of(op.dest).buffers[0]
    if dest is None:
        looks_ahead = op.combine is None and forms.format == DL16.name
        lane = cheapest_lane(op, forms, p.later if looks_ahead else _nothing_later, p.relaid)
        p.chosen.lanes[op] = lane
        return lane
    lane = p.chosen.lanes[op] = lane_of_result(op, dest.layout.stick, dest.block)
    check_said(op, (lane, dest.layout.stick), dest.layout.order, WRITTEN)
    return lane
