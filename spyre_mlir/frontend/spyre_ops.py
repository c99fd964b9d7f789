"""The operators of the namespace `spyre` as torch operators, for programs written for torch-spyre.

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


def _clamp(x: Tensor, low: Any = None, high: Any = None) -> Tensor:
    return x.clamp(low, high)


def _softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    return f.softplus(x, beta, threshold)


def _gelu(x: Tensor, approximate: str = "none") -> Tensor:
    return f.gelu(x, approximate=approximate)


def _topkvalue(x: Tensor, k: int, dim: int = -1, largest: bool = True) -> Tensor:
    return x.topk(k, dim, largest).values


def _topkindex(x: Tensor, k: int, dim: int = -1, largest: bool = True) -> Tensor:
    return x.topk(k, dim, largest).indices


def _fp8(x: Tensor) -> Tensor:
    return x.to(_FP8)


def _scale_per_token(x: Tensor, scale_ub: float = _FP8_LARGEST) -> Tensor:
    return x.abs().amax(-1, keepdim=True) / scale_ub


def _dequantized(x: Tensor, scale: Tensor) -> Tensor:
    return x.to(torch.float16) * scale


def _scaled_mm(a: Tensor, b: Tensor, out_dtype: torch.dtype) -> Tensor:
    return (a.float() @ b.float()).to(out_dtype)


def _kept_by_index(x: Tensor, index: Tensor) -> Tensor:
    return torch.gather(x, -1, index)


def _causal_mask(rows: int, columns: int, dtype: torch.dtype) -> Tensor:
    return torch.full((rows, columns), float("-inf")).triu(1 + columns - rows).to(dtype)


def _max_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, ...]:
    return tuple(x.max(dim, keepdim))


def _min_dim(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, ...]:
    return tuple(x.min(dim, keepdim))


def _prod_dim(x: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    return x.prod(dim, keepdim)


def _to_dtype(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype, copy=True)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "clamp(Tensor input, Scalar? min=None, Scalar? max=None) -> Tensor": _clamp,
    "softplus(Tensor input, float beta=1.0, float threshold=20.0) -> Tensor": _softplus,
    "gelu(Tensor input, str approximate='none') -> Tensor": _gelu,
    "silu(Tensor input) -> Tensor": f.silu,
    "logical_not(Tensor input) -> Tensor": torch.logical_not,
    "layer_norm(Tensor x, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> Tensor": (
        f.layer_norm
    ),
    "rms_norm(Tensor x, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor": f.rms_norm,
    "exx2(Tensor input, float scale, bool use_zero_mean=False) -> Tensor": _exx2,
    "layernormscale(Tensor input, float eps) -> Tensor": _layernormscale,
    "layernormnorm(Tensor input, Tensor mean, Tensor norm_mean, Tensor weight, Tensor bias) -> Tensor": _layernormnorm,
    "topkvalue(Tensor input, int k, int dim=-1, bool largest=True) -> Tensor": _topkvalue,
    "topkindex(Tensor input, int k, int dim=-1, bool largest=True) -> Tensor": _topkindex,
    "batched_matmul(Tensor a, Tensor b) -> Tensor": torch.matmul,
    "conv2d(Tensor input, Tensor weight, int[] stride, int[] padding, int[] dilation, int groups) -> Tensor": _conv2d,
    "conv2d_with_bias(Tensor input, Tensor weight, Tensor bias, int[] stride, int[] padding, int[] dilation, "
    "int groups) -> Tensor": f.conv2d,
    "qfp8ch(Tensor input) -> Tensor": _fp8,
    "qfp8wt(Tensor input) -> Tensor": _fp8,
    "quantscalepertokenfp8(Tensor input, float scale_ub=448.0) -> Tensor": _scale_per_token,
    "quantize_fp8_with_scale(Tensor input, Tensor scale) -> Tensor": _quantized,
    "quantize_weight_fp8_with_scale(Tensor input, Tensor scale) -> Tensor": _quantized,
    "dequantize_fp8_with_scale(Tensor input, Tensor scale) -> Tensor": _dequantized,
    "scaled_mm(Tensor a, Tensor b, ScalarType out_dtype) -> Tensor": _scaled_mm,
    "restickify(Tensor input) -> Tensor": _copied,
    "compact(Tensor input) -> Tensor": _copied,
    "copy_forced(Tensor input) -> Tensor": _copied,
    "tile_dim_marker(Tensor input, int dim) -> Tensor": _copied,
    "overwrite_f(Tensor input, Tensor output, int[] dims, int[] offsets) -> Tensor": _overwritten,
    "keep_by_index(Tensor input, Tensor index) -> Tensor": _kept_by_index,
    "causal_mask(int rows, int columns, ScalarType dtype) -> Tensor": _causal_mask,
    "sliding_window_attention(Tensor q, Tensor k, Tensor v, int window, float? scale=None) -> Tensor": _windowed,
    "max_dim_int64_fallback(Tensor input, int dim, bool keepdim=False) -> (Tensor, Tensor)": _max_dim,
    "min_dim_int64_fallback(Tensor input, int dim, bool keepdim=False) -> (Tensor, Tensor)": _min_dim,
    "max_default_int64_fallback(Tensor input) -> Tensor": torch.max,
    "prod_dim_int(Tensor input, int dim, bool keepdim=False) -> Tensor": _prod_dim,
    "to_dtype_cpu(Tensor input, ScalarType dtype) -> Tensor": _to_dtype,
}


def _define() -> Any:
    """Defines what nobody has defined yet: torch-spyre itself may be installed."""
    library = cast(Any, torch.library).Library("spyre", "FRAGMENT")
    for signature, meaning in _OPERATORS.items():
        name = signature.partition("(")[0]
        if not hasattr(torch.ops.spyre, name):
            library.define(signature)
            takes_tensors = "Tensor" in signature.partition("->")[0]  # what takes none is called for no device
            library.impl(name, meaning, "CPU" if takes_tensors else "CompositeExplicitAutograd")
            cast(Any, torch.library).register_fake(f"spyre::{name}", meaning, lib=library)
    return library


LIBRARY = _define()
