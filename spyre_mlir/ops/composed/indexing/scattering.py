"""Elements written to the places that index tensors name; of several for one place the last stays, or all count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import INF, Lanes, LanesList, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.indexing.gathering import Indexed
from spyre_mlir.ops.helpers.index_matching import covered, folded, from_end, is_whole, multiplied, named, written
from spyre_mlir.ops.helpers.reduction_dims import without_nan
from spyre_mlir.ops.helpers.slicing import cut_to, joined, moved, part, reshaped, widened
from spyre_mlir.ops.table import Sample

Change = Callable[[Any, Any], Any]
Lay = Callable[[Any], Any]
_REDUCTIONS = {"add": "sum", "multiply": "prod"}


def _on_part(b: Build, self: Any, index: Any, dim: int, change: Change) -> Any:
    """`self` with the part that an index tensor reaches changed: `change(part, hits)`, `dim` last in both."""
    if not b.shape(self):
        line = _on_part(b, reshaped(b, self, (1,)), reshaped(b, index, (1,)), 0, change)
        return reshaped(b, line, ())
    shape, at = b.shape(index), dim % len(b.shape(self))
    if 0 in shape:
        return self
    reached = cut_to(b, self, shape, at)
    hits = named(b, moved(b, index, at, -1), b.shape(self)[at])
    out = moved(b, change(moved(b, reached, at, -1), hits), -1, at)
    return _put_back(b, self, out, at)


def _put_back(b: Build, self: Any, changed: Any, at: int) -> Any:
    """`self` with its first elements along every dimension but `at` replaced."""
    for dim, extent in reversed(list(enumerate(b.shape(changed)))):
        if dim != at and extent != b.shape(self)[dim]:
            own = cut_to(b, self, b.shape(changed)[:dim], at)
            changed = joined(b, [changed, part(b, own, dim, extent, b.shape(self)[dim])], dim)
    return changed


def _as_line(b: Build, values: Any, index: Any, dim: int) -> Any:
    """Values cut to the index's shape, `dim` last."""
    shape = b.shape(index)
    if not shape:
        return reshaped(b, values, (1,))
    at = dim % len(shape)
    values = cut_to(b, values, shape, -1)
    return moved(b, values, at, -1)


@ATEN.composed(aten=["scatter.src"], ulps=1)
def scatter_src(b: Build, self: Lanes, index: Lanes, src: Lanes, *, dim: int) -> Any:
    """`self` with the elements of `src` at the places along `dim` that `index` names; the last one stays.

    An index outside `self` writes nothing: the device has no way to refuse it.
    """
    values = _as_line(b, src, index, dim)
    return _on_part(b, self, index, dim, lambda part, hits: written(b, part, hits, values))


@ATEN.composed(aten=["scatter.value"], ulps=1)
def scatter_value(b: Build, self: Lanes, index: Lanes, value: Lanes, *, dim: int) -> Any:
    """`self` with a number at the places along `dim` that `index` names."""
    return _on_part(b, self, index, dim, lambda part, hits: b.call("where.self", covered(b, hits), value, part))


@ATEN.composed(aten=["scatter.reduce"])
def scatter_reduced(b: Build, self: Lanes, index: Lanes, src: Lanes, *, dim: int, reduce: str) -> Any:
    """`self` with the elements of `src` added to, or multiplied by, those at the places that `index` names."""
    return _reduced(b, self, index, src, dim, _REDUCTIONS[reduce], include_self=True)


@ATEN.composed(aten=["scatter.value_reduce"])
def scatter_value_reduced(b: Build, self: Lanes, index: Lanes, value: Lanes, *, dim: int, reduce: str) -> Any:
    """As `scatter.reduce`, with one number."""
    every = b.full(b.shape(index), float(value), b.element(self))
    return _reduced(b, self, index, every, dim, _REDUCTIONS[reduce], include_self=True)


@ATEN.composed(aten=["scatter_add"])
def scatter_add(b: Build, self: Lanes, index: Lanes, src: Lanes, *, dim: int) -> Any:
    """`self` plus all elements of `src` that go to each place along `dim`, which `index` names."""
    return _reduced(b, self, index, src, dim, "sum", include_self=True)


