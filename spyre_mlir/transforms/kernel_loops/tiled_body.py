"""The body of a loop over blocks of rows: tiles of what the group reads, small buffers for what it makes.

Decision: docs/decisions/0035-a-tile-is-a-view-in-a-loop.md
Decision: docs/decisions/0168-cores-make-the-same-columns-of-a-weight.md
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.planning.trips import TripSpan
from spyre_mlir.transforms.kernel_loops.repeated_copies import Repeated, repeated_copies
from spyre_mlir.transforms.kernel_loops.repeated_weights import repeat_in
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow
from spyre_mlir.transforms.kernel_loops.running_sums import RunningSum


@dataclass
class TiledBody:
    """A loop body that runs the kernels of a group on one block of rows.

    Copies that every trip would repeat are left out.

    Attributes:
        group: the kernels, which stay where they are.
        span: the blocks that the loop goes through.
        block: the body, without its end.
        allocs: buffers that one block of rows needs.
        sources: for each kernel of the body, the number of the group's kernel that it stands for.
        total: what is around the loop if the group ends with a sum over its rows.
    """

    group: RowGroup
    span: TripSpan
    block: Block = field(default_factory=lambda: Block(arg_types=[IndexType()]))
    allocs: list[kernel.AllocOp] = field(default_factory=list[kernel.AllocOp])
    sources: list[int] = field(default_factory=list[int])
    total: RunningSum | None = None
    _values: dict[tuple[SSAValue, int, int], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, int, int], SSAValue]
    )

    def __post_init__(self) -> None:
        self.block.args[0].name_hint = "i"
        span, last = self.span, len(self.group.ops) - 1
        internal, repeated = set(self.group.internal()), repeated_copies(self.group, span.pieces // span.size)
        for number, op in enumerate(self.group.ops):
            if number == last and self.group.is_summed and isinstance(op, kernel.ComputeOp):
                self._add_up(op, internal)
            elif op.output not in repeated:
                self._append(number, self._tiled(number, internal, repeated))
        if span.copies > 1:
            repeat_in(self.block, span.copies)

    def _append(self, number: int, op: Operation) -> None:
        self.sources.append(number)
        self.block.add_op(op)

    def _add_up(self, op: kernel.ComputeOp, internal: Container[SSAValue]) -> None:
        """Put the additions of a trip to the sum that ends the group into the body."""
        number, loop, (dim, _) = len(self.group.ops) - 1, self.group.loops[-1], self.group.rows[-1]
        self.total = total = RunningSum.of(op, loop)
        walked = op.space.extents[loop]
        value, index = self._value(op.inputs[0], dim, walked, op.inputs[0] in internal, op), total.first_row()
        if (rows := self.span.extent(op.space.extents[loop])) > 1:
            buffer, part = total.part(value, rows)
            self.block.add_op(buffer)
            self.allocs.append(buffer)
            self._append(number, part)
            value, index = buffer.result, op.maps.data[-1]
        self._append(number, total.added(value, index))

    def _tiled(self, number: int, internal: Container[SSAValue], repeated: Mapping[SSAValue, Repeated]) -> Operation:
        """A kernel of the group on one block of rows, behind the tiles and buffers that it needs."""
        op, loop, rows = self.group.ops[number], self.group.loops[number], self.group.rows[number]
        values, maps = list[SSAValue](), list[IndexMapAttr]()
        for value, dim, index in zip(op.operands, rows, op.maps.data, strict=True):
            copy = repeated.get(value)
            walked = 0 if dim is None else dict(index.data[dim].terms)[loop] * op.space.extents[loop]
            values.append(self._value(value, dim, walked, value in internal, op) if copy is None else copy.source)
            maps.append(index if copy is None else copy.index(index.data))
        dims = [IterDim(d.name, self.span.extent(d.extent) if d.name == loop else d.extent) for d in op.space.data]
        if not repeated.keys().isdisjoint(op.operands):
            # One row, which is all that a trip has: without its loop a product has one loop of columns.
            first = {d.name: LinearExpr() if d.name == loop else LinearExpr.of(d.name) for d in dims}
            maps = [IndexMapAttr(tuple(expr.at(first) for expr in index.data)) for index in maps]
            dims = [d for d in dims if d.name != loop]
        new = op.clone()
        new.location = op.location
        new.operands, new.space, new.maps = values, SpaceAttr(tuple(dims)), ArrayAttr(maps)
        return new

    @property
    def kernels(self) -> list[kernel.KernelOp]:
        """The kernels in the body."""
        return [op for op in self.block.ops if isinstance(op, kernel.KernelOp)]

    def within(self, loops: Sequence[str]) -> RowGroup | None:
        """Return all kernels by another of their loops, by its names in the group; None if they do not share it."""
        first, *rest = self.kernels
        groups = (g for g in grow(first, rest) if g.loops[0] == loops[self.sources[0]])
        found = next(groups, None)
        return found if found is not None and len(found.ops) == len(rest) + 1 else None

    def drop(self) -> None:
        """Erase the body."""
        for op in reversed(list(self.block.ops)):
            Rewriter.erase_op(op)
        if self.total is not None:
            self.total.drop()

    def loop(self) -> list[Operation]:
        """Return the loop behind its bounds, between the kernels around it."""
        bounds = [arith.ConstantOp(IntegerAttr(n, IndexType())) for n in self.span.bounds]
        self.block.add_op(scf.YieldOp())
        lower, upper, step = (b.result for b in bounds)
        loop = scf.ForOp(lower, upper, step, [], Region(self.block))
        loop.location = self.group.ops[0].location
        total = self.total
        before, behind = ([], []) if total is None else ([total.zero, total.total, total.fill], [total.copy])
        return [*before, *bounds, loop, *behind]

    def _value(self, value: SSAValue, dim: int | None, walked: int, internal: bool, user: Operation) -> SSAValue:
        """Return the operand's value in the loop: itself, a tile of it, or a buffer for one block.

        The loop walks so many elements of `dim`; those of them that a trip reads beside its own are in its tile, too.
        """
        if dim is None:
            return value
        if (value, dim, walked) not in self._values:
            tensor = kernel.device_tensor(value)
            made = (
                self._alloc(tensor, dim, value.owner.attributes)
                if internal and isinstance(value.owner, Operation)
                else self._tile(value, tensor, dim, walked)
            )
            made.location = value.owner.location if internal and isinstance(value.owner, Operation) else user.location
            self.block.add_op(made)
            self._values[value, dim, walked] = made.results[0]
        return self._values[value, dim, walked]

    def _alloc(self, tensor: DeviceTensor, dim: int, attributes: Mapping[str, Attribute]) -> Operation:
        alloc = kernel.AllocOp(DeviceTensorType(tensor.shorter(dim, self.span.extent(tensor.shape[dim]))))
        alloc.attributes |= attributes
        self.allocs.append(alloc)
        return alloc

    def _tile(self, value: SSAValue, tensor: DeviceTensor, dim: int, walked: int) -> Operation:
        rows = self.span.extent(walked) + tensor.shape[dim] - walked
        type_ = DeviceTensorType(replace(tensor, shape=_with(tensor.shape, dim, rows)))
        return TileOp(value, dim, self.block.args[0], self.span.stride(walked), type_)


def put_around(
    group: RowGroup, spans: Sequence[TripSpan], moved: Callable[[Sequence[Operation], Sequence[Operation]], None]
) -> list[TiledBody]:
    """Put loops in place of a group, and return their bodies.

    Args:
        group: the kernels.
        spans: the blocks that the loops go through, one loop after the other.
        moved: is told what stands for which kernels of the group.
    """
    bodies = [TiledBody(group, span) for span in spans]
    before, after = list[Operation](), list[Operation]()
    for body in bodies:
        around = () if body.total is None else body.total.around
        before += [*(group.ops[number] for number in body.sources), *(group.ops[-1] for _ in around)]
        after += [*body.kernels, *around]
    moved(before, after)
    install(bodies)
    return bodies


def install(bodies: Sequence[TiledBody]) -> None:
    """Put loops in place of the group whose blocks of rows they go through together."""
    group = bodies[0].group
    first, last, internal = group.ops[0], group.ops[-1], group.internal()
    block = first.parent_block()
    if block is None:
        raise ValueError("a group of kernels outside of a block")
    # What is made between the ops of the group is made before the loops.
    between, own = first, set[Operation](group.ops)
    while between is not None and between is not last:
        following = between.next_op
        if between not in own:
            between.detach()
            block.insert_op_before(between, first)
        between = following
    for body in bodies:
        block.insert_ops_before(body.loop(), first)
    for op in reversed(group.ops):
        Rewriter.erase_op(op)
    for value in internal:
        if isinstance(alloc := value.owner, kernel.AllocOp):
            Rewriter.erase_op(alloc)


def _with(values: Sequence[int], place: int, value: int) -> tuple[int, ...]:
    return (*values[:place], value, *values[place + 1 :])


__all__ = ["TiledBody", "install", "put_around"]
