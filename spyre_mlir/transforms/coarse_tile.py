"""Pass `coarse-tile`: runs chains of kernels with intermediates larger than LX in blocks of rows.

A chain of ops that share a loop over rows becomes an `scf.for` over blocks of these rows, so that the intermediates
of one block fit the scratchpads: device memory is read once and written once. The number of trips is the smallest
that keeps all intermediates in LX and all cores busy; a chain that would not move fewer bytes stays as it is. Runs
before `divide-work`, because the work of a tile is divided over the cores, not that of the whole tensor.

Decision: docs/decisions/0036-coarse-tiling-on-request.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, SpaceAttr
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.transforms.divide_work import divide_kernel
from spyre_mlir.transforms.place_lx import place_block
from spyre_mlir.transforms.utils.rebuild import functions
from spyre_mlir.transforms.utils.row_groups import RowGroup, grow


@dataclass(frozen=True)
class CoarseTilePass(ModulePass):
    """Wraps chains of kernels that exceed LX into loops over blocks of rows."""

    name = "coarse-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Tile the chains of every function of the module."""
        for function in functions(op):
            tile_chains(function.body.block, spec_of(ctx, op))


def tile_chains(block: Block, spec: SpyreSpec) -> None:
    """Tile the chains of a block where this reduces the cost."""
    ops, position = list(block.ops), 0
    while position < len(ops):
        op = ops[position]
        groups = grow(op, ops[position + 1 :]) if isinstance(op, kernel.KernelOp) else []
        plans = [plan for group in groups if (plan := _plan(group, spec)) is not None]
        if plans:
            best = min(plans, key=lambda plan: plan.cost)
            _install(block, best, spec)
            position = ops.index(best.group.ops[-1])
        elif groups:
            position = max(ops.index(group.ops[-1]) for group in groups)
        position += 1


@dataclass(frozen=True)
class Plan:
    """A group of kernels in a loop with a number of trips.

    Attributes:
        group: the ops.
        trips: of the loop.
        by_rows: whether all ops divide the rows over the cores, and nothing else.
        traffic_bytes: bytes of device memory that all trips move.
    """

    group: RowGroup
    trips: int
    by_rows: bool
    traffic_bytes: int

    @property
    def cost(self) -> tuple[bool, int, int]:
        """Return the cost to minimise: rows in the lanes if alternatives exist, traffic, trips."""
        return self.group.row_unit() > 1, self.traffic_bytes, self.trips