@ATEN.composed(aten=["scatter_reduce.two"])
def scatter_reduce(
    b: Build, self: Lanes, index: Lanes, src: Lanes, *, dim: int, reduce: str, include_self: bool = True
) -> Any:
    """All elements of `src` that go to each place along `dim`, and those of `self` unless left out, as one."""
    return _reduced(b, self, index, src, dim, reduce, include_self=include_self)


def _reduced(b: Build, self: Any, index: Any, src: Any, dim: int, reduce: str, *, include_self: bool) -> Any:
    values = _as_line(b, src, index, dim)
    return _on_part(b, self, index, dim, lambda part, hits: combined(b, part, hits, values, reduce, include_self))


def combined(b: Build, self: Any, hits: Any, values: Any, reduce: str, include_self: bool) -> Any:
    """Self […, n] combined with the values […, m] that go to each place."""
    if b.is_bool(self):
        wide = (b.cast(v, "f16") for v in (self, values))
        start, given = wide
        return b.cast(combined(b, start, hits, given, reduce, include_self), "i1")
    out = _COMBINED[reduce](b, self, hits, values, include_self)
    return out if include_self else b.call("where.self", covered(b, hits), out, self)


def _sum(b: Build, self: Any, hits: Any, values: Any, include_self: bool) -> Any:
    total = folded(b, hits, values)
    return b.call("add.Tensor", self, total) if include_self else total


def _prod(b: Build, self: Any, hits: Any, values: Any, include_self: bool) -> Any:
    kept = b.call("where.self", hits, b.call("unsqueeze", values, dim=-1), 1)
    product = multiplied(b, kept, len(b.shape(kept)) - 2)
    return b.call("mul.Tensor", self, product) if include_self else product


def _mean(b: Build, self: Any, hits: Any, values: Any, include_self: bool) -> Any:
    total = _sum(b, self, hits, values, include_self)
    exact = "f32" if is_whole(b, self) else b.element(self)
    count = b.call("sum.dim_IntList", b.cast(hits, exact), dim=(-2,))
    count = b.call("add.Tensor", count, 1) if include_self else b.call("maximum", count, 1)
    mean = b.call("div.Tensor", b.cast(total, exact), count)
    return b.cast(b.call("floor", mean), like=self) if is_whole(b, self) else mean


def _extreme(fold: str, opposite: str, pair: str, best_of_all: float) -> Any:
    def extreme(b: Build, self: Any, hits: Any, values: Any, include_self: bool) -> Any:
        # Where no index hits stands an element that cannot win over those that do; what is not a number would.
        known = values if include_self else without_nan(b, values, best_of_all)
        loser = self if include_self else b.call(opposite, known, dim=(-1,), keepdim=True)
        kept = b.call("where.self", hits, b.call("unsqueeze", values, dim=-1), b.call("unsqueeze", loser, dim=-2))
        best = b.call(fold, kept, dim=(-2,))
        return b.call(pair, self, best) if include_self else best

    return extreme


_COMBINED = {
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "amax": _extreme("amax", "amin", "maximum", INF),
    "amin": _extreme("amin", "amax", "minimum", -INF),
}


def _along(b: Build, self: Any, index: Any, dim: int, change: Callable[[Any, Any, Lay], Any]) -> Any:
    """`self` as [other elements, dim] changed by `change(table, hits, lay)`; `lay` lays out a source likewise."""
    shape = b.shape(self) or (1,)
    at, count = dim % len(shape), (b.shape(index) or (1,))[0]
    if count == 0:
        return self
    kept = tuple(e for d, e in enumerate(shape) if d != at)
    hits = named(b, reshaped(b, index, (count,)), shape[at])

    def lay(value: Any, extent: int) -> Any:
        return moved(b, reshaped(b, value, (*shape[:at], extent, *shape[at + 1 :])), at, -1)

    out = change(lay(self, shape[at]), hits, lambda source: lay(source, count))
    return reshaped(b, moved(b, reshaped(b, out, (*kept, shape[at])), -1, at), b.shape(self))


@ATEN.composed(aten=["index_add"])
def index_add(b: Build, self: Lanes, index: Lanes, source: Lanes, *, dim: int, alpha: Number = 1) -> Any:
    """`self` plus `alpha` times the entries of `source` along `dim`, each at the place that `index` names."""
    scaled = source if alpha == 1 else b.call("mul.Tensor", source, alpha)

    def change(table: Any, hits: Any, lay: Lay) -> Any:
        shape, values = b.shape(table), lay(scaled)
        flat = folded(b, hits, reshaped(b, values, (-1, b.shape(values)[-1])))
        return b.call("add.Tensor", table, reshaped(b, flat, shape))

    return _along(b, self, index, dim, change)


