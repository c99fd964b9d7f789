"""Pass `pad-rows`: appends rows without readers, where no number of cores divides the rows of many nests.

```mlir
%0 = spyre.loop.nest [m = 197, n = 768] ins(%x[m, n] : tensor<197x768xf16>) -> [m, n] : tensor<197x768xf16>
```
becomes a nest of rows that 25 cores share, or 8 beside 4 that share columns, behind a copy of `%x` with zeros after it:
```mlir
%1 = spyre.loop.nest [m = 200, n = 768] ins(%padded[m, n] : tensor<200x768xf16>) -> [m, n] : tensor<200x768xf16>
```
Rows are followed through nests that compute each row from the same row, products and normalisations among them. Others
that read them, such as a product over all keys, have the loops that they had and read the first rows.

Decision: docs/decisions/0202-rows-without-readers.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from math import prod
from typing import assert_never

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FloatAttr, ModuleOp, TensorType
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.argument_notes import is_prepared
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.modules import copy_of, take_apart
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopConstantOp, NestOp, YieldOp
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import SpyreError
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr, StickError
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPricing
from spyre_mlir.transforms.cut_nests.cut_columns import CutColumnsPass
from spyre_mlir.transforms.cut_nests.cut_rows import CutRowsPass
from spyre_mlir.transforms.loop_to_kernel.conversion import PlansLayouts
from spyre_mlir.transforms.utils.nests.nest_parts import nest_like, part_of
from spyre_mlir.transforms.utils.nests.shared_rows import SharedRows, filled_parts, shared_rows

# Reductions of rows have to take so many times less time, or nothing is tried.
CLEAR_GAIN = 1.2
# The whole function has to take so many times less time.
GAIN = 1.02
# The part of the rows that may be appended.
MOST_ADDED = 0.25
# Products divide rows over so many cores beside columns.
ROW_CORES = 8


@dataclass(frozen=True)
class PadRowsPass(PlansLayouts):
    """Pads the rows of nests that follow from one another row by row, where a function is predicted to gain.

    Attributes:
        keep_float32: as for the conversion to kernels, where float32 tensors have sticks of their own.
        keep_float32_in: the same for some operations alone; nothing is padded then.
        why: of no effect.
        relaid: for how many sticks one counts that a change of layout of DL16 moves.
        numbers: of the cost model that differ from its calibrated profile, as ``name=value``.
    """

    name = "pad-rows"

    numbers: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Pad every function that gains by it; none if what is padded cannot be planned."""
        spec = spec_of(ctx, op)
        if self.keep_float32_in or not any(_paddings(function, spec) for function in functions(op)):
            return
        before, after = copy_of(op), copy_of(op)
        for function in functions(after):
            for padding in _paddings(function, spec):
                padding.pad()
        times = [us for us in (self._us(ctx, module) for module in (before, after)) if us is not None]
        if len(times) < 2:
            return
        for function, before_us, after_us in zip(functions(op), *times, strict=True):
            if after_us * GAIN <= before_us:
                for padding in _paddings(function, spec):
                    padding.pad()

    def _us(self, ctx: Context, module: ModuleOp) -> list[float] | None:
        """Predicted times of the functions of a module, which is used up; None if one cannot be planned."""
        try:
            for pass_ in (CutRowsPass(), CutColumnsPass(numbers=self.numbers)):
                pass_.apply(ctx, module)
            planned = self.planned(ctx, module, checked=False)
            return LayoutPricing(ctx, self.numbers).without_loops(module, planned)
        except (SpyreError, StickError):
            return None
        finally:
            take_apart(module)


class _Source(Enum):
    """How a tensor gets more rows."""

    CONSTANT = auto()
    WEIGHT = auto()
    FILLED = auto()
    COPIED = auto()

    @classmethod
    def of(cls, function: func.FuncOp, value: SSAValue) -> _Source:
        """Returns the way that costs least: known numbers go on, and the host pads weights when it lays them out."""
        if isinstance(value.owner, LoopConstantOp):
            return cls.CONSTANT
        if is_prepared(function, value):
            return cls.WEIGHT
        return cls.FILLED if filled_parts(value) else cls.COPIED


