"""Pass `part-rows`: gives rows of all batches behind each other the two dimensions that they have elsewhere.

```mlir
%a = spyre.loop.nest [b = 2, m = 347, n = 768, k = 768] ins(%x[b, m, k], ...) -> [b * 347 + m, n] : tensor<694x768xf16>
%c = spyre.loop.nest [d = 694, n = 768] ins(%a[d, n] : tensor<694x768xf16>)   -> [d, n] : tensor<694x768xf16>
```
become
```mlir
%a = spyre.loop.nest [b = 2, m = 347, n = 768, k = 768] ins(%x[b, m, k], ...) -> [b, m, n] : tensor<2x347x768xf16>
%c = spyre.loop.nest [d_0 = 2, d_1 = 347, n = 768] ins(%a[d_0, d_1, n] : ...) -> [d_0, d_1, n] : tensor<2x347x768xf16>
```
No layout suits a product or a sum with batches on one side and flat rows on the other, and `pad-rows` follows the rows
of a batch further. Element-wise nests alone change between the two for nothing, so their rows stay as they are.

Decision: docs/decisions/0205-rows-of-batches.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, islice

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import NestOp, body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.transforms.aten_to_loop.coalesced_loops import MOST_LOOPS
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import nest_like

# Products of fewer rows per batch take longer than those of flat rows, even if these need other layouts around them.
PRODUCT_ROWS = 8
# The same where no product but a sum alone changes between batches and flat rows.
SUM_ROWS = 32


@dataclass(frozen=True)
class PartRowsPass(FunctionPass):
    """Parts the flat rows of batches in every function."""

    name = "part-rows"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Part every group of tensors with which fewer sums and products then change between batches and flat rows."""
        nests = [o for o in function.body.block.ops if isinstance(o, NestOp)]
        parts, tried = _Parts(), set[SSAValue]()
        for nest in nests:
            for value, index in _accesses(nest):
                rows = _rows_of_batches(nest, value, index)
                if rows is not None and value not in tried:
                    group = _Group.around(value, rows, parts)
                    tried |= group.tensors
                    if group.gains():
                        parts.add(group)
        parts.rewrite(nests)


