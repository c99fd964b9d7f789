"""What convolutions, pools and folds share: windows that slide over the spatial dimensions of a tensor.

A window of several dimensions is taken dimension by dimension: the taps of a k-by-k window are 2k slices, not k*k.
Slices step along dimensions that are not in the lanes, where every start and step can be addressed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, padded, taken


def spread(values: Ints | None, rank: int, otherwise: Ints = (1,)) -> Ints:
    """One number per spatial dimension; a single one stands for all."""
    given = tuple(values) if values else otherwise
    return given * rank if len(given) == 1 else given


def reach(kernel: int, dilation: int = 1) -> int:
    """Elements from the first tap of a window to the last, both counted."""
    return dilation * (kernel - 1) + 1


def bordered(b: Build, x: Any, dim: int, before: int, after: int, kernel: int, stride: int, dilation: int) -> Any:
    """`x` with zeros before and behind `dim`, without what no place of the window reaches."""
    extent, size = b.shape(x)[dim], reach(kernel, dilation)
    places = (before + extent + after - size) // stride + 1
    return padded(b, x, dim, before, (places - 1) * stride + size - before - extent)


def taps(b: Build, x: Any, dim: int, kernel: int, stride: int, dilation: int = 1) -> list[Any]:
    """What tap 0, tap 1, … of the window meet as it slides along `dim`."""
    count = (b.shape(x)[dim] - reach(kernel, dilation)) // stride + 1
    if count < 1:
        raise UnsupportedError(f"a window of {reach(kernel, dilation)} over {b.shape(x)[dim]} elements")
    return [taken(b, x, dim, tap * dilation, count, stride) for tap in range(kernel)]


def accumulated(b: Build, parts: Sequence[Any], function: str) -> Any:
    """Tensors combined one after another, in order."""
    out = parts[0]
    for part in parts[1:]:
        out = b.call(function, out, part)
    return out


def overlap_added(b: Build, x: Any, dim: int, kernel: int, stride: int, dilation: int = 1) -> Any:
    """The reverse of `taps`: the window at place w adds its tap j to element w * stride + j * dilation.

    Args:
        b: where to build.
        x: values [..., places, taps, ...], the places at dimension `dim`.
        dim: the dimension of places; that of taps follows it, and the result lacks it.
        kernel: taps of the window.
        stride: elements from one place to the next.
        dilation: elements from one tap to the next.
    """
    places = b.shape(x)[dim]
    depth = -(-reach(kernel, dilation) // stride)  # strides that a window reaches over
    blocks = [padded(b, block, dim, q, depth - 1 - q) for q, block in _blocks(b, x, dim, kernel, stride, dilation)]
    shape = b.shape(x)
    total = accumulated(b, blocks, "add.Tensor")
    total = b.call("view", total, size=(*shape[:dim], (places + depth - 1) * stride, *shape[dim + 2 :]))
    return taken(b, total, dim, 0, (places - 1) * stride + reach(kernel, dilation))


def _blocks(b: Build, x: Any, dim: int, kernel: int, stride: int, dilation: int) -> list[tuple[int, Any]]:
    """The taps that fall q strides behind their place, q = 0, 1, …, as tensors [..., places, stride, ...]."""
    shape, out = b.shape(x), list[tuple[int, Any]]()
    by_offset = {tap * dilation: tap for tap in range(kernel)}
    for q in range(-(-reach(kernel, dilation) // stride)):
        present = [by_offset.get(q * stride + r) for r in range(stride)]
        if any(tap is not None for tap in present):
            parts = [_run(b, x, dim + 1, first, count, shape) for first, count in _runs(present)]
            out.append((q, joined(b, parts, dim + 1)))
    return out


def _run(b: Build, x: Any, dim: int, first: int | None, count: int, shape: Ints) -> Any:
    if first is None:
        return b.full((*shape[:dim], count, *shape[dim + 1 :]), 0.0, b.element(x))
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


def with_batch(b: Build, x: Any, rank: int, function: Callable[[Any], Any]) -> Any:
    """Applies a function of batches to a tensor that may lack the batch: `rank` is that with one."""
    if len(b.shape(x)) == rank:
        return function(x)
    made = function(b.call("unsqueeze", x, dim=0))
    several = cast("tuple[Any, ...]", made if isinstance(made, tuple) else (made,))
    out = tuple(b.call("squeeze.dim", part, dim=(0,)) for part in several)
    return out if isinstance(made, tuple) else out[0]