@ATEN.composed(aten=["index_reduce"])
def index_reduce(
    b: Build, self: Lanes, index: Lanes, source: Lanes, *, dim: int, reduce: str, include_self: bool = True
) -> Any:
    """All entries of `source` that go to each place along `dim`, and those of `self` unless left out, as one."""

    def change(table: Any, hits: Any, lay: Lay) -> Any:
        return combined(b, table, hits, lay(source), reduce, include_self)

    return _along(b, self, index, dim, change)


@ATEN.composed(aten=["index_fill.int_Scalar", "index_fill.int_Tensor"], ulps=1)
def index_fill(b: Build, self: Lanes, index: Lanes, value: Lanes, *, dim: int) -> Any:
    """`self` with the entries of `dim` that `index` names replaced by one number."""

    def change(table: Any, hits: Any, lay: Lay) -> Any:
        return b.call("where.self", covered(b, hits), value, table)

    where = from_end(b, index, (b.shape(self) or (1,))[dim])
    return _along(b, self, where, dim, change)


@ATEN.composed(aten=["index_put", "_unsafe_index_put"])
def index_put(b: Build, self: Lanes, indices: LanesList, values: Lanes, *, accumulate: bool = False) -> Any:
    """`self` with elements of `values` at the places that index tensors name together, or added to those.

    Of several elements for one place the last stays, or all are added.
    """
    given: Any = indices
    masks = [i for i in given if i is not None and b.element(i) in ("i1", "ui8")]
    if masks:
        return _put_by_mask(b, self, given, values, accumulate)
    if any(i is not None and 0 in b.shape(i) for i in given):
        return self
    taken = Indexed.of(b, self, given)
    table, source = taken.flattened(b, self), taken.arranged(b, values)
    if accumulate:
        out = combined(b, table, taken.hits, source, "sum", include_self=True)
    else:
        out = written(b, table, taken.hits, source)
    return taken.unflattened(b, out)


def _put_by_mask(b: Build, self: Any, indices: list[Any], values: Any, accumulate: bool) -> Any:
    """The same values wherever a mask over the first dimensions holds.

    Raises:
        UnsupportedError: there are other indices, or as many values as the mask has truths.
    """
    used = [(d, i) for d, i in enumerate(indices) if i is not None]
    ((dim, mask),) = used if len(used) == 1 else ((0, None),)
    missing = 0 if mask is None else len(b.shape(self)) - len(b.shape(mask))
    own, given = b.shape(values), max(len(b.shape(values)) - missing, 0)  # dimensions that count the truths
    if mask is None or dim != 0 or any(e != 1 for e in own[:given]):
        raise UnsupportedError("several values written where a mask holds", hint="use torch.where or masked_scatter")
    holds = reshaped(b, b.cast(mask, "i1"), (*b.shape(mask), *(1,) * missing))  # bytes hold where they are not 0
    value = reshaped(b, values, own[given:])
    return b.call("where.self", holds, b.call("add.Tensor", self, value) if accumulate else value, self)


@ATEN.composed(aten=["put"])
def put(b: Build, self: Lanes, index: Lanes, source: Lanes, *, accumulate: bool = False) -> Any:
    """`self` with elements of `source` at the places in row-major order that `index` names."""
    flat, where = reshaped(b, self, (-1,)), reshaped(b, index, (-1,))
    out = b.call("index_put", flat, [where], reshaped(b, source, (-1,)), accumulate=accumulate)
    return reshaped(b, out, b.shape(self))


@ATEN.composed(aten=["masked_scatter"], ulps=1)
def masked_scatter(b: Build, self: Lanes, mask: Lanes, source: Lanes) -> Any:
    """`self` with the elements of `source`, in order, where the mask holds."""
    shape = np.broadcast_shapes(b.shape(self), b.shape(mask))
    self = widened(b, self, shape)
    holds = reshaped(b, widened(b, mask, shape), (-1,))
    count = b.call("cumsum", b.cast(holds, "i32"), dim=0)
    flat = reshaped(b, source, (-1,))
    picked = b.call("gather", flat, b.call("sub.Tensor", count, 1), dim=0)
    return b.call("where.self", reshaped(b, holds, shape), reshaped(b, picked, shape), self)


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
