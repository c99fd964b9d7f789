"""Sliding windows over spatial dimensions, for convolutions, pools and folds.

A window of several dimensions is taken dimension by dimension: the taps of a k-by-k window are 2k slices, not k*k.
Slices step along dimensions that are not in the lanes, where every start and step can be addressed.

Decision: docs/decisions/0059-windows-dimension-by-dimension.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, padded, taken
from spyre_mlir.ops.value import Value


def spread(values: Ints | None, rank: int, otherwise: Ints = (1,)) -> Ints:
    """One number per spatial dimension; a single one stands for all."""
    given = tuple(values) if values else otherwise
    return given * rank if len(given) == 1 else given


def reach(kernel: int, dilation: int = 1) -> int:
    """Elements from the first tap of a window to the last, both counted."""
    return dilation * (kernel - 1) + 1


def bordered(b: Build, x: Value, dim: int, before: int, after: int, kernel: int, stride: int, dilation: int) -> Value:
    """`x` with zeros before and behind `dim`, without what no place of the window reaches."""
    extent, size = x.shape[dim], reach(kernel, dilation)
    places = (before + extent + after - size) // stride + 1
    return padded(b, x, dim, before, (places - 1) * stride + size - before - extent)


def taps(b: Build, x: Value, dim: int, kernel: int, stride: int, dilation: int = 1) -> list[Value]:
    """Elements under tap 0, tap 1, … of a window that slides along `dim`.

    Raises:
        UnsupportedError: the window is longer than what it slides along.
    """
    count = (x.shape[dim] - reach(kernel, dilation)) // stride + 1
    if count < 1:
        raise UnsupportedError(f"a window of {reach(kernel, dilation)} over {x.shape[dim]} elements")
    return [taken(b, x, dim, tap * dilation, count, stride) for tap in range(kernel)]


def accumulated(b: Build, parts: Sequence[Value], function: str) -> Value:
    """Tensors combined one after another, in order."""
    out = parts[0]
    for part in parts[1:]:
        out = b.call(function, out, part)
    return out


def overlap_added(b: Build, x: Value, dim: int, kernel: int, stride: int, dilation: int = 1) -> Value:
    """The reverse of `taps`: the window at place w adds its tap j to element w * stride + j * dilation.

    Args:
        b: where to build.
        x: values [..., places, taps, ...], the places at dimension `dim`.
        dim: the dimension of places; that of taps follows it, and the result lacks it.
        kernel: taps of the window.
        stride: elements from one place to the next.
        dilation: elements from one tap to the next.
    """
    places = x.shape[dim]
    depth = -(-reach(kernel, dilation) // stride)  # strides that a window reaches over
    blocks = [padded(b, block, dim, q, depth - 1 - q) for q, block in _blocks(b, x, dim, kernel, stride, dilation)]
    shape = x.shape
    total = accumulated(b, blocks, "add.Tensor")
    total = total.view(*shape[:dim], (places + depth - 1) * stride, *shape[dim + 2 :])
    return taken(b, total, dim, 0, (places - 1) * stride + reach(kernel, dilation))


def _blocks(b: Build, x: Value, dim: int, kernel: int, stride: int, dilation: int) -> list[tuple[int, Value]]:
    """The taps that fall q strides behind their place, q = 0, 1, …, as tensors [..., places, stride, ...]."""
    shape, out = x.shape, list[tuple[int, Value]]()
    by_offset = {tap * dilation: tap for tap in range(kernel)}
    for q in range(-(-reach(kernel, dilation) // stride)):
        present = [by_offset.get(q * stride + r) for r in range(stride)]
        if any(tap is not None for tap in present):
            parts = [_run(b, x, dim + 1, first, count, shape) for first, count in _runs(present)]
            out.append((q, joined(b, parts, dim + 1)))
    return out


def _run(b: Build, x: Value, dim: int, first: int | None, count: int, shape: Ints) -> Value:
    if first is None:
        return b.full((*shape[:dim], count, *shape[dim + 1 :]), 0.0, x.element)
    return taken(b, x, dim, first, count)


def _runs(present: Sequence[int | None]) -> list[tuple[int | None, int]]:
    """Neighbouring taps, and neighbouring gaps, taken together: (first tap or None, how many)."""
    out: list[tuple[int | None, int]] = []
    for tap in present:
        if out and ((tap is None) == (out[-1][0] is None)):
            out[-1] = (out[-1][0], out[-1][1] + 1)
        else:
            out.append((tap, 1))
    return out


def with_batch(x: Value, rank: int, function: Callable[[Value], Value]) -> Value:
    """Applies a function of batches to a tensor that may lack the batch: `rank` is that with one."""
    if x.rank == rank:
        return function(x)
    return function(x.unsqueeze(0)).squeeze(0)
