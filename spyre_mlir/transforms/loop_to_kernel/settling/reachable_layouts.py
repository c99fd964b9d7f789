"""Layouts within a core's reach: layouts change where no division brings an operand within reach.

A core reaches `span_bytes` from the first to the last byte of an operand that it touches, so the outermost dimensions
of a larger tensor have to be divided. If a step cannot divide them, as they are summed or their extent has no divisor,
either another dimension goes outermost, or a loop gets longer: its operands reserve more, and what lies behind their
elements is 0. Products keep the order of their operands if longer loops do; everything else changes the order first,
which costs nothing. A search through orders and longer loops tries thousands of them, each with a kernel op of its own;
none is tried where a core would reach too far under any division, whatever orders its buffers' dimensions have.

Decision: docs/decisions/0093-layouts-within-reach.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import ceil, prod

from xdsl.dialects.builtin import FloatAttr, f64
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.hw.division import SpanError, divide
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, StickError, StickLayout, round_up
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.ops.native import contractions
from spyre_mlir.transforms.loop_to_kernel.buffers import Define, PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.kernel_ops import GATHER_STEP, kernel_op
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner, block_of
from spyre_mlir.transforms.loop_to_kernel.settling.equal_extents import settle
from spyre_mlir.transforms.utils.kernels.loops import footprints, loops_of

Order = tuple[int, ...]


@dataclass(frozen=True)
class _Change:
    """Another order of some buffers' dimensions, and one longer loop.

    Attributes:
        orders: dimensions outermost first, by buffer.
        loop: the loop; None if none gets longer.
        extent: its new extent.
    """

    orders: Mapping[PlannedBuffer, Order] = field(default_factory=dict[PlannedBuffer, Order])
    loop: str | None = None
    extent: int = 0


def bring_within_reach(p: LayoutPlanner, spec: SpyreSpec) -> None:
    """Change layouts and loops of a settled plan until every step can be divided, or no change helps.

    What is left is refused by `divide-work`, which says how far a core would have to reach.
    """
    for item in p.items:
        if isinstance(item, Define) and _holds_matrices(p, item.buffer, spec):
            _put_matrices_apart(p, item.buffer, spec)
    hopeless = dict[int, PlannedKernel]()
    # Settling may take a division from a step that has one: so each may be changed again, but not for ever.
    for _ in range(2 * len(p.items)):
        found = _next(p, spec, hopeless)
        if found is None:
            return
        at, step = found
        change = _best(p, step, spec) if may_come_within_reach(step, spec) else None
        if change is None:
            hopeless[id(step)] = step
        else:
            _install(p, at, step, change)
            settle(p)


def _holds_matrices(p: LayoutPlanner, buffer: PlannedBuffer, spec: SpyreSpec) -> bool:
    """Whether a buffer is a weight of several matrices that a core cannot reach from end to end."""
    host, layout = buffer.host, buffer.layout
    is_weight = host is not None and p.hosts.get(host, False) and host not in p.written and not buffer.fixed
    return (
        is_weight and len(buffer.shape) > 2 and layout.stick != UNIT and buffer.sticks * STICK_BYTES > spec.span_bytes
    )


def _put_matrices_apart(p: LayoutPlanner, buffer: PlannedBuffer, spec: SpyreSpec) -> None:
    """Lay one matrix behind another, so that a loop over them brings each within reach, if all steps stay divisible.

    In the published order their rows or columns would have to be divided, whatever a product of them prefers.
    """
    before, stick = buffer.layout, buffer.layout.stick
    buffer.layout = replace(before, order=(*(d for d in range(len(buffer.shape)) if d != stick), stick))
    steps = [s for s in p.items if isinstance(s, PlannedKernel) and buffer in _buffers(s)]
    if any(_cores(s, spec) is None for s in steps):
        buffer.layout = before


def _next(p: LayoutPlanner, spec: SpyreSpec, hopeless: Mapping[int, PlannedKernel]) -> tuple[int, PlannedKernel] | None:
    """The first step that cannot be divided, and its place."""
    for at, item in enumerate(p.items):
        if not isinstance(item, PlannedKernel) or id(item) in hopeless or not _beyond(item, spec):
            continue
        if _cores(item, spec) is None:
            return at, item
    return None


def _buffers(step: PlannedKernel) -> list[PlannedBuffer]:
    return list(dict.fromkeys(b for b, _ in (*step.inputs, step.output)))


def _beyond(step: PlannedKernel, spec: SpyreSpec) -> list[PlannedBuffer]:
    """The buffers of a step that one core cannot reach from end to end."""
    return [b for b in _buffers(step) if b.sticks * STICK_BYTES > spec.span_bytes]


def _cores(step: PlannedKernel, spec: SpyreSpec) -> int | None:
    """Over how many cores a step is divided; None if it has no legal division or its layouts do not go together."""
    op = kernel_op(step, {b: kernel.AllocOp(b.type).result for b in _buffers(step)})
    try:
        op.verify_()
        loops = loops_of(op)
        return prod(divide(loops, footprints(op, loops), spec).values())
    except (SpanError, StickError, VerifyException):
        return None


def _best(p: LayoutPlanner, step: PlannedKernel, spec: SpyreSpec) -> _Change | None:
    """The first kind of change that helps; of its kind the one that leaves each core least to do."""
    orders, longer = _orders(step, spec), _longer_loops(step, spec)
    mixed = (replace(o, loop=long.loop, extent=long.extent) for o, long in product(orders, longer))
    kinds: list[Iterable[_Change]] = [orders, longer, mixed]
    if step.function == contractions.matmul.opfunc:
        kinds = [longer, orders, mixed]
    own = set(_buffers(step))
    near = [s for s in p.items if isinstance(s, PlannedKernel) and s is not step and not own.isdisjoint(_buffers(s))]
    near = [s for s in near if _cores(s, spec) is not None]
    for kind in kinds:
        scores = [(score, number, c) for number, c in enumerate(kind) if (score := _score(step, near, c, spec))]
        if scores:
            return min(scores, key=lambda found: found[:2])[2]
    return None


def _orders(step: PlannedKernel, spec: SpyreSpec) -> list[_Change]:
    """Other orders of the large buffers' dimensions, the fewest changes first."""
    large = [b for b in _beyond(step, spec) if step.function != GATHER_STEP and not b.fixed and not b.ordered]
    options = [_orders_of(b.layout) for b in large]
    chosen = sorted(product(*options), key=lambda c: sum(o != b.layout.order for b, o in zip(large, c, strict=True)))
    return [_Change(dict(zip(large, orders, strict=True))) for orders in chosen[1:]]


