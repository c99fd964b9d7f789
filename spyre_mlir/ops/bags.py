"""Rows of a table folded bag by bag."""

from __future__ import annotations

from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.lanes import Lanes
from spyre_mlir.ops.positions import WHOLE, folded
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

    The second result is the bag of every index, the third the number of rows of every bag. The fourth, which only
    training needs, is -1: the device does not look for it.
    """
    if mode == MAX and per_sample_weights is not None:
        raise UnsupportedError("the largest of weighted rows", hint="use mode sum")
    count, bags = b.shape(indices)[0], b.shape(offsets)[0] - include_last_offset
    starts = b.cast(offsets, WHOLE)
    if include_last_offset:
        starts = b.call("slice.Tensor", starts, dim=0, start=0, end=bags)
    inside, bag_of = _members(b, starts, count, bags)
    counted = inside
    if padding_idx >= 0:
        real = b.call("ne.Scalar", indices, padding_idx)
        counted = b.call("where.self", inside, real, False)
    sizes = b.call("sum.dim_IntList", b.cast(counted, "f32"), dim=(1,))
    rows = b.call("embedding", weight, indices)
    if per_sample_weights is not None:
        rows = b.call("mul.Tensor", rows, b.call("unsqueeze", per_sample_weights, dim=1))
    out = (
        _largest(b, counted, rows, sizes) if mode == MAX else _summed(b, counted, rows, sizes if mode == MEAN else None)
    )
    largest = b.full((bags, b.shape(weight)[1]) if mode == MAX else (bags,), -1, b.element(indices))
    # torch leaves the bags of the indices out where its own sum needs none.
    needless = mode == SUM and padding_idx < 0 and b.element(weight) in ("f16", "f32")
    where = b.full((0,), 0, b.element(offsets)) if needless else b.cast(bag_of, like=offsets)
    if include_last_offset:  # torch counts the end of the last bag as one more bag of no rows
        sizes = b.call("cat", [sizes, b.full((1,), 0, "f32")], dim=0)
    return out, where, b.cast(sizes, like=offsets), largest


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
    lowest = b.call("amin", rows, dim=(0,))
    kept = b.call("where.self", b.call("unsqueeze", inside, dim=2), rows, lowest)
    some = b.call("unsqueeze", b.call("gt.Scalar", sizes, 0.0), dim=1)
    return b.call("where.self", some, b.call("amax", kept, dim=(1,)), 0.0)


ATEN.samples(embedding_bag, Sample(((10, 5), (8,), (3,)), {"mode": MEAN, "padding_idx": 2}, low=0, high=9))
