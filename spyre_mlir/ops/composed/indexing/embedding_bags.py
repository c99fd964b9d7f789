"""Rows of a table folded bag by bag."""

from __future__ import annotations

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.index_matching import WHOLE, folded
from spyre_mlir.ops.helpers.reduction_dims import MASKED
from spyre_mlir.ops.helpers.slicing import part
from spyre_mlir.ops.ignored_arguments import SCALE_GRAD_BY_FREQ, SPARSE
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value

SUM, MEAN, MAX = range(3)  # what ATen's `mode` counts


@ATEN.composed(
    aten=["_embedding_bag_forward_only", "_embedding_bag"],
    ignores=[SCALE_GRAD_BY_FREQ.ahead_of("mode"), SPARSE.ahead_of("include_last_offset")],
)
def embedding_bag(
    b: Build,
    weight: Value,
    indices: Value,
    offsets: Value,
    per_sample_weights: Value | None = None,
    *,
    mode: int = 0,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Value, Value, Value, Value]:
    """The rows of `weight` that `indices` name, summed, averaged or the largest of each bag; a bag starts at an offset.

    The second result is the bag of every index, the third the number of rows of every bag, zero where rows are summed.
    The fourth is the index of the largest row of every bag and column, and otherwise the third once more.
    """
    if mode == MAX and per_sample_weights is not None:
        raise UnsupportedError("the largest of weighted rows", hint="use mode sum")
    count, bags = indices.shape[0], offsets.shape[0] - include_last_offset
    counted, bag_of = _members(b, part(b, b.cast(offsets, WHOLE), 0, 0, bags), count, bags)
    if padding_idx >= 0:
        counted = counted.where(indices.ne(padding_idx), False)
    sizes = b.cast(counted, "f32").sum(1)
    rows = b.call("embedding", weight, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(1)
    out = _largest(counted, rows, sizes) if mode == MAX else _summed(b, counted, rows, sizes if mode == MEAN else None)
    # torch leaves the bags of the indices out where its own sum needs none.
    needless = mode == SUM and padding_idx < 0 and weight.element in ("f16", "f32")
    where = b.full((0,), 0, offsets.element) if needless else b.cast(bag_of, like=offsets)
    if mode == SUM:  # nobody needs them, and torch does not count
        sizes = b.full((bags,), 0, "f32")
    sizes = b.cast(sizes, like=offsets)
    return out, where, sizes, _largest_indices(b, counted, rows, indices) if mode == MAX else sizes


def _members(b: Build, starts: Value, count: int, bags: int) -> tuple[Value, Value]:
    """[bags, indices]: whether an index is in a bag; and the bag of every index."""
    begun = starts.unsqueeze(1).le(b.iota(count, WHOLE))
    number = b.cast(begun, "f32").sum(0) - 1.0
    return b.iota(bags, "f32").unsqueeze(1).eq(number), number


def _summed(b: Build, inside: Value, rows: Value, sizes: Value | None) -> Value:
    # [width, bags] of the rows [width, indices].
    line = rows.transpose(0, 1)
    total = folded(b, inside.transpose(0, 1), line).transpose(0, 1)
    if sizes is None:
        return total
    return total / b.cast(sizes, like=rows).maximum(1.0).unsqueeze(1)


def _largest(inside: Value, rows: Value, sizes: Value) -> Value:
    some = sizes.gt(0.0).unsqueeze(1)
    return some.where(_of_bags(inside, rows).amax(1), 0.0)


def _of_bags(inside: Value, rows: Value) -> Value:
    """[bags, indices, width]: the rows, and what is below all of them in other bags than theirs."""
    return inside.unsqueeze(2).where(rows, MASKED)


def _largest_indices(b: Build, inside: Value, rows: Value, indices: Value) -> Value:
    """[bags, width]: the index whose row is the largest of its bag, 0 for a bag of none."""
    at = b.call("argmax", _of_bags(inside, rows), dim=1)
    places = b.iota(indices.shape[0], at.element)
    chosen = b.call("logical_and", at.unsqueeze(2).eq(places), inside.unsqueeze(1))
    return b.cast(chosen.where(indices, 0).sum(2), like=indices)


ATEN.samples(embedding_bag, Sample(((10, 5), (8,), (3,)), {"mode": MEAN, "padding_idx": 2}, low=0, high=9))