def _orders_of(layout: StickLayout) -> list[Order]:
    """The order of a layout, and those with each other dimension outermost."""
    own = layout.order
    return [own, *((d, *(o for o in own if o != d)) for d in own[1:] if d != UNIT)]


def _longer_loops(step: PlannedKernel, spec: SpyreSpec) -> list[_Change]:
    """Loops that get just long enough to be divided over so many cores, the shortest first."""
    if step.function == GATHER_STEP or step.integers:  # what is watched for overflow computes on elements only
        return []
    op = kernel_op(step, {b: kernel.AllocOp(b.type).result for b in _buffers(step)})
    padded, found = op.padded_extents(), set[tuple[int, str]]()
    for lp in loops_of(op):
        if not lp.divisible or not all(_walks_whole(b, index, lp.name, step) for b, index in _uses(step)):
            continue
        unit = padded[lp.name] // lp.units
        extents = {round_up(lp.units, split) * unit for split in range(2, spec.cores_per_card + 1)}
        found |= {(extent, lp.name) for extent in extents if extent > padded[lp.name]}
    return [_Change(loop=name, extent=extent) for extent, name in sorted(found)]


def _uses(step: PlannedKernel) -> Iterator[tuple[PlannedBuffer, IndexMap]]:
    yield from (*step.inputs, step.output)


def _walked(index: IndexMap, loop: str) -> list[int]:
    return [d for d, e in enumerate(index) if any(n == loop for n, _ in e.terms)]


def _walks_whole(buffer: PlannedBuffer, index: IndexMap, loop: str, step: PlannedKernel) -> bool:
    """Return whether a loop walks a whole dimension of a buffer, or none."""
    extent = next(d.extent for d in step.space if d.name == loop)
    return not (buffer.fixed and _walked(index, loop)) and all(
        d < len(buffer.shape) and index[d] == LinearExpr.of(loop) and extent >= buffer.shape[d]
        for d in _walked(index, loop)
    )


def _score(
    step: PlannedKernel, near: Sequence[PlannedKernel], change: _Change, spec: SpyreSpec
) -> tuple[float, int] | None:
    """Sticks per core, then sticks; None if the step still cannot be divided, or one near it no longer."""
    before = {b: b.layout for b in _buffers(step)}
    changed = _applied(step, change)
    try:
        cores = _cores(changed, spec)
        if cores is None or any(_cores(s, spec) is None for s in near):
            return None
        sticks = sum(b.sticks for b in before)
        return sticks / cores, sticks
    finally:
        for buffer, layout in before.items():
            buffer.layout = layout


