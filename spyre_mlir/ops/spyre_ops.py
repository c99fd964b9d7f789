"""Operators of the namespace `spyre`, called by programs written for torch-spyre."""

from __future__ import annotations

from spyre_mlir.hw.formats import FP8_LARGEST
from spyre_mlir.ops.annotations import Ints, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.ignored_arguments import MARKED_DIM
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


@ATEN.composed(aten=["spyre::clamp"], ulps=1)
def spyre_clamp(input: Value, *, min: Number | None = None, max: Number | None = None) -> Value:
    """Between two bounds, either of which may be absent."""
    return input.clamp(min=min, max=max)


@ATEN.composed(aten=["spyre::softplus"], ulps=4)
def spyre_softplus(b: Build, input: Value, *, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + exp(beta x)) / beta, and x above the threshold."""
    return b.call("softplus", input, beta=beta, threshold=threshold)


@ATEN.composed(aten=["spyre::gelu"], ulps=4)
def spyre_gelu(b: Build, input: Value, *, approximate: str = "none") -> Value:
    """The Gaussian error linear unit."""
    return b.call("gelu", input, approximate=approximate)


@ATEN.composed(aten=["spyre::silu"], ulps=4)
def spyre_silu(b: Build, input: Value) -> Value:
    """x times its sigmoid."""
    return b.call("silu", input)


@ATEN.composed(aten=["spyre::logical_not"], ulps=0)
def spyre_logical_not(b: Build, input: Value) -> Value:
    """1 where the element is 0, else 0."""
    return b.call("logical_not", input)


@ATEN.composed(aten=["spyre::layer_norm"])
def spyre_layer_norm(
    b: Build,
    x: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    *,
    normalized_shape: Ints,
    eps: float = 1e-5,
) -> Value:
    """Layer normalisation over the last dimensions."""
    return b.call("layer_norm", x, weight, bias, normalized_shape=normalized_shape, eps=eps)


@ATEN.composed(aten=["spyre::rms_norm"])
def spyre_rms_norm(
    b: Build, x: Value, weight: Value | None = None, *, normalized_shape: Ints, eps: float | None = None
) -> Value:
    """Division by the root of the mean square over the last dimensions."""
    return b.call("rms_norm", x, weight, normalized_shape=normalized_shape, eps=eps)


@ATEN.composed(aten=["spyre::exx2"])
def exx2(b: Build, input: Value, *, scale: float, use_zero_mean: bool = False) -> Value:
    """The scaled sums of the elements and of their squares over the last dimension, side by side."""
    square = (input * input).sum(-1, keepdim=True)
    total = input.sum(-1, keepdim=True)
    first = b.full(total.shape, 0.0, input.element) if use_zero_mean else total * scale
    return b.call("cat", [first, square * scale], dim=-1)


def _moment(b: Build, moments: Value, which: int) -> Value:
    return b.call("slice.Tensor", moments, dim=-1, start=which, end=which + 1)


@ATEN.composed(aten=["spyre::layernormscale"])
def layernormscale(b: Build, input: Value, *, eps: float) -> Value:
    """One over the standard deviation, from what `exx2` gives."""
    mean, square = _moment(b, input, 0), _moment(b, input, 1)
    return b.call("rsqrt", square - mean * mean + eps)


@ATEN.composed(aten=["spyre::layernormnorm"])
def layernormnorm(b: Build, input: Value, mean: Value, norm_mean: Value, weight: Value, bias: Value) -> Value:
    """(x - mean) scale weight + bias, with the mean from `exx2` and the scale from `layernormscale`."""
    return (input - _moment(b, mean, 0)) * norm_mean * weight + bias


@ATEN.composed(aten=["spyre::topkvalue"], ulps=0)
def topkvalue(b: Build, input: Value, *, k: int, dim: int = -1, largest: bool = True) -> Value:
    """The k largest or smallest elements, sorted."""
    return b.call_all("topk", input, k=k, dim=dim, largest=largest)[0]


@ATEN.composed(aten=["spyre::topkindex"], ulps=0)
def topkindex(b: Build, input: Value, *, k: int, dim: int = -1, largest: bool = True) -> Value:
    """Positions of the k largest or smallest elements."""
    return b.call_all("topk", input, k=k, dim=dim, largest=largest)[1]


@ATEN.composed(aten=["spyre::batched_matmul"])
def batched_matmul(a: Value, b: Value) -> Value:
    """A matrix product whose batch dimensions broadcast."""
    return a @ b


@ATEN.composed(aten=["spyre::conv2d", "spyre::conv2d_with_bias"])
def spyre_conv2d(
    b: Build,
    input: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Value:
    """A convolution over two dimensions, plus a bias per channel if there is one."""
    said = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return b.call("conv2d", input, weight, bias, **said)


@ATEN.composed(aten=["spyre::restickify", "spyre::compact", "spyre::copy_forced"], ulps=0)
def spyre_copy(input: Value) -> Value:
    """The same elements; layouts are chosen by the compiler."""
    return input.clone()


@ATEN.composed(aten=["spyre::tile_dim_marker"], ulps=0, ignores=[MARKED_DIM])
def tile_dim_marker(input: Value) -> Value:
    """The same elements; dimensions keep their names here without markers."""
    return input.clone()


@ATEN.composed(aten=["spyre::overwrite_f"], ulps=0)
def overwrite_f(b: Build, input: Value, output: Value, *, dims: Ints, offsets: Ints) -> Value:
    """`output` with a block replaced by `input`."""
    return _block(b, input, output, dict(zip(dims, offsets, strict=True)))


def _block(b: Build, value: Value, whole: Value, offsets: dict[int, int]) -> Value:
    """`whole` with `value` at offsets: one dimension after the other, the first outermost."""
    if not offsets:
        return value
    (dim, offset), *rest = offsets.items()
    end = offset + value.shape[dim]
    part = b.call("slice.Tensor", whole, dim=dim, start=offset, end=end)
    return b.call("slice_scatter", whole, _block(b, value, part, dict(rest)), dim=dim, start=offset, end=end)


@ATEN.composed(aten=["spyre::keep_by_index"], ulps=0)
def keep_by_index(b: Build, input: Value, index: Value) -> Value:
    """The elements of every row that an index names."""
    return b.call("gather", input, index, dim=-1)


@ATEN.composed(aten=["spyre::quantscalepertokenfp8"], ulps=4)
def quantscalepertokenfp8(input: Value, *, scale_ub: float = FP8_LARGEST) -> Value:
    """The largest magnitude of every row over the largest number of the format."""
    return abs(input).amax(-1, keepdim=True) / scale_ub


@ATEN.composed(aten=["spyre::sliding_window_attention"])
def sliding_window_attention(
    b: Build, q: Value, k: Value, v: Value, *, window: int, scale: float | None = None
) -> Value:
    """Attention of every query to the last `window` keys up to its own place; the last query is at the last key."""
    rows, columns = q.shape[-2], k.shape[-2]
    row = b.iota(rows, "i64", start=columns - rows).unsqueeze(1)
    back = row - b.iota(columns, "i64")
    near = b.call("logical_and", back.ge(0), back.lt(window))
    return b.call("scaled_dot_product_attention", q, k, v, near, scale=scale)


ATEN.samples(spyre_clamp, Sample(((3, 65),), {"min": -0.5, "max": 1.0}), Sample(((3, 65),), {"max": 0.0}))
ATEN.samples(spyre_softplus, Sample(((3, 65),), {"beta": 2.0, "threshold": 1.0}))
ATEN.samples(spyre_gelu, Sample(((3, 65),)), Sample(((3, 65),), {"approximate": "tanh"}))
ATEN.samples(spyre_silu, Sample(((3, 65),)))
ATEN.samples(spyre_logical_not, Sample(((3, 65),)))
ATEN.samples(
    spyre_layer_norm,
    Sample(((3, 65), (65,), (65,)), {"normalized_shape": (65,)}),
    Sample(((3, 5),), {"normalized_shape": (5,), "eps": 0.5}),
)
ATEN.samples(spyre_rms_norm, Sample(((3, 65), (65,)), {"normalized_shape": (65,), "eps": 1e-5}))
ATEN.samples(exx2, Sample(((3, 65),), {"scale": 1 / 65}), Sample(((3, 64),), {"scale": 0.5, "use_zero_mean": True}))
ATEN.samples(layernormscale, Sample(((3, 2),), {"eps": 8.0}))
ATEN.samples(layernormnorm, Sample(((3, 65), (3, 2), (3, 1), (65,), (65,))))
ATEN.samples(topkvalue, Sample(((3, 9),), {"k": 2}), Sample(((5, 4),), {"k": 1, "dim": 0, "largest": False}))
ATEN.samples(topkindex, Sample(((3, 9),), {"k": 2}), Sample(((5, 4),), {"k": 1, "dim": 0, "largest": False}))
ATEN.samples(batched_matmul, Sample(((2, 1, 5, 8), (3, 8, 4))))
_WINDOW = {"stride": (1, 2), "padding": (1, 0), "dilation": (1, 1), "groups": 1}
ATEN.samples(
    spyre_conv2d,
    Sample(((1, 3, 6, 7), (4, 3, 3, 3)), _WINDOW),
    Sample(((1, 3, 6, 7), (4, 3, 3, 3), (4,)), _WINDOW),
)
ATEN.samples(spyre_copy, Sample(((3, 65),)))
ATEN.samples(tile_dim_marker, Sample(((3, 65),), {"dim": 0}))
ATEN.samples(overwrite_f, Sample(((2, 3), (5, 7)), {"dims": (0, 1), "offsets": (1, 4)}))
ATEN.samples(keep_by_index, Sample(((3, 7), (3, 2))))
ATEN.samples(quantscalepertokenfp8, Sample(((3, 65),)), Sample(((3, 5),), {"scale_ub": 2.0}))
ATEN.samples(sliding_window_attention, Sample(((1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)), {"window": 3, "scale": 0.5}))