def _paddings(function: func.FuncOp, spec: SpyreSpec) -> list[_Padding]:
    """The groups of a function whose reductions gain clearly by more rows."""
    found = list[_Padding]()
    for group in shared_rows(function, lambda n: spec.cores_per_card < n and _cores((n,), spec) < spec.cores_per_card):
        if (rows := _padded_rows(group, spec)) is not None:
            found.append(_Padding(group, {v: _Source.of(function, v) for v in group.sources}, rows, spec))
    return found


def _padded_rows(group: SharedRows, spec: SpyreSpec) -> int | None:
    """How many rows a group had best have; None if reductions would not gain clearly."""
    reductions = [_Reduction.of(op, group.loops[op]) for op in group.reductions]

    def slowest(rows: int) -> float:
        return sum(rows * r.size / _cores((rows, *r.others), spec) for r in reductions)

    def shared(rows: int) -> float:
        return sum(rows * r.size / spec.cores_per_card for r in reductions)

    most = group.rows + int(group.rows * MOST_ADDED)
    fitting = [
        n for n in range(group.rows + 1, most + 1) if all(n * prod(r.others) % ROW_CORES == 0 for r in reductions)
    ]
    # Products and functions of rows count like the reductions, but all cores share them.
    best = min(fitting, key=lambda n: slowest(n) + shared(n), default=group.rows)
    return best if reductions and slowest(group.rows) >= CLEAR_GAIN * slowest(best) else None


@dataclass(frozen=True)
class _Reduction:
    """A reduction of rows.

    Attributes:
        size: how many elements are reduced for each row.
        others: extents of the loops of its result beside the rows.
    """

    size: int
    others: tuple[int, ...]

    @classmethod
    def of(cls, op: NestOp, rows: str) -> _Reduction:
        """Takes it from a nest and its loop over rows."""
        others = {d.name: d.extent for d in op.space.data if d.name != rows}
        return cls(prod(others.values()), tuple(e for n, e in others.items() if n not in op.reduced))