def _applied(step: PlannedKernel, change: _Change) -> PlannedKernel:
    """The step after a change, whose buffers are changed in place."""
    for buffer, order in change.orders.items():
        buffer.layout = replace(buffer.layout, order=order)
    if change.loop is None:
        return step
    for buffer, index in _uses(step):
        for dim in _walked(index, change.loop):
            buffer.reserve(dim, change.extent)
    return replace(step, space=tuple(replace(d, extent=_extent(d, change)) for d in step.space))


def _extent(dim: IterDim, change: _Change) -> int:
    return change.extent if dim.name == change.loop else dim.extent


def _install(p: LayoutPlanner, at: int, step: PlannedKernel, change: _Change) -> None:
    """Makes a change, and 0 of what a longer loop reads behind the elements of its operands."""
    p.items[at] = _applied(step, change)
    p.origin, end = step.origin, len(p.items)
    for buffer, index in step.inputs:
        for dim in _walked(index, change.loop) if change.loop is not None else ():
            _clear(p, buffer, dim, change.extent)
    # Right before the step: what writes the buffer may write more than its elements.
    clearing = p.items[end:]
    p.items[end:] = []
    p.items[at:at] = clearing


def _clear(p: LayoutPlanner, buffer: PlannedBuffer, dim: int, extent: int) -> None:
    """Fills a buffer with zeros from the end of its elements on: by the host that sends it, or on the device."""
    if buffer.host is not None or buffer.constant is not None:
        buffer.zero_padding = True
        return
    start = round_up(buffer.shape[dim], buffer.lanes if dim == buffer.layout.stick else 1)
    dims = [IterDim(f"d{d}", extent - start if d == dim else e) for d, e in enumerate(buffer.shape)]
    index = tuple(LinearExpr.of(d.name) if d.extent > 1 else LinearExpr() for d in dims)
    behind = tuple(e.shifted(start) if d == dim else e for d, e in enumerate(index))
    layout = StickLayout.published((), UNIT, block_of(buffer.format))
    # A number of its own: the one that the plan shares may be made later.
    zero = p.define(PlannedBuffer((), buffer.format, layout, constant=FloatAttr(0.0, f64), zero_padding=True))
    p.step(COPY, tuple(d for d in dims if d.extent > 1), [(zero, ())], (buffer, behind))


def table_beyond_reach(size_bytes: int, spec: SpyreSpec) -> str | None:
    """Return the message about gathering from a table of so many bytes; None if a core reaches all of it."""
    if size_bytes <= spec.span_bytes:
        return None
    return f"rows of a table of {size_bytes} bytes: a core, which may be asked for any row, reaches {spec.span_bytes}"


def may_come_within_reach(step: PlannedKernel, spec: SpyreSpec) -> bool:
    """Return whether slices over the cores of a card could be small enough, if they were as compact as can be.

    Slices of a loop have as many elements as the shortest that cover it, so a longer loop is counted too.
    """
    kept = {name for expr in step.output[1] for name, _ in expr.terms}
    is_product = step.function == contractions.matmul.opfunc
    extents = {d.name: d.extent for d in step.space}
    divisible = [d.name for d in step.space if d.extent > 1 and (is_product or d.name in kept)]
    operands = [_walked_alone(buffer, index) for buffer, index in (*step.inputs, step.output)]

    def is_near(splits: Mapping[str, int]) -> bool:
        return all(_sticks(operand, extents, splits) * STICK_BYTES <= spec.span_bytes for operand in operands)

    return any(is_near(splits) for splits in _splits(divisible, spec.cores_per_card))


def _walked_alone(buffer: PlannedBuffer, index: IndexMap) -> dict[str, int]:
    """Loops that each walk a dimension on their own, and how many elements of it share a stick."""
    names = [name for expr in index for name, _ in expr.terms]
    found = dict[str, int]()
    for dim, expr in enumerate(index):
        if len(expr.terms) == 1 and names.count(expr.terms[0][0]) == 1:
            found[expr.terms[0][0]] = buffer.lanes if dim == buffer.layout.stick else 1
    return found


def _sticks(operand: Mapping[str, int], extents: Mapping[str, int], splits: Mapping[str, int]) -> int:
    """Return the least number of sticks that the busiest core touches."""
    return prod(ceil(ceil(extents[name] / splits.get(name, 1)) / lanes) for name, lanes in operand.items())


def _splits(names: Sequence[str], cores: int) -> Iterator[dict[str, int]]:
    """All numbers of slices of some loops that so many cores can take."""
    if not names:
        yield {}
        return
    for split in range(1, cores + 1):
        for others in _splits(names[1:], cores // split):
            yield {names[0]: split, **others}


__all__ = ["bring_within_reach", "may_come_within_reach", "table_beyond_reach"]
