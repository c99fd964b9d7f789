"""Rows of a table folded bag by bag."""

from __future__ import annotations

from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.index_matching import WHOLE, folded
from spyre_mlir.ops.helpers.reduction_dims import MASKED
from spyre_mlir.ops.helpers.slicing import part
from spyre_mlir.ops.table import Sample

SUM, MEAN, MAX = range(3)  # what ATen's `mode` counts


@ATEN.composed(aten=["_embedding_bag_forward_only", "_embedding_bag"])
def embedding_bag(
    b: Build,
    weight: Lanes,
    indices: Lanes,
    offsets: Lanes,
    per_sample_weights: Lanes | None = None,
    *,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Any:
    """The rows of `weight` that `indices` name, summed, averaged or the largest of each bag; a bag starts at an offset.

    The second result is the bag of every index, the third the number of rows of every bag, zero where rows are summed.
    The fourth is the index of the largest row of every bag and column, and otherwise the third once more.
    """
    if mode == MAX and per_sample_weights is not None:
        raise UnsupportedError("the largest of weighted rows", hint="use mode sum")
    count, bags = b.shape(indices)[0], b.shape(offsets)[0] - include_last_offset
    counted, bag_of = _members(b, part(b, b.cast(offsets, WHOLE), 0, 0, bags), count, bags)
    if padding_idx >= 0:
        counted = b.call("where.self", counted, b.call("ne.Scalar", indices, padding_idx), False)
    sizes = b.call("sum.dim_IntList", b.cast(counted, "f32"), dim=(1,))
    rows = b.call("embedding", weight, indices)
    if per_sample_weights is not None:
        rows = b.call("mul.Tensor", rows, b.call("unsqueeze", per_sample_weights, dim=1))
    out = (
        _largest(b, counted, rows, sizes) if mode == MAX else _summed(b, counted, rows, sizes if mode == MEAN else None)
    )
    # torch leaves the bags of the indices out where its own sum needs none.
    needless = mode == SUM and padding_idx < 0 and b.element(weight) in ("f16", "f32")
    where = b.full((0,), 0, b.element(offsets)) if needless else b.cast(bag_of, like=offsets)
    if mode == SUM:  # nobody needs them, and torch does not count
        sizes = b.full((bags,), 0, "f32")
    sizes = b.cast(sizes, like=offsets)
    return out, where, sizes, _largest_indices(b, counted, rows, indices) if mode == MAX else sizes


def _members(b: Build, starts: Any, count: int, bags: int) -> tuple[Any, Any]:
    """[bags, indices]: whether an index is in a bag; and the bag of every index."""
    begun = b.call("le.Tensor", b.call("unsqueeze", starts, dim=1), b.iota(count, WHOLE))
    number = b.call("sub.Tensor", b.call("sum.dim_IntList", b.cast(begun, "f32"), dim=(0,)), 1.0)
    bag = b.call("unsqueeze", b.iota(bags, "f32"), dim=1)
    return b.call("eq.Tensor", bag, number), number


def _summed(b: Build, inside: Any, rows: Any, sizes: Any) -> Any:
    # [width, bags] of the rows [width, indices].
    line = b.call("transpose.int", rows, dim0=0, dim1=1)
    total = b.call("transpose.int", folded(b, b.call("transpose.int", inside, dim0=0, dim1=1), line), dim0=0, dim1=1)
    if sizes is None:
        return total
    count = b.call("unsqueeze", b.call("maximum", b.cast(sizes, like=rows), 1.0), dim=1)
    return b.call("div.Tensor", total, count)


def _largest(b: Build, inside: Any, rows: Any, sizes: Any) -> Any:
    some = b.call("unsqueeze", b.call("gt.Scalar", sizes, 0.0), dim=1)
    return b.call("where.self", some, b.call("amax", _of_bags(b, inside, rows), dim=(1,)), 0.0)


def _of_bags(b: Build, inside: Any, rows: Any) -> Any:
    """[bags, indices, width]: the rows, and what is below all of them in other bags than theirs."""
    return b.call("where.self", b.call("unsqueeze", inside, dim=2), rows, MASKED)


def _largest_indices(b: Build, inside: Any, rows: Any, indices: Any) -> Any:
    """[bags, width]: the index whose row is the largest of its bag, 0 for a bag of none."""
    at = b.call("argmax", _of_bags(b, inside, rows), dim=1)
    places = b.iota(b.shape(indices)[0], b.element(at))
    chosen = b.call("eq.Tensor", b.call("unsqueeze", at, dim=2), places)
    chosen = b.call("logical_and", chosen, b.call("unsqueeze", inside, dim=1))
    return b.cast(b.call("sum.dim_IntList", b.call("where.self", chosen, indices, 0), dim=(2,)), like=indices)


ATEN.samples(embedding_bag, Sample(((10, 5), (8,), (3,)), {"mode": MEAN, "padding_idx": 2}, low=0, high=9))
