"""Pools: extremes and means of windows, taken dimension by dimension from shifted slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import DL16_LARGEST
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import SHORT_BITS
from spyre_mlir.ops.helpers.slicing import along, joined, padded, taken
from spyre_mlir.ops.helpers.sliding_windows import accumulated, reach, spread
from spyre_mlir.ops.ignored_arguments import UNPOOLED_PADDING, UNPOOLED_STRIDE
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value

# Elements of the comparison of every value with every place of a result; beyond, unpooling is the host's.
MOST_COMPARED = 2**22

# What loses to every element of a window: the least number of the device.
LOWEST = -DL16_LARGEST
NARROW_BITS = SHORT_BITS | {"i32": 32}  # integers that have no number as low


@dataclass(frozen=True)
class Slide:
    """How a window moves along one dimension."""

    extent: int
    kernel: int
    stride: int
    padding: int
    dilation: int
    ceil: bool

    @property
    def places(self) -> int:
        """How many places the window takes; one that starts behind the end and its padding is none."""
        room = self.extent + 2 * self.padding - reach(self.kernel, self.dilation)
        places = (room + (self.stride - 1 if self.ceil else 0)) // self.stride + 1
        return places - 1 if self.ceil and (places - 1) * self.stride >= self.extent + self.padding else places

    @property
    def missing(self) -> int:
        """Elements that the last window reaches over the padded end."""
        end = (self.places - 1) * self.stride + reach(self.kernel, self.dilation)
        return max(0, end - self.padding - self.extent)

    def counts(self, include_padding: bool) -> list[int]:
        """Elements of the window at every place."""
        starts = [place * self.stride - self.padding for place in range(self.places)]
        pairs = [(s, min(s + self.kernel, self.extent + self.padding)) for s in starts]
        return [e - s if include_padding else min(e, self.extent) - max(s, 0) for s, e in pairs]


def _slides(
    shape: Ints, kernel: Ints, stride: Ints | None, padding: Ints, dilation: Ints, ceil: bool, rank: int
) -> list[Slide]:
    kernels = spread(kernel, rank)
    steps, pads, gaps = spread(stride, rank, kernels), spread(padding, rank, (0,)), spread(dilation, rank)
    require("C1", len(shape) in (rank + 1, rank + 2), f"input of rank {len(shape)}, expected {rank + 1} or {rank + 2}")
    out = [Slide(*facts, ceil) for facts in zip(shape[-rank:], kernels, steps, pads, gaps, strict=True)]
    for s in out:
        require("C2", 2 * s.padding <= reach(s.kernel, s.dilation), f"padding {s.padding} of a window of {s.kernel}")
        require("C3", s.places > 0, f"a window of {s.kernel} over {s.extent} elements")
    return out


def _taps(b: Build, x: Value, dim: int, s: Slide, fill: float) -> list[Value]:
    x = padded(b, x, dim, s.padding, s.missing, fill)
    return [taken(b, x, dim, tap * s.dilation, s.places, s.stride) for tap in range(s.kernel)]


def _lowest(element: str) -> float:
    """What loses as padding: the least number of a type, if one below it would wrap."""
    if element not in NARROW_BITS:
        return LOWEST
    return 0 if element.startswith("u") else -(2 ** (NARROW_BITS[element] - 1))


def _largest(b: Build, x: Value, slides: Sequence[Slide]) -> Value:
    lowest = _lowest(x.element)
    for dim, s in _from_last(slides):
        x = accumulated(b, _taps(b, x, dim, s, lowest), "maximum")
    return x


def _from_last(slides: Sequence[Slide]) -> list[tuple[int, Slide]]:
    """Dimensions, as negative numbers, with how the window moves along them; the last dimension first."""
    return [(at - len(slides), s) for at, s in reversed(list(enumerate(slides)))]


def _strides(shape: Ints, rank: int) -> dict[int, int]:
    """How far apart neighbours along a spatial dimension are in the flat order of one channel."""
    return {at - rank: prod(shape[len(shape) - rank + at + 1 :]) for at in range(rank)}


def _first(values: Sequence[Value], places: Sequence[Value]) -> tuple[Value, Value]:
    """The largest of several values, and the place of the first that is."""
    best, where = values[0], places[0].expand(*values[0].shape)
    for value, place in zip(values[1:], places[1:], strict=True):
        where = value.gt(best).where(place, where)
        best = best.maximum(value)
    return best, where


def _largest_with_places(b: Build, x: Value, slides: Sequence[Slide]) -> tuple[Value, Value]:
    """The largest of every window, and where the first that is as large stands in its channel."""
    strides, element = _strides(x.shape, len(slides)), x.element
    if element in NARROW_BITS:
        x = b.cast(x, "i64")  # padding that is as large as an element would be found first
    where: list[Value] = []
    for dim, s in _from_last(slides):
        values, step = _taps(b, x, dim, s, LOWEST), strides[dim]
        starts = [(t * s.dilation - s.padding) * step for t in range(s.kernel)]
        own = [along(b.iota(s.places, "i64", start=n, step=s.stride * step), x.rank, dim) for n in starts]
        for inner in where:
            own = [k + o for k, o in zip(_taps(b, inner, dim, s, 0), own, strict=True)]
        x, *where = _first(values, own)
    return b.cast(x, element), where[0]


@ATEN.composed(aten=["max_pool1d", "max_pool2d", "max_pool3d"], ulps=0)
def max_pool(
    b: Build,
    self: Value,
    *,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
) -> Value:
    """The largest element of every window.

    Constraints:
        C1: the input has the spatial dimensions, a channel, and perhaps a batch.
        C2: the padding is at most half a window.
        C3: there is a place for the window.
    """
    return _largest(b, self, _slides(self.shape, kernel_size, stride, padding, dilation, ceil_mode, len(kernel_size)))


@ATEN.composed(
    aten=["max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices"],
    ulps=0,
)
def max_pool_with_indices(
    b: Build,
    self: Value,
    *,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
) -> tuple[Value, Value]:
    """The largest element of every window, and the position of the first such element in its channel."""
    slides = _slides(self.shape, kernel_size, stride, padding, dilation, ceil_mode, len(kernel_size))
    return _largest_with_places(b, self, slides)


@ATEN.composed(aten=["avg_pool1d", "avg_pool2d", "avg_pool3d"], ulps=8)
def avg_pool(
    b: Build,
    self: Value,
    *,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """The mean of every window: its sum over its elements, or over `divisor_override`.

    Padding counts as elements of 0 unless `count_include_pad` is off; what a last window reaches beyond never does.
    """
    slides, x = _slides(self.shape, kernel_size, stride, padding, (1,), ceil_mode, len(kernel_size)), self
    for dim, s in _from_last(slides):
        if s.places == 1:  # all that the window has, however far it reaches
            x = taken(b, x, dim, 0, min(s.kernel - s.padding, s.extent)).sum(dim, keepdim=True)
        else:
            x = accumulated(b, _taps(b, x, dim, s, 0.0), "add.Tensor")
    if divisor_override is not None:
        return x / float(divisor_override)
    return _divided(b, x, [(dim, s.counts(count_include_pad)) for dim, s in _from_last(slides)])


def _divided(b: Build, x: Value, counts: Sequence[tuple[int, list[int]]]) -> Value:
    """Sums over how many elements each has; counts that differ from place to place divide by themselves."""
    even = prod(c[0] for _, c in counts if len(set(c)) == 1)
    for dim, several in counts:
        if len(set(several)) > 1:
            runs = [(n, len(list(same))) for n, same in groupby(several)]
            vector = joined(b, [b.full((length,), float(n), x.element) for n, length in runs], 0)
            x = x / along(vector, x.rank, dim)
    return x if even == 1 else x / float(even)


def _windows(extent: int, places: int) -> list[tuple[int, int]]:
    """Where the windows of an adaptive pool begin and end."""
    return [(at * extent // places, -(-(at + 1) * extent // places)) for at in range(places)]


def _by_window(
    b: Build, x: Value, dim: int, places: int, reduce: Callable[[Value, int], tuple[Value, ...]]
) -> list[Value]:
    """Reduces every window of `dim`, a negative number: in one step if they are equal, else one by one.

    `reduce` takes a tensor and a dimension, which its results have with extent 1.
    """
    shape = x.shape
    at, extent = len(shape) + dim, shape[dim]
    if extent % places == 0:
        split = x.view(*shape[:at], places, extent // places, *shape[at + 1 :])
        return [part.squeeze(at + 1) for part in reduce(split, at + 1)]
    parts = [reduce(taken(b, x, dim, start, end - start), at) for start, end in _windows(extent, places)]
    return [joined(b, several, at) for several in zip(*parts, strict=True)]


def _sizes(shape: Ints, output_size: Ints) -> list[tuple[int, int]]:
    """Dimensions, as negative numbers, with their new extents, the last dimension first."""
    rank = len(output_size)
    require("C1", min(output_size) > 0, f"output_size {output_size}")
    require("C2", len(shape) in (rank + 1, rank + 2), f"input of rank {len(shape)}, expected {rank + 1} or {rank + 2}")
    return [(at - rank, size) for at, size in reversed(list(enumerate(output_size)))]


@ATEN.composed(
    aten=[
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d",
    ],
    ulps=8,
)
def adaptive_avg_pool(b: Build, self: Value, *, output_size: Ints) -> Value:
    """The means of as many windows as the result has elements; windows may share elements.

    Constraints:
        C1: every extent of the result is positive.
        C2: the input has the spatial dimensions, a channel, and perhaps a batch.
    """
    x, sizes = self, _sizes(self.shape, output_size)
    for dim, places in sizes:
        (x,) = _by_window(b, x, dim, places, lambda y, d: (y.sum(d, keepdim=True),))
    counts = [(d, [end - start for start, end in _windows(self.shape[d], places)]) for d, places in sizes]
    return _divided(b, x, counts)


@ATEN.composed(aten=["adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"], ulps=0)
def adaptive_max_pool(b: Build, self: Value, *, output_size: Ints) -> tuple[Value, Value]:
    """The largest elements of as many windows as the result has elements, and their positions in the channel."""
    x, sizes, strides = self, _sizes(self.shape, output_size), _strides(self.shape, len(output_size))
    where: list[Value] = []
    for dim, places in sizes:
        own = along(b.iota(self.shape[dim], "i64", step=strides[dim]), self.rank, dim)
        for inner in where:
            own = inner + own
        x, *where = _first_by_window(b, x, own.expand(*x.shape), dim, places)
    return x, where[0]


def _first_by_window(b: Build, x: Value, where: Value, dim: int, places: int) -> tuple[Value, Value]:
    """The largest of every window, and the smallest place of an element as large."""
    if places == x.shape[dim]:
        return x, where
    beyond = 2**62  # as a number of the device it is large, which is all that counts
    peaks = _by_window(b, x, dim, places, lambda y, d: (y.amax(d, keepdim=True),))[0]
    shape = x.shape
    at, extent = len(shape) + dim, shape[dim]
    if extent % places == 0:
        size = (*shape[:at], places, extent // places, *shape[at + 1 :])
        hits = x.view(*size).eq(peaks.unsqueeze(at + 1))
        return peaks, hits.where(where.view(*size), beyond).amin(at + 1)
    firsts: list[Value] = []
    for place, (start, end) in enumerate(_windows(extent, places)):
        hits = taken(b, x, at, start, end - start).eq(taken(b, peaks, at, place, 1))
        candidates = hits.where(taken(b, where, at, start, end - start), beyond)
        firsts.append(candidates.amin(at, keepdim=True))
    return peaks, joined(b, firsts, at)


@ATEN.composed(aten=["max_unpool2d", "max_unpool3d"], ulps=0, ignores=[UNPOOLED_STRIDE, UNPOOLED_PADDING])
def max_unpool(b: Build, self: Value, indices: Value, *, output_size: Ints) -> Value:
    """Elements put where `indices` say in their channel, 0 elsewhere; of several at one place the largest stays.

    Every element is compared with every place of the result.
    """
    shape, rank = self.shape, len(output_size)
    outer, count, places = shape[:-rank], prod(shape[-rank:]), prod(output_size)
    if prod(outer) * count * places > MOST_COMPARED:
        raise UnsupportedError(f"unpooling {count} elements to {places} places, {prod(outer)} times")
    column = (*outer, count, 1)
    here = indices.reshape(*column).eq(b.iota(places, indices.element))
    found = here.where(self.reshape(*column), LOWEST).amax(-2)
    return found.ne(LOWEST).where(found, 0).view(*outer, *output_size)


_TWO = ((2, 3, 7, 8),)
_POOLS = (
    Sample(((2, 3, 11),), {"kernel_size": (3,), "stride": (2,), "padding": (1,)}),
    Sample(_TWO, {"kernel_size": (3, 2), "stride": (2, 2), "padding": (1, 1), "ceil_mode": True}),
    Sample(((3, 6, 5),), {"kernel_size": (2, 2)}),
    Sample(((1, 2, 4, 6, 5),), {"kernel_size": (2, 3, 1), "stride": (1, 2, 2)}),
)
for _entry in (max_pool, max_pool_with_indices, avg_pool):
    ATEN.samples(_entry, *_POOLS)
for _entry in (max_pool, max_pool_with_indices):
    ATEN.samples(_entry, Sample(_TWO, {"kernel_size": (2, 3), "stride": (1, 1), "dilation": (3, 2)}))
ATEN.samples(
    max_pool,
    Sample(((4, 4),), {"kernel_size": (2, 2)}, breaks="C1"),
    Sample(((1, 4, 4),), {"kernel_size": (2, 2), "padding": (2, 2)}, breaks="C2"),
    Sample(((1, 4, 4),), {"kernel_size": (9, 9)}, breaks="C3"),
)
ATEN.samples(
    avg_pool,
    Sample(_TWO, {"kernel_size": (3, 3), "stride": (2, 3), "padding": (1, 1), "count_include_pad": False}),
    Sample(_TWO, {"kernel_size": (2, 2), "divisor_override": 3}),
    Sample(_TWO, {"kernel_size": (6, 9), "padding": (1, 2), "stride": (4, 9)}),
    Sample(_TWO, {"kernel_size": (1280, 1280), "ceil_mode": True, "count_include_pad": False}),
)
for _entry in (adaptive_avg_pool, adaptive_max_pool):
    ATEN.samples(
        _entry,
        Sample(((2, 3, 9),), {"output_size": (3,)}),
        Sample(_TWO, {"output_size": (3, 2)}),
        Sample(((3, 5, 6),), {"output_size": (5, 4)}),
        Sample(((1, 2, 4, 3, 5),), {"output_size": (2, 3, 2)}),
    )
ATEN.samples(adaptive_avg_pool, Sample(((3, 3, 8, 8, 6),), {"output_size": (5, 7, 6)}))
ATEN.samples(
    adaptive_avg_pool,
    Sample(((1, 4, 4),), {"output_size": (0, 2)}, breaks="C1"),
    Sample(((4, 4),), {"output_size": (2, 2)}, breaks="C2"),
)
ATEN.samples(
    max_unpool,
    Sample(((2, 3, 1, 1), (2, 3, 1, 1)), {"output_size": (2, 3)}, low=0, high=6),
    Sample(
        ((2, 1, 1, 1), (2, 1, 1, 1)),
        {"output_size": (2, 1, 3), "stride": (2, 1, 3), "padding": (0, 0, 0)},
        low=0,
        high=6,
    ),
)
