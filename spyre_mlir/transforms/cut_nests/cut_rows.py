"""Pass `cut-rows`: cuts nests in two where no number of cores divides their rows well.

Sums and maxima along rows, and row-by-row functions of them, can be divided along their rows only. A prime number of
rows would leave all the work to one core, or to one core per stick of rows. After the cut, most of the rows are equal
slices for all cores, and the remaining ones a short nest.

Decision: docs/decisions/0007-equal-slices.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.argument_notes import placed_arguments
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import EmptyOp, NestOp, YieldOp, body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.legality import may_write, stick_for
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import UNIT, LinearExpr, StickLayout
from spyre_mlir.transforms.loop_to_kernel.choose_lane import (
    LITTLE,
    candidates,
    result_lane,
    usable_cores,
    write_cost,
)
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import dim_of, part_of
from spyre_mlir.transforms.utils.nests.unread_parts import drop_unread_parts

# Each kernel becomes two, so the time of one reduction has to fall that much.
CLEAR_GAIN = 2
# So many tensors of the size of a copy have to fit the scratchpads beside each other.
COPIES_IN_LX = 3


@dataclass(frozen=True)
class CutRowsPass(FunctionPass):
    """Cuts the rows of reductions in every function, and of what follows from them row by row."""

    name = "cut-rows"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Cut every group of nests that all cores would share then, if it is predicted to gain clearly."""
        done, parts = set[Operation](), set[Operation]()
        for nest in [o for o in function.body.block.ops if isinstance(o, NestOp)]:
            if nest not in done and (rows := _rows_to_cut(nest, spec)) is not None:
                group = _grown(nest, rows)
                if group.may_be_cut():
                    done.update(group.loops)
                    parts.update(group.cut(_most(group.rows, spec), spec))
        if parts:  # a reader of some rows, as of the first token of an image, may need one of the two parts
            drop_unread_parts(function, parts)


@dataclass
class _Group:
    """Nests that share their rows.

    Attributes:
        rows: how many.
        loops: the nests in order, each with its loop over rows.
        made: what they make, with the dimension that the rows walk.
    """

    rows: int
    loops: dict[NestOp, str] = field(default_factory=dict[NestOp, str])
    made: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def take(self, op: Operation) -> bool:
        """Append an op that reads what the group makes, if it goes through the same rows; return whether it does."""
        if not isinstance(op, NestOp) or not _is_walked(op):
            return False
        reads = [(index, self.made[v]) for v, index in zip(op.inputs, op.input_maps, strict=True) if v in self.made]
        names = {n for index, dim in reads for n, _ in index.data[dim].terms}
        if len(names) != 1:
            return False
        (name,) = names
        walked = dim_of(op.output_map, name)
        if op.space.extents[name] != self.rows or walked is None or any(dim_of(i, name) != d for i, d in reads):
            return False
        if any(sum(n == name for e in index.data for n, _ in e.terms) > 1 for index in op.input_maps):
            return False
        self.add(op, name, walked)
        return True

    def add(self, op: NestOp, name: str, dim: int) -> None:
        """Append a nest with its loop over rows, which walks a dimension of its result."""
        self.loops[op] = name
        self.made[op.result] = dim

    def may_be_cut(self) -> bool:
        """Return whether what others read of it is read by no nest of the group."""
        return all(len({u.operation in self.loops for u in value.uses}) < 2 for value in self.made)

    def cut(self, first: int, spec: SpyreSpec) -> list[NestOp]:
        """Replace the nests by those of the first rows, then those of the others, in place of the last; return them."""
        *_, last = self.loops
        block = last.parent_block()
        if block is None:
            raise ValueError("nests outside of a block")
        outside = {v: EmptyOp(v.type) for v in self.made if not any(u.operation in self.loops for u in v.uses)}
        filled: dict[SSAValue, SSAValue] = {}
        parts: list[NestOp] = []
        for value, empty in outside.items():
            empty.location = value.owner.location if isinstance(value.owner, Operation) else last.location
            block.insert_op_before(empty, last)
            filled[value] = empty.result
        for start, rows in ((0, first), (first, self.rows - first)):
            copies = self._copies(first, spec) if start == 0 else {}
            block.insert_ops_before(list(copies.values()), last)
            values: dict[SSAValue, SSAValue] = {value: copy.result for value, copy in copies.items()}
            for op, name in self.loops.items():
                made = {number: values[value] for number, value in enumerate(op.inputs) if value in values}
                part = part_of(op, name, slice(start, start + rows), made, filled.get(op.result))
                block.insert_op_before(part, last)
                parts.append(part)
                known = filled if op.result in filled else values
                known[op.result] = part.result
        for value, full in filled.items():
            value.replace_all_uses_with(full)
        for op in reversed(list(self.loops)):
            Rewriter.erase_op(op)
        return parts

    def _copies(self, rows: int, spec: SpyreSpec) -> dict[SSAValue, NestOp]:
        """Copies of the first rows of what several nests read, which the scratchpads have room for.

        They could hold no copy of all rows, and only with other slices the rows of each part.
        """
        reads, dims = Counter[SSAValue](), dict[SSAValue, set[int | None]]()
        for op, name in self.loops.items():
            reads.update({v for v in op.inputs if v not in self.made})
            for value, index in zip(op.inputs, op.input_maps, strict=True):
                dims.setdefault(value, set()).add(dim_of(index, name))
        found: dict[SSAValue, NestOp] = {}
        for value, count in reads.items():
            (dim,) = dims[value] if len(dims[value]) == 1 else (None,)
            # What the program makes lies as its writer likes: read in one piece, it is relaid out once for all readers.
            given = isinstance(value.owner, Block)
            if given and count > 1 and dim is not None and isinstance(element_of(value), AnyFloat):
                copy = _copy(value, dim, rows, next(iter(self.loops)))
                sticks = write_cost(shape_of(copy.result), len(shape_of(value)) - 1, DL16.name)
                if COPIES_IN_LX * sticks * STICK_BYTES <= spec.lx_usable_bytes * spec.cores_per_card:
                    found[value] = copy
        return found


