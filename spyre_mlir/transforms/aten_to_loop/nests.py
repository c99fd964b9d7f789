"""Construction of `spyre.loop` nests from index views of base tensors, aligned to common loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from spyre_mlir.dialects.ir.modules import KeptOp, copy_on
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import NestOp, YieldOp
from spyre_mlir.dialects.spyre.scalars import scalar_op
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.sticks import IndexMap, LinearExpr
from spyre_mlir.ops.index_views import IndexView, NotAView
from spyre_mlir.ops.table import OpEntry

_KEPT = 1 << 9


@dataclass(frozen=True)
class TensorView:
    """A tensor as an index view of a base tensor of the loop level."""

    base: SSAValue
    view: IndexView

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the view."""
        return self.view.shape

    @property
    def is_base(self) -> bool:
        """Return whether the view is the base tensor unchanged."""
        plain = IndexView.identity(self.view.base)
        return self.shape == self.view.base and index_map(self.view, _own_names(self.view)) == index_map(
            plain, _own_names(plain)
        )


def whole(value: SSAValue) -> TensorView:
    """Return the identity view of a tensor."""
    return TensorView(value, IndexView.identity(shape_of(value)))


def _own_names(view: IndexView) -> dict[int, str]:
    """Names of a view's axes by their place, so that equal views get equal names."""
    return {a: f"{i}.{j}" for i, axes in enumerate(view.dims) for j, a in enumerate(axes)}


def boundaries(view: IndexView, dim: int) -> set[int]:
    """Return how many elements lie inside each axis of a view dimension."""
    sizes, inner = {1}, 1
    for axis in reversed(view.dims[dim]):
        sizes.add(inner)
        inner *= view.extents[axis]
    return sizes


def refine_together(views: Sequence[IndexView], dim: int) -> list[IndexView]:
    """Split the axes of one dimension so that all views have the same factors there.

    Raises:
        NotAView: the factors of two views do not divide one another.
    """
    if views[0].shape[dim] == 1:
        return list(views)
    sizes = sorted({s for v in views for s in boundaries(v, dim)}, reverse=True)
    for outer, inner in pairwise(sizes):
        if outer % inner:
            raise NotAView(f"dimension {dim} is cut after {outer} and after {inner} elements")
    return [v.refine(dim, tuple(sizes)) for v in views]


def factors(view: IndexView, dim: int) -> list[int]:
    """Return the extents of the axes of a view dimension, outermost first."""
    return [view.extents[a] for a in view.dims[dim]]


def absent(view: IndexView, dim: int) -> bool:
    """Return whether a dimension of extent above 1 is broadcast."""
    used = {a for row in view.terms for a, _ in row}
    return bool(view.dims[dim]) and not any(a in used for a in view.dims[dim])


def names_for(stem: str, count: int) -> list[str]:
    """Return names of the loops one dimension becomes: the stem alone, or numbered parts of it."""
    return [stem] if count == 1 else [f"{stem}_{i}" for i in range(count)]


def index_map(view: IndexView, names: dict[int, str]) -> IndexMap:
    """Return the map of a view's base dimensions onto named loops."""
    return tuple(
        LinearExpr(offset, tuple((names[a], c) for a, c in row))
        for offset, row in zip(view.offsets, view.terms, strict=True)
    )


def merged(names: Sequence[str], extents: Sequence[int]) -> LinearExpr:
    """Return the row-major index of several loops taken together."""
    terms, inner = list[tuple[str, int]](), 1
    for name, extent in reversed(list(zip(names, extents, strict=True))):
        terms.insert(0, (name, inner))
        inner *= extent
    return LinearExpr(0, tuple(terms))


@dataclass(frozen=True)
class NestLoops:
    """The loops of a nest by logical dimension, and the maps of its operands onto them."""

    names: tuple[tuple[str, ...], ...]
    extents: tuple[tuple[int, ...], ...]
    maps: tuple[IndexMap, ...]

    def exprs(self) -> IndexMap:
        """Return one expression per logical dimension: the map of a fresh tensor of that shape."""
        return tuple(merged(n, e) for n, e in zip(self.names, self.extents, strict=True))

    def space(self) -> SpaceAttr:
        """All loops, outermost first."""
        return SpaceAttr(
            tuple(
                IterDim(n, e)
                for ns, es in zip(self.names, self.extents, strict=True)
                for n, e in zip(ns, es, strict=True)
            )
        )


