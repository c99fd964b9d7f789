"""Operations that are compositions of others: a meaning in numpy, and a rewrite that must agree with it."""

from __future__ import annotations

from math import prod
from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import DL16_SMALLEST, INFINITY_STAND_IN
from spyre_mlir.ops.annotations import INF, DType, Ints, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import is_float
from spyre_mlir.ops.native import contractions, pointwise
from spyre_mlir.ops.native.reductions import reduced_dims, reduced_shape
from spyre_mlir.ops.table import OpEntry, Sample

# The largest finite half. It stands for minus infinity on the device, which has none (torch-spyre; likely).
MASKED = -INFINITY_STAND_IN


def decomposes(entry: OpEntry) -> Any:
    """Decorator: the function below rewrites `entry`; returning None keeps the op as it is."""

    def attach(function: Any) -> Any:
        object.__setattr__(entry, "decompose", function)
        return function

    return attach


@decomposes(pointwise.add)
def _add(b: Build, self: Any, other: Any, *, alpha: Number) -> Any:
    if b.is_bool(self) and b.is_bool(other):
        return b.call("logical_or", self, other if alpha else b.full(b.shape(other), 0, "i1"))
    return None if alpha == 1 else b.call("add.Tensor", self, _scaled(b, other, alpha))


@decomposes(pointwise.sub)
def _sub(b: Build, self: Any, other: Any, *, alpha: Number) -> Any:
    return None if alpha == 1 else b.call("sub.Tensor", self, _scaled(b, other, alpha))


def _scaled(b: Build, value: Any, factor: Number) -> Any:
    """A value times a number; numbers are multiplied here and now."""
    return value * factor if isinstance(value, int | float) else b.call("mul.Tensor", value, factor)


@decomposes(pointwise.gelu)
def _gelu(b: Build, self: Any, *, approximate: str) -> Any:
    if approximate == "none":
        return None
    # 1 + tanh(u) is 2 * sigmoid(2u); the sum would lose every bit of the result where u is far below zero.
    twice = 2.0 * float(np.sqrt(2.0 / np.pi))
    square = b.call("mul.Tensor", b.call("mul.Tensor", self, self), 0.044715 * twice)
    return b.call(
        "mul.Tensor", self, b.call("sigmoid", b.call("mul.Tensor", self, b.call("add.Tensor", square, twice)))
    )


@decomposes(pointwise.clamp)
def _clamp(b: Build, self: Any, *, min: Number | None, max: Number | None) -> Any:
    # `clip` spells its bounds as DL16 codes; maximum and minimum take them as exact scalars.
    out = self if min is None else b.call("maximum", self, min)
    return out if max is None else b.call("minimum", out, max)


@decomposes(contractions.linear)
def _linear(b: Build, input: Any, weight: Any, bias: Any) -> Any:
    if len(b.shape(input)) == 1:
        row = b.call("linear", b.call("unsqueeze", input, dim=0), weight, bias)
        return b.call("squeeze.dim", row, dim=(0,))
    return None if bias is None else b.call("add.Tensor", b.call("linear", input, weight), bias)


@decomposes(contractions.matmul)
def _matmul(b: Build, self: Any, other: Any) -> Any:
    left, right = len(b.shape(self)) == 1, len(b.shape(other)) == 1
    if not (left or right):
        return None if b.shape(self)[-1] else _empty_sum(b, self, other)
    a = b.call("unsqueeze", self, dim=0) if left else self
    c = b.call("unsqueeze", other, dim=-1) if right else other
    product = b.call("matmul", a, c)
    dropped = (-1,) * right + (-2 + right,) * left if left else (-1,)
    return b.call("squeeze.dims", product, dim=tuple(d for d in ((-2, -1) if left and right else dropped)))


def _empty_sum(b: Build, self: Any, other: Any) -> Any:
    """The product over a dimension without elements."""
    batch = np.broadcast_shapes(b.shape(self)[:-2], b.shape(other)[:-2])
    return b.full((*batch, b.shape(self)[-2], b.shape(other)[-1]), 0, b.element(self))