@dataclass
class _Parts:
    """What is parted.

    Attributes:
        rows: tensors, with the rows of each of their batches.
        loops: of nests that make or read them, the loops that become two, with the extent of the inner one.
    """

    rows: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    loops: dict[NestOp, dict[str, int]] = field(default_factory=dict[NestOp, dict[str, int]])

    def add(self, group: _Group) -> None:
        """Take the tensors and loops of a group."""
        self.rows |= dict.fromkeys(group.tensors, group.rows)
        for nest, names in group.loops.items():
            self.loops.setdefault(nest, {}).update(dict.fromkeys(names, group.rows))

    def rewrite(self, nests: list[NestOp]) -> None:
        """Replace all nests that make or read such a tensor, of those in order."""
        made, old = dict[SSAValue, SSAValue](), [nest for nest in nests if nest in self.loops]
        for nest in old:
            new = self._parted(nest, made)
            Rewriter.insert_op(new, InsertPoint.before(nest))
            made[nest.result] = new.result
            if nest.result not in self.rows:
                nest.result.replace_all_uses_with(new.result)
        for nest in reversed(old):
            Rewriter.erase_op(nest)

    def _parted(self, nest: NestOp, made: Mapping[SSAValue, SSAValue]) -> NestOp:
        """The nest over batches and rows; it reads the new tensors."""
        dims, places = list[IterDim](), dict[str, LinearExpr]()
        for dim in nest.space.data:
            if (rows := self.loops[nest].get(dim.name)) is None:
                dims.append(dim)
                places[dim.name] = LinearExpr.of(dim.name)
            else:
                outer, inner = islice((n for n in _numbered(dim.name) if n not in nest.space.extents), 2)
                dims += [IterDim(outer, dim.extent // rows), IterDim(inner, rows)]
                places[dim.name] = LinearExpr(0, ((outer, rows), (inner, 1)))
        space, maps = SpaceAttr(tuple(dims)), list[IndexMapAttr]()
        for value, index in _accesses(nest):
            exprs = tuple(e.at(places) for e in index.data)
            if value in self.rows:
                both = _batch_and_row(exprs[0], space.extents, self.rows[value])
                assert both is not None, "groups hold tensors that go batch by batch alone"
                exprs = (*both, *exprs[1:])
            maps.append(IndexMapAttr(exprs))
        first, *others = shape_of(nest.result) or (1,)
        kind = nest.result.type
        if (rows := self.rows.get(nest.result)) is not None:
            kind = TensorType(element_of(nest.result), (first // rows, rows, *others))
        inputs = [made.get(v, v) if v in self.rows else v for v in nest.inputs]
        return nest_like(nest, space, inputs, maps, kind, nest.dest)


@dataclass
class _Group:
    """Tensors whose rows are parted alike.

    Attributes:
        rows: of each batch.
        known: other groups.
        tensors: the tensors.
        loops: all nests that make or read them, with the loops that become two.
    """

    rows: int
    known: _Parts
    tensors: set[SSAValue] = field(default_factory=set[SSAValue])
    loops: dict[NestOp, set[str]] = field(default_factory=dict[NestOp, set[str]])

    @classmethod
    def around(cls, value: SSAValue, rows: int, known: _Parts) -> _Group:
        """Returns a tensor with all that nests make or read at the same rows, as far as they can be parted."""
        group, pending = cls(rows, known), [value]
        while pending:
            value = pending.pop()
            if value in group.tensors or value in known.rows or not group._may_have(value):
                continue
            group.tensors.add(value)
            for nest, index in _uses(value):
                names = group.loops.setdefault(nest, set())
                if _batch_and_row(index.data[0], nest.space.extents, rows) is None:
                    names |= {name for name, _ in index.data[0].terms}
                pending += [v for v, i in _accesses(nest) if i.data[:1] == index.data[:1]]
        return group

    def gains(self) -> bool:
        """Return whether more products and sums lose flat rows on one side than nests get them, by enough rows each."""
        products = sums = given = 0
        for nest, names in self.loops.items():
            for value, index in _accesses(nest):
                inside = value in self.tensors
                if inside and nest.combine is not None and _rows_of_batches(nest, value, index) is not None:
                    is_product = body_function(nest.body.block) is not None
                    products += is_product
                    sums += not is_product
                others = index.data[1:] if inside else index.data
                given += any(name in names for expr in others for name, _ in expr.terms)
        return self.rows >= (PRODUCT_ROWS if products else SUM_ROWS) and products + sums > given

    def _may_have(self, value: SSAValue) -> bool:
        """Whether a tensor is made by one nest and read by nests alone, which can all go batch by batch."""
        if not isinstance(value.owner, NestOp) or value.owner.dest is not None:
            return False
        if not all(isinstance(u.operation, NestOp) and u.index < len(u.operation.inputs) for u in value.uses):
            return False
        shape = shape_of(value)
        walked = all(self._may_walk(nest, index.data[0], shape[0]) for nest, index in _uses(value)) if shape else False
        return walked and len(shape) > 1 and shape[0] % self.rows == 0

    def _may_walk(self, nest: NestOp, expr: LinearExpr, extent: int) -> bool:
        """Whether a nest has loops over batches and rows, or gets them in place of a loop over all rows."""
        if hint_of(nest) is not None:
            return False
        if _batch_and_row(expr, nest.space.extents, self.rows) is not None:
            return True
        ((name, step), *more) = expr.terms or (("", 0),)
        if more or step != 1 or expr.const or nest.space.extents[name] != extent or name in nest.reduced:
            return False
        now, others = self.loops.get(nest, set()), self.known.loops.get(nest, {})
        return name in now or (name not in others and len(nest.space.data) + len(now) + len(others) < MOST_LOOPS)


def _batch_and_row(expr: LinearExpr, extents: Mapping[str, int], rows: int) -> tuple[LinearExpr, LinearExpr] | None:
    """The batch and the row in it that a flat row is; None where loops cross from one batch to the next."""
    batch = LinearExpr(expr.const // rows, tuple((n, c // rows) for n, c in expr.terms if c % rows == 0))
    row = LinearExpr(expr.const % rows, tuple((n, c) for n, c in expr.terms if c % rows))
    return (batch, row) if row.first(extents) >= 0 and row.last(extents) < rows else None


def _numbered(name: str) -> Iterator[str]:
    """Names after another."""
    return (f"{name}_{number}" for number in count())


def _rows_of_batches(nest: NestOp, value: SSAValue, index: IndexMapAttr) -> int | None:
    """How many rows a batch has, if a nest goes through all flat rows of a tensor batch by batch."""
    if not index.data or index.data[0].const or len(index.data[0].terms) != 2:
        return None
    (outer, rows), (inner, step) = sorted(index.data[0].terms, key=lambda term: -term[1])
    extents = nest.space.extents
    whole = step == 1 and rows == extents[inner] and extents[outer] * rows == shape_of(value)[0]
    return rows if whole else None


def _accesses(nest: NestOp) -> Iterator[tuple[SSAValue, IndexMapAttr]]:
    """What a nest reads, then what it makes, each with its map."""
    yield from zip((*nest.inputs, nest.result), nest.maps.data, strict=True)


def _uses(value: SSAValue) -> Iterator[tuple[NestOp, IndexMapAttr]]:
    """The nests that make or read a tensor, each with its map."""
    if isinstance(value.owner, NestOp):
        yield value.owner, value.owner.output_map
    for use in value.uses:
        if isinstance(use.operation, NestOp):
            yield use.operation, use.operation.input_maps[use.index]


__all__ = ["PartRowsPass"]