def align(views: Sequence[IndexView], stems: Sequence[str]) -> NestLoops:
    """Find loops for views of one common shape.

    Raises:
        NotAView: two views cut a dimension in ways that do not divide one another, or that no walk can follow.
    """
    return _align(tuple(views), tuple(stems))


@lru_cache(maxsize=_KEPT)
def _align(views: tuple[IndexView, ...], stems: tuple[str, ...]) -> NestLoops:
    aligned = list(views)
    for dim in range(len(stems)):
        aligned = refine_together(aligned, dim)
    if any(view.nests and not cut.nests for view, cut in zip(views, aligned, strict=True)):
        raise NotAView("a cut of a dimension leaves steps that do not divide one another")
    names = tuple(tuple(names_for(stem, len(aligned[0].dims[d]))) for d, stem in enumerate(stems))
    maps = tuple(
        index_map(v, {a: n for axes, ns in zip(v.dims, names, strict=True) for a, n in zip(axes, ns, strict=True)})
        for v in aligned
    )
    return NestLoops(names, tuple(tuple(factors(aligned[0], d)) for d in range(len(stems))), maps)


def body_of(
    entry: OpEntry | None, inputs: Sequence[SSAValue], result: Attribute, numbers: Mapping[str, float] | None = None
) -> Region:
    """Return a nest body that applies `entry` to one element of each input and to numbers, or copies."""
    block = Block(arg_types=[element_of(v) for v in inputs])
    if entry is None:
        block.add_op(YieldOp.create(operands=[block.args[0]]))
    else:
        op = scalar_op(entry, block.args, result, numbers)
        block.add_ops([op, YieldOp.create(operands=[op.results[0]])])
    return Region(block)


def make_nest(
    loops: NestLoops,
    inputs: Sequence[SSAValue],
    out: IndexMap,
    result: TensorType[Attribute],
    entry: OpEntry | None,
    *,
    combine: str | None = None,
    dest: SSAValue | None = None,
    numbers: Mapping[str, float] | None = None,
) -> NestOp:
    """Return a nest over `loops`; `out` maps the result."""
    given = None if numbers is None else _Numbers(numbers)
    types = tuple(value.type for value in inputs)
    name = "" if entry is None else entry.name
    form = _NestForm(loops, types, out, result, name, entry, combine, given, into=dest is not None)
    kept = _first_of(form)
    return copy_on(kept.op, dict(zip(kept.op.operands, (*inputs, *(() if dest is None else (dest,))), strict=True)))


class _Numbers(dict[str, float]):
    """Numbers by name; alike only with the same sign of zero, and in the same order."""

    def _key(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, float(value).hex()) for name, value in self.items())

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Numbers) and self._key() == other._key()


@dataclass(frozen=True)
class _NestForm:
    """What a nest follows from, but for its operands."""

    loops: NestLoops
    inputs: tuple[Attribute, ...]
    out: IndexMap
    result: TensorType[Attribute]
    name: str
    entry: OpEntry | None = field(hash=False)  # it has no hash; its name has
    combine: str | None
    numbers: _Numbers | None
    into: bool


@lru_cache(maxsize=_KEPT)
def _first_of(form: _NestForm) -> KeptOp[NestOp]:
    """The nest of a form that others are copies of, on operands that are in no program."""
    maps = [IndexMapAttr(m) for m in (*form.loops.maps, form.out)]
    inputs = Block(arg_types=form.inputs).args
    dest = Block(arg_types=[form.result]).args[0] if form.into else None
    body = body_of(form.entry, inputs, form.result.get_element_type(), form.numbers)
    return KeptOp(NestOp(form.loops.space(), inputs, maps, form.result, body, combine=form.combine, dest=dest))