def _addmm_shape(self: tuple[int, ...], mat1: tuple[int, ...], mat2: tuple[int, ...], **_: object) -> tuple[int, ...]:
    return (mat1[0], mat2[1])


@ATEN.composite(aten=["addmm"], shape=_addmm_shape, ulps=16)
def addmm(self: Lanes, mat1: Lanes, mat2: Lanes, *, beta: Number = 1, alpha: Number = 1) -> Lanes:
    """beta * self + alpha * mat1 @ mat2; of integers with whole factors."""
    if not np.issubdtype(mat1.dtype, np.floating):
        beta, alpha = int(beta), int(alpha)
    return beta * self + alpha * (mat1 @ mat2)


@decomposes(addmm)
def _addmm(b: Build, self: Any, mat1: Any, mat2: Any, *, beta: Number, alpha: Number) -> Any:
    return weighted(b, self, b.call("mm", mat1, mat2), beta, alpha)


def weighted(b: Build, value: Any, product: Any, beta: Number, alpha: Number) -> Any:
    """beta * value + alpha * product; of integers with whole factors; a beta of 0 drops the value, whatever it is."""
    if not is_float(b, product):
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else _scaled(b, product, alpha)
    if beta == 0:
        return product
    return b.call("add.Tensor", product, value if beta == 1 else _scaled(b, value, beta))


@ATEN.composite(aten=["mean.dim"], shape=reduced_shape, ulps=8)
def mean(self: Lanes, *, dim: Ints | None = None, keepdim: bool = False, dtype: DType | None = None) -> Lanes:
    """The arithmetic mean over `dim`."""
    return np.mean(self, axis=reduced_dims(self.ndim, dim), keepdims=keepdim)


@decomposes(mean)
def _mean(b: Build, self: Any, *, dim: Ints | None, keepdim: bool, dtype: DType | None) -> Any:
    # The hardware's `mean` takes 1/N as a DL16 code; counts, unlike their inverses, are mostly exact in DL16.
    shape = b.shape(self)
    count = prod(shape[d] for d in reduced_dims(len(shape), dim))
    total = b.call("sum.dim_IntList", self, dim=dim, keepdim=keepdim)
    return b.call("div.Tensor", total, float(count))


@ATEN.composite(aten=["softmax.int", "_softmax"], ulps=16)
def softmax(self: Lanes, *, dim: int, half_to_float: bool = False, dtype: DType | None = None) -> Lanes:
    """exp(x) over the sum of exp(x) along `dim`."""
    e = np.exp(self - np.max(self, axis=dim, keepdims=True))
    return e / np.sum(e, axis=dim, keepdims=True)


@decomposes(softmax)
def _softmax(b: Build, self: Any, *, dim: int, half_to_float: bool, dtype: DType | None) -> Any:
    e = b.call("exp", b.call("sub.Tensor", self, b.call("amax", self, dim=(dim,), keepdim=True)))
    return b.call("div.Tensor", e, b.call("sum.dim_IntList", e, dim=(dim,), keepdim=True))


@ATEN.composite(aten=["rms_norm"], ulps=16)
def rms_norm(input: Lanes, weight: Lanes | None = None, *, normalized_shape: Ints, eps: Number | None = None) -> Lanes:
    """input over its root mean square along the last dimensions, times weight."""
    axes = tuple(range(-len(normalized_shape), 0))
    e = 1.1920928955078125e-07 if eps is None else eps
    out = input / np.sqrt(np.mean(input * input, axis=axes, keepdims=True) + e)
    return out if weight is None else out * weight


def floored(eps: Number) -> Number:
    """An epsilon that does not become 0 on the device unless it is: BERT's 1e-12 is below every DL16 number."""
    return max(eps, DL16_SMALLEST) if eps > 0 else eps


