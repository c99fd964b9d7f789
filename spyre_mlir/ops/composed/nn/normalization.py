"""Normalisation by layers, by groups, by batch statistics, and by statistics known beforehand."""

from __future__ import annotations

from math import prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import DL16_SMALLEST
from spyre_mlir.ops.annotations import Ints, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import along
from spyre_mlir.ops.ignored_arguments import CUDNN_ENABLE, CUDNN_ENABLED_OR_NOT, MOMENTUM
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def floored(eps: Number) -> Number:
    """An epsilon that does not become 0 on the device unless it is: BERT's 1e-12 is below every DL16 number."""
    return max(eps, DL16_SMALLEST) if eps > 0 else eps


def normalized(b: Build, value: Value, dims: Ints, eps: Number) -> tuple[Value, Value, Value]:
    """(value - mean) / sqrt(variance + eps) over `dims`, the mean, and the inverse root."""
    mean = b.call("mean.dim", value, dim=dims, keepdim=True)
    centred = value - mean
    variance = b.call("mean.dim", centred * centred, dim=dims, keepdim=True)
    inverse = b.call("rsqrt", variance + floored(eps))
    return centred * inverse, mean, inverse


def computed_in(input: Value, *parameters: Value | None) -> Value:
    """The first parameter, else the input: its element type is computed in, which may be wider under autocast."""
    return next((p for p in parameters if p is not None), input)


def as_the(b: Build, like: Value, *results: Value) -> tuple[Value, ...]:
    """Values in the element type of another one, which torch's graphs give all results of a normalisation."""
    return tuple(b.cast(result, like=like) for result in results)


def affine(value: Value, weight: Value | None, bias: Value | None) -> Value:
    """value * weight + bias; either may be absent."""
    value = value if weight is None else value * weight
    return value if bias is None else value + bias


def _rms_norm_meaning(input: Lanes, weight: Lanes | None, *, normalized_shape: Ints, eps: Number | None) -> Lanes:
    axes = tuple(range(-len(normalized_shape), 0))
    e = 1.1920928955078125e-07 if eps is None else eps
    out = input / np.sqrt(np.mean(input * input, axis=axes, keepdims=True) + e)
    return out if weight is None else out * weight


@ATEN.composed(aten=["rms_norm"], promote=True, meaning=_rms_norm_meaning)
def rms_norm(
    b: Build, input: Value, weight: Value | None = None, *, normalized_shape: Ints, eps: Number | None = None
) -> Value:
    """input over its root mean square along the last dimensions, times weight."""
    axes = tuple(range(-len(normalized_shape), 0))
    e = floored(1.1920928955078125e-07 if eps is None else eps)  # torch: the epsilon of float32
    square = b.call("mean.dim", input * input, dim=axes, keepdim=True)
    return affine(input * b.call("rsqrt", square + e), weight, None)


def _layer_norm_meaning(
    input: Lanes,
    weight: Lanes | None,
    bias: Lanes | None,
    *,
    normalized_shape: Ints,
    eps: Number,
) -> Lanes:
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - np.mean(input, axis=axes, keepdims=True)
    out = centred / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


@ATEN.composed(aten=["layer_norm"], promote=True, meaning=_layer_norm_meaning, ignores=[CUDNN_ENABLE])
def layer_norm(
    b: Build,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    *,
    normalized_shape: Ints,
    eps: Number = 1e-5,
) -> Value:
    """(input - mean) over the standard deviation along the last dimensions, times weight, plus bias."""
    axes = tuple(range(-len(normalized_shape), 0))
    return affine(normalized(b, input, axes, eps)[0], weight, bias)


def per_channel(vector: Value | None, rank: int) -> Value | None:
    """Return a vector along dimension 1 of a tensor of `rank`."""
    return None if vector is None else along(vector, rank, 1)


@ATEN.composed(aten=["native_layer_norm"])
def native_layer_norm(
    b: Build,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    *,
    normalized_shape: Ints,
    eps: Number,
) -> tuple[Value, ...]:
    """Layer normalisation, the mean, and one over the standard deviation."""
    wide = b.cast(input, like=computed_in(input, weight, bias))
    out, mean, inverse = normalized(b, wide, tuple(range(-len(normalized_shape), 0)), eps)
    return as_the(b, input, affine(out, weight, bias), mean, inverse)


def by_statistics(
    b: Build, input: Value, weight: Value | None, bias: Value | None, mean: Value, variance: Value | None, eps: Number
) -> Value:
    """One product and one sum: scale = weight / sqrt(variance + eps), shift = bias - mean * scale."""
    if variance is None:
        raise UnsupportedError("a running mean without a running variance", hint="give both")
    rank = input.rank
    scale = b.call("rsqrt", b.cast(variance, like=input) + floored(eps))
    scale = scale if weight is None else scale * b.cast(weight, like=input)
    moved = b.cast(mean, like=input) * scale
    shift = -moved if bias is None else b.cast(bias, like=input) - moved
    return affine(input, per_channel(scale, rank), per_channel(shift, rank))


def by_batch(
    b: Build, input: Value, weight: Value | None, bias: Value | None, eps: Number, dims: Ints
) -> tuple[Value, ...]:
    """Normalisation by the statistics of the input itself over `dims`, channel by channel."""
    out, mean, inverse = normalized(b, b.cast(input, like=computed_in(input, weight, bias)), dims, eps)
    rank = input.rank
    return as_the(b, input, affine(out, per_channel(weight, rank), per_channel(bias, rank)), mean, inverse)


