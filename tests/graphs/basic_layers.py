"""Products and layers among the operators of random programs."""

from __future__ import annotations

from random import Random

import torch
from torch.nn import functional

from tests.graphs.operators import Call, Tensor, operator


@operator("ff", "matmul", "linear")
def product(name: str, _r: Random, x: Tensor, y: Tensor) -> Call | None:
    right = y.mT if name == "linear" and y.dim() == 2 else y
    fits = x.dtype == y.dtype and x.dim() >= 2 and right.dim() == 2 and x.shape[-1] == right.shape[0]
    if not fits or x.numel() // x.shape[-1] * right.shape[1] > 20_000:
        return None
    return lambda x, y, kinds: (functional.linear(x, y) if name == "linear" else x @ y) / x.shape[-1]


@operator("f", "gram", "bmm", "einsum")
def own_product(name: str, _r: Random, x: Tensor) -> Call | None:
    if x.dim() < 2 or (name == "bmm" and x.dim() != 3) or x.numel() // x.shape[-1] * x.shape[-2] > 20_000:
        return None
    calls: dict[str, Call] = {
        "gram": lambda x, kinds: x @ x.mT / x.shape[-1],
        "bmm": lambda x, kinds: torch.bmm(x, x.mT) / x.shape[-1],
        "einsum": lambda x, kinds: torch.einsum("...ik,...jk->...ij", x, x) / x.shape[-1],
    }
    return calls[name]


@operator("f", "layer_norm", "rms_norm")
def norm(name: str, _r: Random, x: Tensor) -> Call | None:
    return (
        None
        if x.dim() < 1 or x.shape[-1] < 2
        else lambda x, kinds: getattr(functional, name)(x, x.shape[-1:], eps=1e-2)
    )


@operator("f")
def attention(r: Random, x: Tensor) -> Call | None:
    causal = r.random() < 0.5
    fits = x.dim() == 3 and x.shape[-2] <= 70 and x.shape[-1] <= 70
    return (lambda x, kinds: functional.scaled_dot_product_attention(x, x * 0.5, x, is_causal=causal)) if fits else None


@operator("f", "max_pool1d", "avg_pool1d")
def pool(name: str, _r: Random, x: Tensor) -> Call | None:
    return None if x.dim() != 3 or x.shape[-1] < 4 else lambda x, kinds: getattr(functional, name)(x, 2)


@operator("ff", "conv1d", "conv2d")
def convolution(name: str, _r: Random, x: Tensor, w: Tensor) -> Call | None:
    rank = 3 if name == "conv1d" else 4
    fits = x.dim() == rank and w.dim() == 2 and x.dtype == w.dtype and x.shape[1] == w.shape[1] and x.shape[-1] >= 3
    if not fits or x.numel() // x.shape[1] * w.shape[0] > 20_000:
        return None
    return lambda x, w, kinds: (
        getattr(functional, name)(x, w.reshape(*w.shape, *[1] * (rank - 2)), padding=1) / x.shape[1]
    )