@decomposes(rms_norm)
def _rms_norm(b: Build, input: Any, weight: Any, *, normalized_shape: Ints, eps: Number | None) -> Any:
    axes = tuple(range(-len(normalized_shape), 0))
    e = floored(1.1920928955078125e-07 if eps is None else eps)  # torch: the epsilon of float32
    square = b.call("mean.dim", b.call("mul.Tensor", input, input), dim=axes, keepdim=True)
    out = b.call("mul.Tensor", input, b.call("rsqrt", b.call("add.Tensor", square, e)))
    return affine(b, out, weight, None)


@ATEN.composite(aten=["layer_norm"], ulps=16)
def layer_norm(
    input: Lanes,
    weight: Lanes | None = None,
    bias: Lanes | None = None,
    *,
    normalized_shape: Ints,
    eps: Number = 1e-5,
    cudnn_enable: bool = True,
) -> Lanes:
    """(input - mean) over the standard deviation along the last dimensions, times weight, plus bias."""
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - np.mean(input, axis=axes, keepdims=True)
    out = centred / np.sqrt(np.mean(centred * centred, axis=axes, keepdims=True) + eps)
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


@decomposes(layer_norm)
def _layer_norm(
    b: Build, input: Any, weight: Any, bias: Any, *, normalized_shape: Ints, eps: Number, cudnn_enable: bool
) -> Any:
    axes = tuple(range(-len(normalized_shape), 0))
    return affine(b, normalized(b, input, axes, eps)[0], weight, bias)


def normalized(b: Build, value: Any, dims: Ints, eps: Number) -> tuple[Any, Any, Any]:
    """(value - mean) / sqrt(variance + eps) over `dims`, the mean, and the inverse root."""
    mean = b.call("mean.dim", value, dim=dims, keepdim=True)
    centred = b.call("sub.Tensor", value, mean)
    variance = b.call("mean.dim", b.call("mul.Tensor", centred, centred), dim=dims, keepdim=True)
    inverse = b.call("rsqrt", b.call("add.Tensor", variance, floored(eps)))
    return b.call("mul.Tensor", centred, inverse), mean, inverse


def affine(b: Build, value: Any, weight: Any, bias: Any) -> Any:
    """value * weight + bias; either may be absent."""
    value = value if weight is None else b.call("mul.Tensor", value, weight)
    return value if bias is None else b.call("add.Tensor", value, bias)


def _with_mask(scores: Lanes, mask: Lanes) -> Lanes:
    """Scores where a boolean mask holds, else minus infinity; or scores plus an additive mask."""
    return np.where(mask, scores, -INF) if mask.dtype.kind == "b" else scores + mask


def attention_shape(
    query: tuple[int, ...],
    key: tuple[int, ...],
    value: tuple[int, ...],
    attn_mask: tuple[int, ...] | None = None,
    *,
    enable_gqa: bool = False,
    **_: object,
) -> tuple[int, ...]:
    """Shape of attention: that of query, against which the batches of key broadcast, with the features of value."""
    batch = query[:-2] if enable_gqa else np.broadcast_shapes(query[:-2], key[:-2], value[:-2])
    return (*batch, query[-2], value[-1])


@ATEN.composite(aten=["scaled_dot_product_attention"], shape=attention_shape, ulps=32)
def attention(
    query: Lanes,
    key: Lanes,
    value: Lanes,
    attn_mask: Lanes | None = None,
    *,
    dropout_p: Number = 0.0,
    is_causal: bool = False,
    scale: Number | None = None,
    enable_gqa: bool = False,
) -> Lanes:
    """softmax(query @ key transposed * scale + mask) @ value; fully masked rows give 0."""
    if enable_gqa:
        repeat = query.shape[-3] // key.shape[-3]
        key, value = np.repeat(key, repeat, axis=-3), np.repeat(value, repeat, axis=-3)
    factor = 1.0 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * factor
    if is_causal:
        attn_mask = np.tril(np.ones((query.shape[-2], key.shape[-2]), dtype=np.bool_))
    if attn_mask is not None:
        scores = _with_mask(scores, attn_mask)
    peak = np.max(scores, axis=-1, keepdims=True)
    e = np.exp(scores - np.where(peak == -INF, 0.0, peak))
    total = np.sum(e, axis=-1, keepdims=True)
    return (e / np.where(total == 0, 1.0, total)) @ value