def _plan(group: RowGroup, spec: SpyreSpec) -> Plan | None:
    """The loop that moves the fewest bytes, and has the fewest trips of those; None if no loop saves any."""
    sizes = [kernel.device_tensor(v).sticks * STICK_BYTES for v in group.internal()]
    room = spec.lx_usable_bytes * spec.cores_per_card
    if sum(sizes) <= room:
        return None  # they fit as they are, or if they do not, smaller ones would not either
    before = _trial(group, 1, False, spec)
    if before is None or before.traffic_bytes <= group.least_traffic(1):
        return None
    best, least = None, before.traffic_bytes
    for trips in _trip_counts(group, -(-max(sizes) // room), spec):
        if group.least_traffic(trips) >= least:
            break
        trials = {by_rows: _trial(group, trips, by_rows, spec) for by_rows in (False, True)}
        good = {by_rows: t for by_rows, t in trials.items() if t is not None and t.as_busy_as(before)}
        enough = any(t.local == len(sizes) for t in good.values())
        for by_rows, trial in good.items():
            if trial.traffic_bytes < least:
                best, least, enough = Plan(group, trips, by_rows, trial.traffic_bytes), trial.traffic_bytes, False
        if enough:
            break  # all intermediates are in LX, and smaller blocks have stopped to pay
    return best


def _trip_counts(group: RowGroup, least: int, spec: SpyreSpec) -> Iterator[int]:
    """Trip counts from `least` on that give equal blocks of whole sticks, ascending."""
    pieces, rest = divmod(group.extent, group.row_unit())
    if not rest:
        yield from (d for d in divisors(pieces, spec.loop_trips) if d >= max(least, 2))


@dataclass(frozen=True)
class _Trial:
    """Expected properties of a tiled loop.

    Attributes:
        local: intermediates in LX.
        traffic_bytes: bytes of device memory that all trips move.
        cores: cores that work, by op of the group.
    """

    local: int
    traffic_bytes: int
    cores: tuple[int, ...]

    def as_busy_as(self, other: _Trial) -> bool:
        """Return whether every op keeps at least as many cores busy."""
        return all(mine >= theirs for mine, theirs in zip(self.cores, other.cores, strict=True))


def _trial(group: RowGroup, trips: int, by_rows: bool, spec: SpyreSpec) -> _Trial | None:
    """Return the expected result of later passes on the loop; None if they could not divide the work."""
    body = _Body(group, trips)
    try:
        if by_rows and not _divide_rows(body, spec):
            return None
        for op in body.kernels:
            if not by_rows:
                divide_kernel(op, spec)
        cores = tuple(prod(op.space_splits().values()) for op in body.kernels)
        place_block(body.block, spec, copies=True)
        local = sum(kernel.device_tensor(alloc.result).space == "lx" for alloc in body.allocs)
        return _Trial(local, trips * sum(op.hbm_bytes() for op in body.kernels), cores)
    except LoweringError:
        return None
    finally:
        for op in reversed(list(body.block.ops)):
            op.detach()
            op.erase()


def _divide_rows(body: _Body, spec: SpyreSpec) -> bool:
    """Divides the rows of every op over all cores; False if some cannot be divided so."""
    for op, loop in zip(body.kernels, body.group.loops, strict=True):
        divide_kernel(op, spec, only=loop)
        if op.space_splits()[loop] != spec.cores_per_card:
            return False
    return True


@dataclass
class _Body:
    """The body of the loop: tiles, buffers for one block of rows, and the ops on them."""

    group: RowGroup
    trips: int
    block: Block = field(default_factory=lambda: Block(arg_types=[IndexType()]))
    allocs: list[kernel.AllocOp] = field(default_factory=list[kernel.AllocOp])
    _values: dict[tuple[SSAValue, int | None], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, "int | None"], SSAValue]
    )

    def __post_init__(self) -> None:
        self.block.args[0].name_hint = "i"
        internal = set(self.group.internal())
        for op, loop, rows in zip(self.group.ops, self.group.loops, self.group.rows, strict=True):
            values = [self._value(v, d, v in internal, op) for v, d in zip(op.operands, rows, strict=True)]
            new = op.clone()
            new.location = op.location
            new.operands = values
            new.space = SpaceAttr(tuple(replace(d, extent=self.rows) if d.name == loop else d for d in op.space.data))
            new.maps = ArrayAttr(op.maps.data)
            self.block.add_op(new)

    @property
    def kernels(self) -> list[kernel.KernelOp]:
        """The kernel ops now in the body."""
        return [op for op in self.block.ops if isinstance(op, kernel.KernelOp)]

    @property
    def rows(self) -> int:
        """Rows of one block."""
        return self.group.extent // self.trips

    def _value(self, value: SSAValue, dim: int | None, internal: bool, user: Operation) -> SSAValue:
        """Return the operand's value in the loop: itself, a tile of it, or a buffer for one block."""
        if dim is None:
            return value
        if (value, dim) not in self._values:
            tensor = kernel.device_tensor(value)
            made = self._alloc(tensor, dim) if internal else self._tile(value, tensor, dim)
            made.location = value.owner.location if internal and isinstance(value.owner, Operation) else user.location
            self.block.add_op(made)
            self._values[value, dim] = made.results[0]
        return self._values[value, dim]

    def _alloc(self, tensor: DeviceTensor, dim: int) -> Operation:
        reserved = round_up(self.rows, tensor.lanes if dim == tensor.layout.stick else 1)
        extents = _with(tensor.layout.extents, dim, reserved)
        small = replace(
            tensor, shape=_with(tensor.shape, dim, self.rows), layout=replace(tensor.layout, extents=extents)
        )
        alloc = kernel.AllocOp(DeviceTensorType(small))
        self.allocs.append(alloc)
        return alloc

    def _tile(self, value: SSAValue, tensor: DeviceTensor, dim: int) -> Operation:
        type_ = DeviceTensorType(replace(tensor, shape=_with(tensor.shape, dim, self.rows)))
        return TileOp(value, dim, self.block.args[0], self.rows, type_)


def _with(values: Sequence[int], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])


def _install(block: Block, plan: Plan, spec: SpyreSpec) -> None:
    """Puts the loop in place of the group."""
    group, body = plan.group, _Body(plan.group, plan.trips)
    internal, last = group.internal(), group.ops[-1]
    if plan.by_rows:
        _divide_rows(body, spec)
    # What is made between the ops of the group is made before the loop.
    first = group.ops[0]
    between, own = first.next_op, set[Operation](group.ops)
    while between is not None and between is not last:
        following = between.next_op
        if between not in own:
            between.detach()
            block.insert_op_before(between, first)
        between = following
    bounds = [arith.ConstantOp(IntegerAttr(n, IndexType())) for n in (0, plan.trips, 1)]
    body.block.add_op(scf.YieldOp())
    lower, upper, step = (b.result for b in bounds)
    loop = scf.ForOp(lower, upper, step, [], Region(body.block))
    loop.location = first.location
    block.insert_ops_before([*bounds, loop], first)
    for op in reversed(group.ops):
        op.detach()
        op.erase()
    for value in internal:
        if isinstance(alloc := value.owner, kernel.AllocOp):
            alloc.detach()
            alloc.erase()
