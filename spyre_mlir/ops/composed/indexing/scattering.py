"""Elements written to the places that index tensors name; of several for one place the last stays, or all count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import INF, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.indexing.gathering import Indexed
from spyre_mlir.ops.composed.indexing.long_writes import is_long, long_written
from spyre_mlir.ops.helpers.index_matching import covered, folded, from_end, multiplied, named, written
from spyre_mlir.ops.helpers.indexed_lines import IndexedLines
from spyre_mlir.ops.helpers.numbers import known
from spyre_mlir.ops.helpers.reduction_dims import without_nan
from spyre_mlir.ops.helpers.slicing import along, cut_to, joined, moved, part, reshaped, widened
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

Lay = Callable[[Value], Value]
Change = Callable[[Value, Value, Lay], Value]
Combination = Callable[[Build, Value, Value, Value, bool], Value]
_REDUCTIONS = {"add": "sum", "multiply": "prod"}


def _on_part(b: Build, self: Value, index: Value, dim: int, change: Change, of_long: Change | None = None) -> Value:
    """`self` with the part that an index tensor reaches changed: `change(part, hits, lay)`, `dim` last in both.

    `lay` cuts a source to the shape of the index, and lays it out as the part. Where rows are long, `of_long` gets the
    index instead of the hits.
    """
    if not index.shape:
        return _on_part(b, self, index.view(1), dim, change, of_long)
    if not self.shape:
        return _on_part(b, self.view(1), index, 0, change, of_long).view()
    shape, at = index.shape, dim % self.rank
    if 0 in shape:
        return self
    lines = IndexedLines.of(b, index, at)

    def lay(source: Value) -> Value:
        return lines.laid(cut_to(b, source if source.shape else source.view(1), shape, -1))

    reached = lines.laid(cut_to(b, self, shape, at))
    narrow = lines.narrowed(b, index)
    if of_long is not None and not lines.repeated and is_long(narrow, self.shape[at]):
        changed = of_long(reached, narrow, lay)
    else:
        changed = change(reached, named(b, narrow, self.shape[at]), lay)
    return _put_back(b, self, lines.restored(changed), at)


def _put_back(b: Build, self: Value, changed: Value, at: int) -> Value:
    """`self` with its first elements along every dimension but `at` replaced."""
    for dim, extent in reversed(list(enumerate(changed.shape))):
        if dim != at and extent != self.shape[dim]:
            own = cut_to(b, self, changed.shape[:dim], at)
            changed = joined(b, [changed, part(b, own, dim, extent, self.shape[dim])], dim)
    return changed


@ATEN.composed(aten=["scatter.src"], ulps=1)
def scatter_src(b: Build, self: Value, index: Value, src: Value, *, dim: int) -> Value:
    """`self` with the elements of `src` at the places along `dim` that `index` names; the last one stays.

    An index outside `self` writes nothing: the device has no way to refuse it.
    """

    def of_long(part: Value, places: Value, lay: Lay) -> Value:
        return long_written(b, part, places, lay(src))

    return _on_part(b, self, index, dim, lambda part, hits, lay: written(b, part, hits, lay(src)), of_long)


@ATEN.composed(aten=["scatter.value"], promote=True, ulps=1)
def scatter_value(b: Build, self: Value, index: Value, value: Value, *, dim: int) -> Value:
    """`self` with a number at the places along `dim` that `index` names."""
    return _on_part(b, self, index, dim, lambda part, hits, _: covered(b, hits).where(value, part))


@ATEN.composed(aten=["scatter.reduce"])
def scatter_reduced(b: Build, self: Value, index: Value, src: Value, *, dim: int, reduce: str) -> Value:
    """`self` with the elements of `src` added to, or multiplied by, those at the places that `index` names."""
    return _reduced(b, self, index, src, dim, _REDUCTIONS[reduce], include_self=True)


@ATEN.composed(aten=["scatter.value_reduce"], promote=True)
def scatter_value_reduced(b: Build, self: Value, index: Value, value: Value, *, dim: int, reduce: str) -> Value:
    """As `scatter.reduce`, with one number."""
    every = b.full(index.shape, float(known(value)), self.element)
    return _reduced(b, self, index, every, dim, _REDUCTIONS[reduce], include_self=True)


@ATEN.composed(aten=["scatter_add"])
def scatter_add(b: Build, self: Value, index: Value, src: Value, *, dim: int) -> Value:
    """`self` plus all elements of `src` that go to each place along `dim`, which `index` names."""
    return _reduced(b, self, index, src, dim, "sum", include_self=True)


@ATEN.composed(aten=["scatter_reduce.two"])
def scatter_reduce(
    b: Build, self: Value, index: Value, src: Value, *, dim: int, reduce: str, include_self: bool = True
) -> Value:
    """All elements of `src` that go to each place along `dim`, and those of `self` unless left out, as one."""
    return _reduced(b, self, index, src, dim, reduce, include_self=include_self)


def _reduced(b: Build, self: Value, index: Value, src: Value, dim: int, reduce: str, *, include_self: bool) -> Value:

    def change(part: Value, hits: Value, lay: Lay) -> Value:
        return combined(b, part, hits, lay(src), reduce, include_self)

    return _on_part(b, self, index, dim, change)


def combined(b: Build, self: Value, hits: Value, values: Value, reduce: str, include_self: bool) -> Value:
    """Self […, n] combined with the values […, m] that go to each place."""
    if self.is_bool:
        start, given = b.cast(self, "f16"), b.cast(values, "f16")
        return b.cast(combined(b, start, hits, given, reduce, include_self), "i1")
    out = _COMBINED[reduce](b, self, hits, values, include_self)
    return out if include_self else covered(b, hits).where(out, self)


def _sum(b: Build, self: Value, hits: Value, values: Value, include_self: bool) -> Value:
    total = folded(b, hits, values)
    return self + total if include_self else total


def _prod(b: Build, self: Value, hits: Value, values: Value, include_self: bool) -> Value:
    kept = hits.where(values.unsqueeze(-1), 1)
    product = multiplied(b, kept, kept.rank - 2)
    return self * product if include_self else product


def _mean(b: Build, self: Value, hits: Value, values: Value, include_self: bool) -> Value:
    total = _sum(b, self, hits, values, include_self)
    exact = "f32" if self.is_whole else self.element
    count = b.cast(hits, exact).sum(-2)
    count = count + 1 if include_self else count.maximum(1)
    mean = b.cast(total, exact) / count
    return b.cast(mean.floor(), like=self) if self.is_whole else mean


def _extreme(fold: str, opposite: str, pair: str, best_of_all: float) -> Combination:
    def extreme(b: Build, self: Value, hits: Value, values: Value, include_self: bool) -> Value:
        # Where no index hits stands an element that cannot win over those that do; what is not a number would.
        known = values if include_self else without_nan(values, best_of_all)
        loser = self if include_self else b.call(opposite, known, dim=(-1,), keepdim=True)
        kept = hits.where(values.unsqueeze(-1), loser.unsqueeze(-2))
        best = b.call(fold, kept, dim=(-2,))
        return b.call(pair, self, best) if include_self else best

    return extreme


_COMBINED: dict[str, Combination] = {
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "amax": _extreme("amax", "amin", "maximum", INF),
    "amin": _extreme("amin", "amax", "minimum", -INF),
}


def _along(b: Build, self: Value, index: Value, dim: int, change: Change) -> Value:
    """`self` as [other elements, dim] changed by `change(table, hits, lay)`; `lay` lays out a source likewise."""
    shape = self.shape or (1,)
    at, count = dim % len(shape), (index.shape or (1,))[0]
    if count == 0:
        return self
    kept = tuple(e for d, e in enumerate(shape) if d != at)
    hits = named(b, reshaped(index, (count,)), shape[at])

    def lay(value: Value, extent: int) -> Value:
        return moved(reshaped(value, (*shape[:at], extent, *shape[at + 1 :])), at, -1)

    out = change(lay(self, shape[at]), hits, lambda source: lay(source, count))
    return reshaped(moved(reshaped(out, (*kept, shape[at])), -1, at), self.shape)


@ATEN.composed(aten=["index_add"])
def index_add(b: Build, self: Value, index: Value, source: Value, *, dim: int, alpha: Number = 1) -> Value:
    """`self` plus `alpha` times the entries of `source` along `dim`, each at the place that `index` names."""
    scaled = source if alpha == 1 else source * alpha

    def change(table: Value, hits: Value, lay: Lay) -> Value:
        values = lay(scaled)
        flat = folded(b, hits, reshaped(values, (-1, values.shape[-1])))
        return table + reshaped(flat, table.shape)

    return _along(b, self, index, dim, change)


@ATEN.composed(aten=["index_reduce"])
def index_reduce(
    b: Build, self: Value, index: Value, source: Value, *, dim: int, reduce: str, include_self: bool = True
) -> Value:
    """All entries of `source` that go to each place along `dim`, and those of `self` unless left out, as one."""

    def change(table: Value, hits: Value, lay: Lay) -> Value:
        return combined(b, table, hits, lay(source), reduce, include_self)

    return _along(b, self, index, dim, change)


@ATEN.composed(aten=["index_fill.int_Scalar", "index_fill.int_Tensor"], promote=True, ulps=1)
def index_fill(b: Build, self: Value, index: Value, value: Value, *, dim: int) -> Value:
    """`self` with the entries of `dim` that `index` names replaced by one number."""

    def change(table: Value, hits: Value, _: Lay) -> Value:
        return covered(b, hits).where(value, table)

    where = from_end(index, (self.shape or (1,))[dim])
    return _along(b, self, where, dim, change)


@ATEN.composed(aten=["index_put", "_unsafe_index_put"])
def index_put(
    b: Build, self: Value, indices: Sequence[Value | None], values: Value, *, accumulate: bool = False
) -> Value:
    """`self` with elements of `values` at the places that index tensors name together, or added to those.

    Of several elements for one place the last stays, or all are added.
    """
    if any(i is not None and i.element in ("i1", "ui8") for i in indices):
        return _put_by_mask(b, self, indices, values, accumulate)
    if any(i is not None and 0 in i.shape for i in indices):
        return self
    if (one := _one_place(indices)) is not None and not self.is_bool:
        return _put_at(b, self, *one, values, accumulate)
    taken = Indexed.of(b, self, indices)
    table, source = taken.flattened(self), taken.arranged(values)
    if accumulate:
        out = combined(b, table, taken.hits, source, "sum", include_self=True)
    else:
        out = written(b, table, taken.hits, source)
    return taken.unflattened(out)


def _one_place(indices: Sequence[Value | None]) -> tuple[int, Value] | None:
    """The dimension and the index, if one index names one place of one dimension."""
    used = [(d, i) for d, i in enumerate(indices) if i is not None]
    return used[0] if len(used) == 1 and prod(used[0][1].shape) == 1 else None


def _put_at(b: Build, self: Value, dim: int, index: Value, values: Value, accumulate: bool) -> Value:
    """`self` with one place of a dimension replaced, or added to; nothing is laid out anew."""
    kept, extent = self.shape, self.shape[dim]
    value = widened(values, (*kept[:dim], *index.shape, *kept[dim + 1 :]))
    value = reshaped(value, (*kept[:dim], 1, *kept[dim + 1 :]))
    here = b.iota(extent, index.element).eq(from_end(reshaped(index, (1,)), extent))
    return along(here, self.rank, dim).where(self + value if accumulate else value, self)


def _put_by_mask(b: Build, self: Value, indices: Sequence[Value | None], values: Value, accumulate: bool) -> Value:
    """The same values wherever a mask over the first dimensions holds.

    Raises:
        UnsupportedError: there are other indices, or as many values as the mask has truths.
    """
    used = [(d, i) for d, i in enumerate(indices) if i is not None]
    dim, mask = used[0] if len(used) == 1 else (0, None)
    missing = 0 if mask is None else self.rank - mask.rank
    own, given = values.shape, max(values.rank - missing, 0)  # dimensions that count the truths
    if mask is None or dim != 0 or any(e != 1 for e in own[:given]):
        raise UnsupportedError("several values written where a mask holds", hint="use torch.where or masked_scatter")
    holds = reshaped(b.cast(mask, "i1"), (*mask.shape, *(1,) * missing))  # bytes hold where they are not 0
    value = reshaped(values, own[given:])
    return holds.where(self + value if accumulate else value, self)


@ATEN.composed(aten=["put"])
def put(b: Build, self: Value, index: Value, source: Value, *, accumulate: bool = False) -> Value:
    """`self` with elements of `source` at the places in row-major order that `index` names."""
    flat, where = reshaped(self, (-1,)), reshaped(index, (-1,))
    out = b.call("index_put", flat, [where], reshaped(source, (-1,)), accumulate=accumulate)
    return reshaped(out, self.shape)


@ATEN.composed(aten=["masked_scatter"], ulps=1)
def masked_scatter(b: Build, self: Value, mask: Value, source: Value) -> Value:
    """`self` with the elements of `source`, in order, where the mask holds."""
    shape = np.broadcast_shapes(self.shape, mask.shape)
    self = widened(self, shape)
    holds = reshaped(widened(mask, shape), (-1,))
    count = b.call("cumsum", b.cast(holds, "i32"), dim=0)
    flat = reshaped(source, (-1,))
    picked = b.call("gather", flat, count - 1, dim=0)
    return reshaped(holds, shape).where(reshaped(picked, shape), self)


_PLACES = {"dim": 0}
ATEN.samples(scatter_src, Sample(((5, 7), (3, 7), (3, 7)), _PLACES, low=0, high=5))
ATEN.samples(scatter_value, Sample(((5, 7), (3, 4), ()), _PLACES, low=0, high=5))
ATEN.samples(scatter_add, Sample(((5, 7), (5, 7), (5, 7)), _PLACES, low=0, high=5))
for _name in _COMBINED:
    ATEN.samples(
        scatter_reduce,
        Sample(((5, 7), (4, 7), (4, 7)), {"dim": 0, "reduce": _name, "include_self": _name != "amin"}, low=0, high=5),
    )
    if _name != "sum":
        ATEN.samples(
            index_reduce, Sample(((5, 7), (4,), (4, 7)), {"dim": 0, "reduce": _name, "include_self": _name != "mean"})
        )
ATEN.samples(scatter_reduced, Sample(((5, 7), (4, 7), (4, 7)), {"dim": 0, "reduce": "multiply"}, low=0, high=5))
ATEN.samples(scatter_value_reduced, Sample(((5, 7), (4, 7), ()), {"dim": 0, "reduce": "add"}, low=0, high=5))
ATEN.samples(index_add, Sample(((5, 7, 3), (4,), (5, 4, 3)), {"dim": 1, "alpha": 2}))
ATEN.samples(index_fill, Sample(((5, 7), (3,), ()), {"dim": 1}))
ATEN.samples(put, *(Sample(((3, 5), (2, 2), (2, 2)), {"accumulate": a}, low=0, high=14) for a in (False, True)))
ATEN.samples(
    index_put,
    Sample(((5, 6, 3), ((4,), (4,)), (4, 3)), {"accumulate": True}),
    Sample(((5, 67), ((3,),), (67,))),
)
ATEN.samples(masked_scatter, Sample(((3, 4), (3, 4), (12,))), Sample(((4,), (3, 4), (12,))))