@decomposes(attention)
def _attention(
    b: Build,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any,
    *,
    dropout_p: Number,
    is_causal: bool,
    scale: Number | None,
    enable_gqa: bool,
) -> Any:
    if dropout_p:
        raise UnsupportedError(f"attention with dropout {dropout_p}", hint="call model.eval() before export")
    if enable_gqa:
        key, value = (_repeat_heads(b, x, b.shape(query)[-3]) for x in (key, value))
    factor = 1.0 / float(np.sqrt(b.shape(query)[-1])) if scale is None else scale
    scores = b.call("matmul", b.call("mul.Tensor", query, factor), b.call("transpose.int", key, dim0=-2, dim1=-1))
    mask = _causal_mask(b, *b.shape(scores)[-2:]) if is_causal else attn_mask
    mask = mask if mask is None or b.is_bool(mask) else b.cast(mask, like=scores)
    return b.call("matmul", _masked_softmax(b, scores, mask), value)


def _causal_mask(b: Build, rows: int, columns: int) -> Any:
    """Row number >= column number, from two short index tensors instead of a square constant."""
    row = b.call("unsqueeze", b.call("arange.start_step", start=0, end=rows, step=1), dim=1)
    return b.call("ge.Tensor", row, b.call("arange.start_step", start=0, end=columns, step=1))


def _masked_softmax(b: Build, scores: Any, mask: Any) -> Any:
    """Softmax over the last dimension; masked entries are 0, and so are fully masked rows."""
    if mask is None:
        return b.call("softmax.int", scores, dim=-1)
    if b.is_bool(mask):
        kept = b.call("where.self", mask, scores, MASKED)
    else:
        # The device has no infinity. What a mask takes below the floor is the floor itself, whatever the scores:
        # a row that is masked as a whole is uniform, as in torch, where the scores vanish beside finfo.min.
        masked = b.call("le.Scalar", mask, MASKED)
        kept = b.call("where.self", masked, MASKED, b.call("add.Tensor", scores, mask))
        mask = b.call("ne.Scalar", mask, -INF)
    e = b.call("exp", b.call("sub.Tensor", kept, b.call("amax", kept, dim=(-1,), keepdim=True)))
    e = b.call("where.self", mask, e, 0.0)
    # A row with one entry left has a sum of at least exp(0) = 1, so the floor changes masked rows only.
    total = b.call("maximum", b.call("sum.dim_IntList", e, dim=(-1,), keepdim=True), 1.0)
    return b.call("div.Tensor", e, total)


def _repeat_heads(b: Build, x: Any, heads: int) -> Any:
    *batch, own, rows, features = b.shape(x)
    if own == heads:
        return x
    grouped = b.call("expand", b.call("unsqueeze", x, dim=-3), size=(*batch, own, heads // own, rows, features))
    return b.call("view", grouped, size=(*batch, heads, rows, features))


ATEN.samples(addmm, Sample(((4,), (3, 5), (5, 4))), Sample(((3, 4), (3, 5), (5, 4)), {"beta": 2, "alpha": 0.5}))
ATEN.samples(mean, Sample(((3, 65),), {"dim": (-1,), "keepdim": True}), Sample(((4, 5, 6),), {"dim": (0, 2)}))
ATEN.samples(softmax, Sample(((3, 65),), {"dim": -1}), Sample(((4, 5, 6),), {"dim": 1}))
ATEN.samples(softmax, Sample(((3, 65),), {"dim": -1, "half_to_float": False}))
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
    attention,
    Sample(((1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8))),
    Sample(((1, 4, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8)), {"is_causal": True, "enable_gqa": True, "scale": 0.5}),
    Sample(((1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)), {"is_causal": True}),
    Sample(((4, 3, 8), (2, 4, 6, 8), (2, 4, 6, 8))),
    Sample(((2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), (2, 1, 5, 7))),
)
