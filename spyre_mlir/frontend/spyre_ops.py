"""The operators of the namespace `spyre`, as torch operators: programs written for torch-spyre use them by name.

Names, arguments and meanings are those of torch-spyre's custom operators (its customops module, September 2026; likely
where that text leaves a shape open). What they are made of stands in `spyre_mlir.ops.spyre_ops`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

f = torch.nn.functional
Tensor = torch.Tensor
_FP8, _FP8_LARGEST = torch.float8_e4m3fn, 448.0


def _exx2(x: Tensor, scale: float, use_zero_mean: bool = False) -> Tensor:
    first = torch.zeros_like(x.sum(-1)) if use_zero_mean else x.sum(-1) * scale
    return torch.stack([first, (x * x).sum(-1) * scale], -1)


def _layernormscale(moments: Tensor, eps: float) -> Tensor:
    mean, square = moments[..., 0], moments[..., 1]
    return torch.rsqrt(square - mean * mean + eps).unsqueeze(-1)


def _layernormnorm(x: Tensor, mean: Tensor, norm_mean: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return (x - mean[..., :1]) * norm_mean * weight + bias


def _conv2d(x: Tensor, w: Tensor, stride: Any, padding: Any, dilation: Any, groups: int) -> Tensor:
    return f.conv2d(x, w, None, stride, padding, dilation, groups)


def _overwritten(input: Tensor, output: Tensor, dims: Sequence[int], offsets: Sequence[int]) -> Tensor:
    result = output.clone()
    block = result
    for dim, offset in zip(dims, offsets, strict=True):
        block = block.narrow(dim, offset, input.shape[dim])
    block.copy_(input)
    return result


def _quantized(x: Tensor, scale: Tensor) -> Tensor:
    return (x / scale).clamp(-_FP8_LARGEST, _FP8_LARGEST).to(_FP8)


def _windowed(q: Tensor, k: Tensor, v: Tensor, window: int, scale: float | None = None) -> Tensor:
    rows = torch.arange(q.shape[-2]).unsqueeze(1) + k.shape[-2] - q.shape[-2]
    back = rows - torch.arange(k.shape[-2])
    return f.scaled_dot_product_attention(q, k, v, (back >= 0) & (back < window), scale=scale)


def _copied(x: Tensor, *_: object) -> Tensor:
    return x.clone()


_OPERATORS: dict[str, Callable[..., Any]] = {
    "clamp(Tensor input, Scalar? min=None, Scalar? max=None) -> Tensor": lambda x, a=None, b=None: x.clamp(a, b),
    "softplus(Tensor input, float beta=1.0, float threshold=20.0) -> Tensor": lambda x, b=1.0, t=20.0: f.softplus(
        x, b, t
    ),
    "gelu(Tensor input, str approximate='none') -> Tensor": lambda x, a="none": f.gelu(x, approximate=a),
    "silu(Tensor input) -> Tensor": f.silu,
    "logical_not(Tensor input) -> Tensor": torch.logical_not,
    "layer_norm(Tensor x, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor": (
        f.layer_norm
    ),
    "rms_norm(Tensor x, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor": f.rms_norm,
    "exx2(Tensor input, float scale, bool use_zero_mean=False) -> Tensor": _exx2,
    "layernormscale(Tensor input, float eps) -> Tensor": _layernormscale,
    "layernormnorm(Tensor input, Tensor mean, Tensor norm_mean, Tensor weight, Tensor bias) -> Tensor": _layernormnorm,
    "topkvalue(Tensor input, int k, int dim=-1, bool largest=True) -> Tensor": (
        lambda x, k, d=-1, g=True: x.topk(k, d, g).values
    ),
    "topkindex(Tensor input, int k, int dim=-1, bool largest=True) -> Tensor": (
        lambda x, k, d=-1, g=True: x.topk(k, d, g).indices
    ),
    "batched_matmul(Tensor a, Tensor b) -> Tensor": torch.matmul,
    "conv2d(Tensor input, Tensor weight, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor": _conv2d,
    "conv2d_with_bias(Tensor input, Tensor weight, Tensor bias, int[] stride, int[] padding, int[] dilation, "
    "int groups) -> Tensor": f.conv2d,
    "qfp8ch(Tensor input) -> Tensor": lambda x: x.to(_FP8),
    "qfp8wt(Tensor input) -> Tensor": lambda x: x.to(_FP8),
    "quantscalepertokenfp8(Tensor input, float scale_ub=448.0) -> Tensor": (
        lambda x, ub=_FP8_LARGEST: x.abs().amax(-1, keepdim=True) / ub
    ),
    "quantize_fp8_with_scale(Tensor input, Tensor scale) -> Tensor": _quantized,
    "quantize_weight_fp8_with_scale(Tensor input, Tensor scale) -> Tensor": _quantized,
    "dequantize_fp8_with_scale(Tensor input, Tensor scale) -> Tensor": lambda x, s: x.to(torch.float16) * s,
    "scaled_mm(Tensor a, Tensor b, ScalarType out_dtype) -> Tensor": lambda a, b, t: (a.float() @ b.float()).to(t),
    "restickify(Tensor input) -> Tensor": _copied,
    "compact(Tensor input) -> Tensor": _copied,
    "copy_forced(Tensor input) -> Tensor": _copied,
    "tile_dim_marker(Tensor input, int dim) -> Tensor": _copied,
    "overwrite_f(Tensor input, Tensor output, int[] dims, int[] offsets) -> Tensor": _overwritten,
    "keep_by_index(Tensor input, Tensor index) -> Tensor": lambda x, i: torch.gather(x, -1, i),
    "causal_mask(int rows, int columns, ScalarType dtype) -> Tensor": (
        lambda r, c, t: torch.full((r, c), float("-inf")).triu(1 + c - r).to(t)
    ),
    "sliding_window_attention(Tensor q, Tensor k, Tensor v, int window, float? scale=None) -> Tensor": _windowed,
    "max_dim_int64_fallback(Tensor input, int dim, bool keepdim=False) -> (Tensor, Tensor)": (
        lambda x, d, k=False: tuple(x.max(d, k))
    ),
    "min_dim_int64_fallback(Tensor input, int dim, bool keepdim=False) -> (Tensor, Tensor)": (
        lambda x, d, k=False: tuple(x.min(d, k))
    ),
    "max_default_int64_fallback(Tensor input) -> Tensor": torch.max,
    "prod_dim_int(Tensor input, int dim, bool keepdim=False) -> Tensor": lambda x, d, k=False: x.prod(d, k),
    "to_dtype_cpu(Tensor input, ScalarType dtype) -> Tensor": lambda x, t: x.to(t, copy=True),
}


def _define() -> Any:
    """Defines what nobody has defined yet: torch-spyre itself may be installed."""
    library = cast(Any, torch.library).Library("spyre", "FRAGMENT")
    for signature, meaning in _OPERATORS.items():
        name = signature.partition("(")[0]
        if not hasattr(torch.ops.spyre, name):
            library.define(signature)
            library.impl(name, meaning, "CPU")
            torch.library.register_fake(f"spyre::{name}", meaning, lib=library)
    return library


LIBRARY = _define()