def _cores(extents: tuple[int, ...], spec: SpyreSpec) -> int:
    """The most cores that share loops equally."""
    counts = {1}
    for extent in extents:
        counts |= {c * d for c in counts for d in divisors(extent, spec.cores_per_card // c)}
    return max(counts)


@dataclass(frozen=True)
class _Padding:
    """More rows for a group.

    Attributes:
        group: nests that share their rows.
        sources: how tensors that they read and others make get more rows.
        rows: how many they get.
        spec: the card.
    """

    group: SharedRows
    sources: Mapping[SSAValue, _Source]
    rows: int
    spec: SpyreSpec

    def pad(self) -> None:
        """Give the nests of a group more rows, which hold what follows from zeros."""
        padded = dict[SSAValue, SSAValue]()
        for op, loop in self.group.loops.items():
            for number, value in enumerate(op.inputs):
                dim = self.group.sources.get(value)
                if dim is None or op.input_maps[number].data[dim] != LinearExpr.of(loop):
                    continue
                if value not in padded:
                    padded[value] = _longer(value, dim, self.rows, op, self.sources[value], self._whole(value))
                op.operands[number] = padded[value]
            made = part_of(op, loop, slice(0, self.rows), {})
            Rewriter.insert_op(made, InsertPoint.before(op))
            op.result.replace_all_uses_with(made.result)
            Rewriter.erase_op(op)

    def _whole(self, value: SSAValue) -> int:
        """How many rows are copied at once: of a tensor on the card, as many as all cores share equally."""
        rows, cores = self.group.rows, self.spec.cores_per_card
        return rows - rows % cores if self.sources[value] is _Source.COPIED else rows


def _longer(value: SSAValue, dim: int, rows: int, reader: NestOp, source: _Source, first: int) -> SSAValue:
    """A tensor with more rows, of zeros if they are not known."""
    kind = TensorType(element_of(value), tuple(rows if d == dim else e for d, e in enumerate(shape_of(value))))
    match source:
        case _Source.CONSTANT:
            assert isinstance(value.owner, LoopConstantOp)
            constant = LoopConstantOp(value.owner.value, kind)
            constant.location = value.owner.location
            Rewriter.insert_op(constant, InsertPoint.before(reader))
            return constant.result
        case _Source.FILLED:
            return _refilled(value, dim, kind)
        case _Source.WEIGHT | _Source.COPIED:
            return _copied(value, dim, kind, reader, first)
        case _:
            assert_never(source)


def _refilled(value: SSAValue, dim: int, kind: TensorType) -> SSAValue:
    """A tensor that nests fill part by part, with rows of zeros as one more part; all its readers get it."""
    parts = filled_parts(value)
    empty = parts[0].dest
    if empty is None or not isinstance(empty.owner, EmptyOp):
        raise ValueError("parts of no tensor")
    larger = EmptyOp(kind)
    larger.location = empty.owner.location
    Rewriter.insert_op(larger, InsertPoint.before(empty.owner))
    filled: SSAValue = larger.result
    for part in parts:
        filled = _into(part, filled)
    filled = _with_zeros(filled, dim, shape_of(value)[dim], parts[-1])
    value.replace_all_uses_with(filled)
    for op in (*reversed(parts), empty.owner):
        Rewriter.erase_op(op)
    return filled


def _into(op: NestOp, dest: SSAValue) -> SSAValue:
    """Let a nest fill its part of a larger tensor."""
    made = nest_like(op, op.space, op.inputs, op.maps.data, dest.type, dest)
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made.result


def _copied(value: SSAValue, dim: int, kind: TensorType, reader: NestOp, first: int) -> SSAValue:
    """A copy of a tensor with rows of zeros behind it, in front of its first reader; the first rows by themselves."""
    empty = EmptyOp(kind)
    empty.location = reader.location
    Rewriter.insert_op(empty, InsertPoint.before(reader))
    copy, shape = empty.result, shape_of(value)
    for start, end in ((0, first), (first, shape[dim])):
        if start < end:
            space, index = _loops(tuple(end - start if d == dim else e for d, e in enumerate(shape)))
            part = IndexMapAttr(tuple(LinearExpr(start, e.terms) if d == dim else e for d, e in enumerate(index.data)))
            copy = _copy(value, space, (part, part), copy, reader)
    return _with_zeros(copy, dim, shape[dim], reader)


def _with_zeros(value: SSAValue, dim: int, first: int, place: NestOp) -> SSAValue:
    """A tensor with zeros in all rows from the first one on."""
    zero = LoopConstantOp(FloatAttr(0.0, 64), TensorType(element_of(value), ()))
    zero.location = place.location
    Rewriter.insert_op(zero, InsertPoint.before(place))
    space, index = _loops(tuple(e - first if d == dim else e for d, e in enumerate(shape_of(value))))
    written = IndexMapAttr(tuple(e if d != dim else LinearExpr(first, e.terms) for d, e in enumerate(index.data)))
    return _copy(zero.result, space, (IndexMapAttr(()), written), value, place)


def _copy(
    value: SSAValue, space: SpaceAttr, maps: tuple[IndexMapAttr, IndexMapAttr], dest: SSAValue, place: NestOp
) -> SSAValue:
    body = Block(arg_types=[element_of(value)])
    body.add_op(YieldOp(operands=[[body.args[0]]]))
    made = NestOp(space, [value], maps, dest.type, Region(body), dest=dest)
    made.location = place.location
    Rewriter.insert_op(made, InsertPoint.before(place))
    return made.result


def _loops(shape: tuple[int, ...]) -> tuple[SpaceAttr, IndexMapAttr]:
    """Loops over a tensor, and its map."""
    index = IndexMapAttr(tuple(LinearExpr.of(f"d{d}") if e > 1 else LinearExpr() for d, e in enumerate(shape)))
    return SpaceAttr(tuple(IterDim(f"d{d}", e) for d, e in enumerate(shape) if e > 1)), index


__all__ = ["PadRowsPass"]
