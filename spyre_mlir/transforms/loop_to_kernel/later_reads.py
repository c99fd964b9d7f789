"""Costs of a layout later on: sticks that the readers of a tensor move at best if a dimension of it is in the lanes.

A nest that chooses its own lanes by what it reads and writes may leave its result so that nothing behind it can read
it without laying it out again. So the choice counts what follows, to the end of the function: from the last op to the
first, each tensor gets its least cost for every stick dimension. What an op costs is shared by the operands that the
function computes, so that no kernel is counted twice.

Destinations and nests without reductions choose so, where the result is in DL16: sparse and widened forms are beyond
these estimates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import inf, prod

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from spyre_mlir.dialects.argument_notes import placed_results
from spyre_mlir.dialects.spyre import loop
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, SpaceAttr
from spyre_mlir.dialects.spyre.layout_choices import LayoutChoice, layout_said
from spyre_mlir.dialects.spyre.loop_blocks import PutOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import FP32
from spyre_mlir.hw.legality import may_write, stick_for
from spyre_mlir.hw.sticks import UNIT, StickLayout, round_up
from spyre_mlir.transforms.loop_to_kernel.buffers import stored_format
from spyre_mlir.transforms.loop_to_kernel.gather_lanes import gather_sticks
from spyre_mlir.transforms.loop_to_kernel.layout_planner import RELAID, block_of, lanes_of
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import agrees
from spyre_mlir.transforms.utils.nests.contractions import is_contraction

Costs = Mapping[int, float]  # by stick dimension

# A copy in another shape, read and laid out again, in sizes of what is copied.
_COPIED = 8
# Laying FP32 out again takes this many kernels: rows change their order before and after.
WIDE_STEPS = 3


def weight_of(form: str, relaid: float = RELAID) -> float:
    """Return the sticks that each stick of a restickify counts for.

    Args:
        form: the format of the tensor.
        relaid: the number for DL16; FP32 counts its kernels instead (`WIDE_STEPS`).
    """
    return 1 if form == FP32.name else relaid


class LaterReads:
    """Least costs of the tensors of a block, in sticks."""

    def __init__(self, block: Block, *, keep_float32: bool = False, relaid: float = RELAID) -> None:
        """Looks at nothing yet; `keep_float32` as in the conversion, `relaid` as in `weight_of`."""
        self._block, self._keep_float32, self._weight = block, keep_float32, relaid
        self._costs: dict[SSAValue, Costs] | None = None
        self._known: dict[loop.NestOp, dict[int, float]] = {}
        self._forms: dict[SSAValue, str] = {}
        self._returned, function = block.last_op, block.parent_op()
        self._placed = placed_results(function) if isinstance(function, FuncOp) else set[int]()

    def cost(self, value: SSAValue, stick: int) -> float:
        """Return the sticks moved by all that comes of `value`, if `stick` is its stick dimension."""
        if self._costs is None:
            self._costs = {}
            for op in reversed(self._block.ops):
                if isinstance(op, loop.NestOp | loop.EmptyOp | loop.LoopGatherOp | PutOp):
                    self._costs[op.result] = self._of(op.result)
        return self._costs.get(value, {}).get(stick, 0.0)

    def _form(self, value: SSAValue) -> str:
        if (form := self._forms.get(value)) is None:
            form = self._forms[value] = stored_format(element_of(value), keep_float32=self._keep_float32)
        return form

    def _of(self, value: SSAValue) -> Costs:
        """The costs of a value whose readers' results have theirs."""
        kept: list[Costs] = []
        reads: list[Costs] = []
        for use in value.uses:
            op = use.operation
            if isinstance(op, loop.NestOp):
                if op.dest is value:
                    kept.append(self._filled(op))
                else:
                    reads.append(self._read(op, use.index))
            elif isinstance(op, PutOp) and op.dest is value:
                kept.append({stick: self.cost(op.result, stick) for stick in (*range(len(shape_of(value))), UNIT)})
            elif isinstance(op, loop.LoopGatherOp) and op.table is value:
                reads.append(self._gathered(op))
            elif use.operation is self._returned and use.index in self._placed:
                reads.append({StickLayout.default(shape_of(value), lanes_of(self._form(value))).stick: 0.0})
        out, shape, form = dict[int, float](), shape_of(value), self._form(value)
        # What lies in device memory in the end is written there in any layout.
        returned = any(u.operation is self._returned and u.index in self._placed for u in value.uses)
        each = 1 if returned else weight_of(form, self._weight)
        for stick in (*range(len(shape)), UNIT):
            others = {s for costs in reads for s in costs} - {stick}
            relaid = {other: _relaid(shape, form, stick, other, each) for other in sorted(others)}
            out[stick] = self._served(stick, reads, relaid) + sum([costs.get(stick, inf) for costs in kept])
        return out

    @staticmethod
    def _served(stick: int, reads: Sequence[Costs], relaid: Costs) -> float:
        """The cost of all readers of a value with a stick dimension, laid out again where that is less."""
        own, others = [costs.get(stick, inf) for costs in reads], set(relaid)
        while others:
            total, best = min([(relaid[other] + sum(_least(own, reads, other)), other) for other in others])
            if total >= sum(own):
                break
            # The way there is paid by the first reader.
            own = _least(own, reads, best)
            own[0] += relaid[best]
            others.discard(best)
        return sum(own)

    def _filled(self, op: loop.NestOp) -> Costs:
        """Costs of a destination, where this nest can write to it."""
        lanes = block_of(self._form(op.result))
        return {
            stick: self.cost(op.result, stick)
            for stick in (*range(len(shape_of(op.result))), UNIT)
            if _writes(op, stick, lanes)
        }

    def _gathered(self, op: loop.LoopGatherOp) -> Costs:
        """Costs of a table: those of the rows, by the stick dimension of the table that gives them theirs."""
        lanes, out = block_of(self._form(op.result)), dict[int, float]()
        for sticks in (gather_sticks(op, d.name, lanes) for d in op.space.data):
            if sticks is not None:
                table, rows = sticks
                out[table] = min(out.get(table, inf), self.cost(op.result, rows))
        return out

    def _read(self, op: loop.NestOp, number: int) -> Costs:
        """Costs of an operand by the stick dimension in which the nest reads it."""
        form, at = self._form(op.inputs[number]), op.input_maps[number]
        index, space, lanes, block = at.data, op.space, lanes_of(form), block_of(form)
        least, whole, out = inf, inf, dict[int, float]()
        for lane, stick in self._lanes(op, number):
            made = self._made(op, stick)
            read = _sticks(space, at, lane, lanes)
            needed = stick_for(index, lane, block)
            if needed is None:
                least = min(least, made)
            else:
                out[needed] = min(out.get(needed, inf), made + read)
            whole = min(whole, read)
        if least < inf:  # read through a copy, which any loop may walk that has a dimension for itself
            alone = {stick_for(index, d.name, block) for d in space.data} if out else range(len(index))
            for stick in alone:
                if stick not in (None, UNIT):
                    out[stick] = min(out.get(stick, inf), least + _COPIED * whole)
        return out

    def _made(self, op: loop.NestOp, stick: int) -> float:
        """What one operand of a nest pays for its result with a stick dimension: each of them asks the same."""
        known = self._known.setdefault(op, {})
        if stick not in known:
            later = self.cost(op.result, stick) / _computed(_filling(op))
            known[stick] = self._written(op, stick) / _computed([op]) + later
        return known[stick]

    def _lanes(self, op: loop.NestOp, number: int) -> Sequence[tuple[str | None, int]]:
        """The loops that may be in the lanes of an operand, each with the stick dimension of the result."""
        lanes = block_of(self._form(op.result))
        if _is_product(op):
            lane, kept = _lanes_of_product(op, number)
            stick = stick_for(op.output_map.data, kept, lanes)
            return [(lane, UNIT if stick is None else stick)]
        found, said = written_lanes(op.space, op.output_map, shape_of(op.result), lanes), _said(op)
        return found if said is None else [one for one in found if agrees(said, one)] or found

    def _written(self, op: loop.NestOp, stick: int) -> float:
        form = self._form(op.result)
        if op.dest is None:
            return StickLayout.published(shape_of(op.result), stick, block_of(form)).sticks(lanes_of(form))
        lane = next((n for n, _ in op.output_map.data[stick].terms), None) if stick != UNIT else None
        return _sticks(op.space, op.output_map, lane, lanes_of(form))


