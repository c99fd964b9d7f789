"""Reductions made of several: means, extremes in pairs, variances."""

from __future__ import annotations

from spyre_mlir.ops.annotations import Ints, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import count_of, dims_of, reduced_dims, reduced_shape, without
from spyre_mlir.ops.ignored_arguments import DTYPE
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def _mean_meaning(self: Lanes, *, dim: Ints | None, keepdim: bool) -> Lanes:
    return np.mean(self, axis=reduced_dims(self.ndim, dim), keepdims=keepdim)


@ATEN.composed(aten=["mean.dim"], promote=True, ulps=8, meaning=_mean_meaning, shape=reduced_shape, ignores=[DTYPE])
def mean(self: Value, *, dim: Ints | None = None, keepdim: bool = False) -> Value:
    """The arithmetic mean over `dim`."""
    # The hardware's `mean` takes 1/N as a DL16 code; counts, unlike their inverses, are mostly exact in DL16.
    count = count_of(self, dim)
    return self.sum(dim, keepdim=keepdim) / float(count)


@ATEN.composed(aten=["aminmax"], ulps=1)
def aminmax(self: Value, *, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    """The smallest and the largest element over `dim`, or over all dimensions."""
    dims = () if dim is None else (dim,)
    return self.amin(dims, keepdim=keepdim), self.amax(dims, keepdim=keepdim)


def _moments(b: Build, self: Value, dim: Ints | None, correction: Number | None) -> tuple[Value, Value]:
    """Variance and mean over `dim`, kept as dimensions of 1; the count is lessened by `correction`, 1 if not given."""
    mean = b.call("mean.dim", self, dim=dim, keepdim=True)
    centred = self - mean
    total = (centred * centred).sum(dim, keepdim=True)
    count = count_of(self, dim) - (1 if correction is None else correction)
    return total / float(max(0.0, count)), mean


def _kept(b: Build, value: Value, self: Value, dim: Ints | None, keepdim: bool) -> Value:
    return without(b, value, dims_of(self, dim), keepdim)


@ATEN.composed(aten=["var.correction"])
def var(
    b: Build, self: Value, *, dim: Ints | None = None, correction: Number | None = None, keepdim: bool = False
) -> Value:
    """The mean squared distance from the mean over `dim`; the count is lessened by `correction`, 1 if not given."""
    return _kept(b, _moments(b, self, dim, correction)[0], self, dim, keepdim)


@ATEN.composed(aten=["std.correction"])
def std(
    b: Build, self: Value, *, dim: Ints | None = None, correction: Number | None = None, keepdim: bool = False
) -> Value:
    """The root of the variance over `dim`."""
    return _kept(b, _moments(b, self, dim, correction)[0].sqrt(), self, dim, keepdim)


@ATEN.composed(aten=["var_mean.correction"])
def var_mean(
    b: Build, self: Value, *, dim: Ints | None = None, correction: Number | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """The variance and the mean over `dim`."""
    variance, mean = _moments(b, self, dim, correction)
    return _kept(b, variance, self, dim, keepdim), _kept(b, mean, self, dim, keepdim)


@ATEN.composed(aten=["std_mean.correction"])
def std_mean(
    b: Build, self: Value, *, dim: Ints | None = None, correction: Number | None = None, keepdim: bool = False
) -> tuple[Value, Value]:
    """The root of the variance, and the mean, over `dim`."""
    variance, mean = _moments(b, self, dim, correction)
    return _kept(b, variance.sqrt(), self, dim, keepdim), _kept(b, mean, self, dim, keepdim)


ATEN.samples(mean, Sample(((3, 65),), {"dim": (-1,), "keepdim": True}), Sample(((4, 5, 6),), {"dim": (0, 2)}))
ATEN.samples(aminmax, Sample(((3, 65),), {"dim": -1, "keepdim": True}), Sample(((4, 5),)))
for _entry in (var, std, var_mean, std_mean):
    ATEN.samples(
        _entry,
        Sample(((3, 65),), {"dim": (1,)}),
        Sample(((4, 5, 6),), {"correction": 0, "keepdim": True}),
        Sample(((4, 5, 6),), {"dim": (0, -1), "correction": 2}),
    )