@ATEN.composed(aten=["instance_norm"], ignores=[MOMENTUM.ahead_of("eps"), CUDNN_ENABLED_OR_NOT])
def instance_norm(
    b: Build,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    running_mean: Value | None = None,
    running_var: Value | None = None,
    *,
    use_input_stats: bool,
    eps: Number,
) -> Value:
    """Normalisation of each channel of each entry of the batch, by its own statistics or by known ones."""
    if not use_input_stats and running_mean is not None:
        return by_statistics(b, input, weight, bias, running_mean, running_var, eps)
    return by_batch(b, input, weight, bias, eps, tuple(range(2, input.rank)))[0]


def _nothing(b: Build, like: Value) -> Value:
    """A vector without elements: a result that torch gives for form's sake, and that is dropped if nobody reads it."""
    return b.full((0,), 0.0, like.element)


@ATEN.composed(aten=["_native_batch_norm_legit_no_training"], ignores=[MOMENTUM.ahead_of("eps")])
def batch_norm_no_training(
    b: Build,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    *,
    eps: Number,
) -> tuple[Value, Value, Value]:
    """Normalisation by known statistics; the other two results are empty."""
    out = by_statistics(b, input, weight, bias, running_mean, running_var, eps)
    return out, _nothing(b, running_mean), _nothing(b, running_mean)


def _training(b: Build, input: Value, weight: Value | None, bias: Value | None, eps: Number) -> tuple[Value, ...]:
    dims = tuple(d for d in range(input.rank) if d != 1)
    out, mean, inverse = by_batch(b, input, weight, bias, eps, dims)
    return out, mean.view(-1), inverse.view(-1)


@ATEN.composed(aten=["_native_batch_norm_legit.no_stats"], ignores=[MOMENTUM.ahead_of("eps")])
def batch_norm_no_stats(
    b: Build,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    *,
    training: bool,
    eps: Number,
) -> tuple[Value, ...]:
    """Normalisation by the statistics of the batch, the means, and one over the standard deviations."""
    if not training:
        raise UnsupportedError(
            "_native_batch_norm_legit.no_stats with training=False, which has no statistics to use",
            hint="set training=True, or give running statistics",
        )
    return _training(b, input, weight, bias, eps)


@ATEN.composed(aten=["_native_batch_norm_legit_functional"])
def batch_norm_functional(
    b: Build,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    *,
    training: bool,
    momentum: Number,
    eps: Number,
) -> tuple[Value, ...]:
    """Normalisation in training, with the new running statistics; or by known ones, which stay."""
    if not training:
        out = by_statistics(b, input, weight, bias, running_mean, running_var, eps)
        return out, _nothing(b, running_mean), _nothing(b, running_mean), running_mean, running_var
    out, mean, inverse = _training(b, input, weight, bias, eps)
    count = prod(input.shape) // input.shape[1]
    # The variance again, from its inverse root, as torch's running variance counts it: one element fewer.
    variance = (inverse * inverse).reciprocal() - float(eps)
    unbiased = variance * (count / max(count - 1, 1))
    news = (_blended(b, running_mean, mean, momentum), _blended(b, running_var, unbiased, momentum))
    return out, mean, inverse, *news


def _blended(b: Build, old: Value, new: Value, momentum: Number) -> Value:
    return old * (1.0 - momentum) + b.cast(new, like=old) * float(momentum)


@ATEN.composed(aten=["native_batch_norm", "_native_batch_norm_legit"], ignores=[MOMENTUM.ahead_of("eps")])
def native_batch_norm(
    b: Build,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    running_mean: Value | None = None,
    running_var: Value | None = None,
    *,
    training: bool,
    eps: Number,
) -> tuple[Value, ...]:
    """Normalisation by known statistics, with two empty results; or by those of the batch, which are results."""
    if training or running_mean is None:
        return _training(b, input, weight, bias, eps)
    out = by_statistics(b, input, weight, bias, running_mean, running_var, eps)
    return out, _nothing(b, running_mean), _nothing(b, running_mean)


_IMAGE = ((2, 6, 5, 3), (6,), (6,))
_STATISTICS = {"momentum": 0.1, "eps": 1e-5}
ATEN.samples(
    rms_norm,
    Sample(((3, 65), (65,)), {"normalized_shape": (65,)}),
    Sample(((2, 3, 5),), {"normalized_shape": (3, 5), "eps": 0.5}),
)
ATEN.samples(
    layer_norm,
    Sample(((3, 65), (65,), (65,)), {"normalized_shape": (65,)}),
    Sample(((2, 3, 5),), {"normalized_shape": (3, 5), "eps": 0.5}),
)
ATEN.samples(
    native_layer_norm,
    Sample(((3, 65), (65,), (65,)), {"normalized_shape": (65,), "eps": 1e-5}),
    Sample(((2, 4, 5, 6), None, None), {"normalized_shape": (5, 6), "eps": 1e-5}),
)
ATEN.samples(
    instance_norm,
    Sample((*_IMAGE, None, None), {"use_input_stats": True, "cudnn_enabled": True, **_STATISTICS}),
    Sample((*_IMAGE, (6,), (6,)), {"use_input_stats": False, "cudnn_enabled": True, **_STATISTICS}, low=0.1),
)
ATEN.samples(batch_norm_no_training, Sample((*_IMAGE, (6,), (6,)), _STATISTICS, low=0.1))
ATEN.samples(batch_norm_no_stats, Sample(_IMAGE, {"training": True, **_STATISTICS}))
for _entry in (native_batch_norm, batch_norm_functional):
    for _mode in (False, True):
        ATEN.samples(_entry, Sample((*_IMAGE, (6,), (6,)), {"training": _mode, **_STATISTICS}, low=0.1))