@lru_cache(maxsize=1 << 12)
def _relaid(shape: tuple[int, ...], form: str, old: int, new: int, each: float) -> float:
    """Sticks read and written by a restickify, so many each; both tensors have whole sticks of both dimensions."""
    lanes, block = lanes_of(form), block_of(form)
    elements = prod([round_up(e, block) if dim in (old, new) else e for dim, e in enumerate(shape)])
    # To or from a sparse tensor both sides have a stick for every element, and no scratchpad holds them, nor what
    # their readers share with them: counted as all lanes of the sparse side, so that little is laid out so.
    moved = elements * (lanes + 1) if UNIT in (old, new) else each * 2 * elements / lanes
    return moved * (WIDE_STEPS if form == FP32.name else 1)


@lru_cache(maxsize=1 << 12)
def written_lanes(
    space: SpaceAttr, index: IndexMapAttr, shape: tuple[int, ...], lanes: int
) -> tuple[tuple[str | None, int], ...]:
    """Return the loops that may be in the lanes of a nest, each with the stick dimension of the result; none last.

    Args:
        space: the loops.
        index: the map of the result.
        shape: of the result.
        lanes: elements per stick of the result.
    """
    found, extents, written = list[tuple[str | None, int]](), space.extents, index.names
    for lane in (*extents, None):
        kept = lane if lane in written else None
        if may_write(index.data, shape, kept, extents, lanes):
            stick = stick_for(index.data, kept, lanes)
            found.append((lane, UNIT if stick is None else stick))
    return tuple(found)