def _copy(value: SSAValue, dim: int, rows: int, reader: NestOp) -> NestOp:
    """A copy of the first rows of a tensor."""
    element, shape = element_of(value), tuple(rows if d == dim else e for d, e in enumerate(shape_of(value)))
    index = IndexMapAttr(tuple(LinearExpr.of(f"d{d}") if e > 1 else LinearExpr() for d, e in enumerate(shape)))
    space = SpaceAttr(tuple(IterDim(f"d{d}", e) for d, e in enumerate(shape) if e > 1))
    body = Block(arg_types=[element])
    body.add_op(YieldOp(operands=[[body.args[0]]]))
    made = NestOp(space, [value], [index, index], TensorType(element, shape), Region(body))
    made.location = reader.location
    return made


def _rows_to_cut(op: NestOp, spec: SpyreSpec) -> str | None:
    """Return the loop over rows of a reduction that takes clearly less time in two parts, if there is one."""
    if op.combine is None or body_function(op.body.block) is not None or len(op.reduced) != 1 or not _is_walked(op):
        return None
    dims = sorted((d for d in op.space.data if d.name not in op.reduced), key=lambda d: -d.extent)
    if not dims or dim_of(op.output_map, dims[0].name) is None:
        return None
    name, rows = dims[0].name, dims[0].extent
    first = _most(rows, spec)
    if first in (0, rows):
        return None
    now = _sticks(op, name, rows, spec)
    cut = _sticks(op, name, first, spec) + _sticks(op, name, rows - first, spec)
    return name if now >= CLEAR_GAIN * cut and now - cut >= LITTLE else None


def _most(rows: int, spec: SpyreSpec) -> int:
    """Return the most rows that all cores share equally."""
    return rows - rows % spec.cores_per_card


def _sticks(op: NestOp, name: str, rows: int, spec: SpyreSpec) -> float:
    """Return what a reduction of so many rows moves in its best layout, in sticks, as if all cores took part."""
    lanes, least = DL16.elements_per_stick(), inf
    dims = tuple([IterDim(d.name, rows if d.name == name else d.extent) for d in op.space.data])
    extents = {d.name: d.extent for d in dims}
    sides = [(shape_of(op.inputs[0]), op.input_maps[0]), (shape_of(op.result), op.output_map)]
    shapes = [tuple(rows if i == dim_of(m, name) else e for i, e in enumerate(shape)) for shape, m in sides]
    placed = _is_placed(op.inputs[0])
    for lane in candidates(dims):
        kept = result_lane(op, lane)
        sticks = [stick_for(op.input_maps[0].data, lane, lanes), stick_for(op.output_map.data, kept, lanes)]
        if lane is None or sticks[0] is None or not may_write(op.output_map.data, shapes[1], kept, extents, lanes):
            continue
        moved = sum(write_cost(s, UNIT if d is None else d, DL16.name) for s, d in zip(shapes, sticks, strict=True))
        given = StickLayout.default(shapes[0], lanes).stick
        if placed and sticks[0] != given:  # a restickify first
            moved += write_cost(shapes[0], given, DL16.name) + write_cost(shapes[0], sticks[0], DL16.name)
        least = min(least, moved / usable_cores(dims, op.reduced, lane, lanes, spec))
    return least * spec.cores_per_card


def _is_placed(value: SSAValue) -> bool:
    """Return whether a tensor is an input in the default layout, or one of its size is computed from such an input."""
    while isinstance(value.owner, NestOp) and value.owner.combine is None and value.owner.dest is None:
        alike = [v for v in value.owner.inputs if shape_of(v) == shape_of(value)]
        if not alike:
            return False
        value = alike[0]
    if not isinstance(value, BlockArgument) or not isinstance(function := value.block.parent_op(), FuncOp):
        return False
    return value.index in placed_arguments(function)


def _grown(op: NestOp, name: str) -> _Group:
    """Return the group that begins with a nest and ends before others read what it makes or fill what it reads."""
    group = _Group(op.space.extents[name])
    group.add(op, name, dim_of(op.output_map, name) or 0)
    for other in _behind(op):
        fills = isinstance(other, NestOp) and any(other.dest in nest.inputs for nest in group.loops)
        if fills or (any(value in group.made for value in other.operands) and not group.take(other)):
            break
    return group


def _behind(op: Operation) -> Iterator[Operation]:
    while (following := op.next_op) is not None:
        yield following
        op = following


def _is_walked(op: NestOp) -> bool:
    """Return whether a nest is no product, makes a tensor of its own, and nobody says how it is divided."""
    product = op.combine is not None and body_function(op.body.block) is not None
    return op.dest is None and not product and hint_of(op) is None