def _least(own: Sequence[float], reads: Sequence[Costs], stick: int) -> list[float]:
    """What each reader costs as it is, or with another stick dimension where that is less."""
    return [min(cost, costs.get(stick, inf)) for cost, costs in zip(own, reads, strict=True)]


def _writes(op: loop.NestOp, stick: int, lanes: int) -> bool:
    index, extents = op.output_map.data, op.space.extents
    terms = index[stick].terms if stick != UNIT else ()
    lane = next((n for n, _ in terms if stick_for(index, n, lanes) == stick), None)
    return (stick == UNIT or lane is not None) and may_write(index, shape_of(op.result), lane, extents, lanes)


@lru_cache(maxsize=1 << 12)
def _sticks(space: SpaceAttr, index: IndexMapAttr, lane: str | None, lanes: int) -> float:
    """Sticks of what a nest touches through a map, each counted once."""
    extents = space.extents
    return prod([-(-extents[n] // lanes) if n == lane else extents[n] for n in index.names])


def _computed(nests: Sequence[loop.NestOp]) -> int:
    """Operands of nests that the function computes, at least 1."""
    operands = [v for nest in nests for v in nest.inputs]
    return max(1, sum(isinstance(v, OpResult) and isinstance(v.op, loop.NestOp) for v in operands))


def _filling(op: loop.NestOp) -> list[loop.NestOp]:
    """A nest and all that fill the same destination."""
    nests, value = [op], op.dest
    while isinstance(value, OpResult) and isinstance(value.op, loop.NestOp):
        nests.append(value.op)
        value = value.op.dest
    following = _next_filler(op)
    while following is not None:
        nests.append(following)
        following = _next_filler(following)
    return nests


def _next_filler(op: loop.NestOp) -> loop.NestOp | None:
    users = (u.operation for u in op.result.uses)
    return next((u for u in users if isinstance(u, loop.NestOp) and u.dest is op.result), None)


def _said(op: loop.NestOp) -> LayoutChoice | None:
    """What the text says of the layout of a nest's result, or of the tensor that it fills a part of."""
    maker: Operation = op
    while isinstance(maker, loop.NestOp) and maker.dest is not None and isinstance(maker.dest.owner, Operation):
        maker = maker.dest.owner
    return layout_said(maker)


def _is_product(op: loop.NestOp) -> bool:
    return len(op.reduced) == 1 and is_contraction(op)


def _lanes_of_product(op: loop.NestOp, number: int) -> tuple[str | None, str | None]:
    """The loop in the lanes of an operand of a product, and that of the result."""
    (summed,) = op.reduced
    first, second = (op.input_maps[n].names for n in (0, 1))
    names = [d.name for d in op.space.data]
    columns, left = [n for n in names if n in second and n not in first], 0
    if len(columns) > 1:
        columns, left = [n for n in names if n in first and n not in second], 1
    column = columns[0] if columns else None
    return (summed if number == left else column), column


__all__ = ["WIDE_STEPS", "LaterReads", "weight_of", "written_lanes"]
