"""More operators of random programs: layers, windows, rankings, writes through views, and layers in a row."""

from __future__ import annotations

from random import Random

import torch
from torch.nn import functional

from tests.graphs.operators import Call, Kinds, Tensor, broadcast, dim_of, operator, plain

plain(
    "f",
    {
        "glu": lambda x: functional.glu(torch.cat([x, x * 0.5], -1)) if x.dim() else x,
        "tanhshrink": functional.tanhshrink, "selu": functional.selu, "celu": functional.celu,
        "softsign": functional.softsign, "hardsigmoid": functional.hardsigmoid, "logsigmoid": functional.logsigmoid,
        "expm1": lambda x: -(-x.abs()).expm1(), "atan": torch.atan, "nan_to_num": torch.nan_to_num,
        "cube": lambda x: (x * 0.5).clamp(-2, 2).pow(3), "atan2": lambda x: torch.atan2(x, x.abs() + 1),
        "whole_sum": lambda x: x.sum() / x.numel(), "whole_norm": lambda x: x / (x.norm() + 1),
        "minus_mean": lambda x: x - x.mean(),
    },
)  # fmt: skip


@operator("f", "prod", "std", "cumprod", "logcumsumexp", "aminmax", "diff", "median")
def along(name: str, r: Random, x: Tensor) -> Call | None:
    dim = dim_of(r, x)
    if dim is None or x.shape[dim] < 2 or x.shape[dim] > 70:
        return None
    calls: dict[str, Call] = {
        "prod": lambda x, kinds: (1 + x.clamp(-1, 1) * 0.1).prod(dim),
        "std": lambda x, kinds: x.std(dim),
        "cumprod": lambda x, kinds: (1 + x.clamp(-1, 1) * 0.1).cumprod(dim),
        "logcumsumexp": lambda x, kinds: x.clamp(-5, 5).logcumsumexp(dim),
        "aminmax": lambda x, kinds: torch.sub(*reversed(torch.aminmax(x, dim=dim))),
        "diff": lambda x, kinds: x.diff(dim=dim),
        "median": lambda x, kinds: x.median(dim).values,
    }
    return calls[name]


@operator("f", "top_few", "sort_down", "kthvalue")
def ranked(name: str, r: Random, x: Tensor) -> Call | None:
    dim = dim_of(r, x)
    if dim is None or not 3 <= x.shape[dim] <= 33:
        return None
    few = r.randrange(1, x.shape[dim])
    calls: dict[str, Call] = {
        "top_few": lambda x, kinds: x.topk(few, dim).values,
        "sort_down": lambda x, kinds: x.sort(dim=dim, descending=True).values,
        "kthvalue": lambda x, kinds: x.kthvalue(few, dim, keepdim=True).values,
    }
    return calls[name]


# Windows and pictures.
@operator("f", "max_pool2d", "avg_pool2d", "adaptive", "nearest", "bilinear", "pixel_shuffle", "unfold2d")
def picture(name: str, r: Random, x: Tensor) -> Call | None:
    if x.dim() != 4 or min(x.shape[2:]) < 3 or x.numel() > 3000 or (name == "pixel_shuffle" and x.shape[1] % 4):
        return None
    size = (r.randrange(1, 6), r.randrange(1, 6))
    calls: dict[str, Call] = {
        "max_pool2d": lambda x, kinds: functional.max_pool2d(x, 3, 2, 1, ceil_mode=True),
        "avg_pool2d": lambda x, kinds: functional.avg_pool2d(x, 2, 2, ceil_mode=True),
        "adaptive": lambda x, kinds: functional.adaptive_avg_pool2d(x, size),
        "nearest": lambda x, kinds: functional.interpolate(x, size=size),
        "bilinear": lambda x, kinds: functional.interpolate(x, size=size, mode="bilinear"),
        "pixel_shuffle": lambda x, kinds: functional.pixel_shuffle(x, 2),
        "unfold2d": lambda x, kinds: functional.unfold(x, 2),
    }
    return calls[name]


@operator("f", "conv_k3", "conv_depthwise", "conv_transpose", "conv_strided")
def window(name: str, _r: Random, x: Tensor) -> Call | None:
    """A convolution of a picture with its own first rows as weights."""
    if x.dim() != 3 or x.shape[2] < 6 or x.numel() > 4000:
        return None

    def weight(x: Tensor, outer: int, inner: int) -> Tensor:
        return x[0, :1, :3].expand(inner, 3).expand(outer, inner, 3) * 0.5

    channels = x.shape[1]
    calls: dict[str, Call] = {
        "conv_k3": lambda x, kinds: functional.conv1d(x, weight(x, 5, channels) / channels, padding=1),
        "conv_depthwise": lambda x, kinds: functional.conv1d(x, weight(x, channels, 1), groups=channels, dilation=2),
        "conv_transpose": lambda x, kinds: functional.conv_transpose1d(x, weight(x, channels, 2) / channels, stride=2),
        "conv_strided": lambda x, kinds: functional.conv1d(x, weight(x, 3, channels) / channels, stride=3),
    }
    return calls[name]


# Shapes.
@operator("a", "movedim", "tile", "roll_two", "flip_all", "split_cat", "stride_back", "meshgrid_add")
def moved(name: str, r: Random, x: Tensor) -> Call | None:
    dim = dim_of(r, x)
    if dim is None or x.numel() > 4000 or (name == "meshgrid_add" and (x.dim() != 1 or x.numel() > 70)):
        return None
    cut = r.randrange(x.shape[dim] + 1)
    calls: dict[str, Call] = {
        "movedim": lambda x, kinds: x.movedim(dim, 0),
        "tile": lambda x, kinds: x.tile(2),
        "roll_two": lambda x, kinds: x.roll((1, 2), (dim, 0)),
        "flip_all": lambda x, kinds: x.flip(tuple(range(x.dim()))),
        "split_cat": lambda x, kinds: torch.cat([x.narrow(dim, cut, x.shape[dim] - cut), x.narrow(dim, 0, cut)], dim),
        "stride_back": lambda x, kinds: x.transpose(0, dim).contiguous().view(-1)[1::2] if x.numel() > 2 else x,
        "meshgrid_add": lambda x, kinds: torch.stack(torch.meshgrid(x, x, indexing="ij")),
    }
    return calls[name]


@operator("f", "half_added", "column_scaled", "diagonal_filled", "rows_swapped")
def written(name: str, _r: Random, x: Tensor) -> Call | None:
    """Writes through views of a copy."""
    if x.dim() < 2 or min(x.shape[-2:]) < 2:
        return None

    def call(x: Tensor, kinds: Kinds) -> Tensor:
        made = x.clone()
        if name == "half_added":
            made[..., ::2] += 1
        elif name == "column_scaled":
            made.transpose(-1, -2)[..., 1, :].mul_(0.5)
        elif name == "diagonal_filled":
            made.diagonal(dim1=-2, dim2=-1).fill_(0.5)
        else:
            made[..., [0, 1], :] = made[..., [1, 0], :]
        return made

    return call


# Products and layers.
@operator("f", "outer", "tensordot", "addmm", "einsum_sum", "cosine")
def combined(name: str, _r: Random, x: Tensor) -> Call | None:
    if x.dim() < 2 or x.shape[-2] ** 2 * (x.numel() // x.shape[-1] // x.shape[-2]) > 20_000:
        return None
    if name == "outer" and (x.shape[-1] > 70 or x.dim() != 2):
        return None
    calls: dict[str, Call] = {
        "outer": lambda x, kinds: torch.outer(x[0], x[-1]),
        "tensordot": lambda x, kinds: torch.tensordot(x[..., :2, :], x[..., 0, :].reshape(-1, x.shape[-1]).mT, 1) / 8,
        "addmm": lambda x, kinds: torch.baddbmm(
            x.flatten(0, -3)[:, :, :1] if x.dim() > 2 else x[None, :, :1],
            x.reshape(-1, *x.shape[-2:]), x.reshape(-1, *x.shape[-2:]).mT, alpha=1 / x.shape[-1],
        ),
        "einsum_sum": lambda x, kinds: torch.einsum("...ij,...kj->...i", x, x) / x.shape[-1] / x.shape[-2],
        "cosine": lambda x, kinds: functional.cosine_similarity(x, x.flip(-1), dim=-1, eps=1e-2),
    }  # fmt: skip
    return calls[name]


@operator("fb")
def masked_softmax(_r: Random, x: Tensor, c: Tensor) -> Call | None:
    fits = x.dim() >= max(c.dim(), 1) and broadcast(x, c) and torch.broadcast_shapes(x.shape, c.shape) == x.shape
    return (lambda x, c, kinds: x.masked_fill(c, -1e4).softmax(-1)) if fits else None


@operator("f", "gqa", "masked_attention")
def attended(name: str, r: Random, x: Tensor) -> Call | None:
    if x.dim() != 4 or max(x.shape[-2:]) > 70 or x.numel() > 4000 or (name == "gqa" and x.shape[1] % 2):
        return None
    scale = r.choice((None, 0.1))
    attention = functional.scaled_dot_product_attention
    if name == "gqa":
        return lambda x, kinds: attention(x, x[:, ::2], x[:, 1::2], scale=scale, enable_gqa=True)
    return lambda x, kinds: attention(x, x * 0.5, x, attn_mask=x[..., :1] > -9)


@operator("f", "group_norm", "instance_norm", "batch_statistics")
def grouped(name: str, _r: Random, x: Tensor) -> Call | None:
    if x.dim() < 3 or x.shape[1] % 2 or x[0, 0].numel() < 2 or x.dim() > 4:
        return None
    calls: dict[str, Call] = {
        "group_norm": lambda x, kinds: functional.group_norm(x, 2, eps=1e-2),
        "instance_norm": lambda x, kinds: functional.instance_norm(x, eps=1e-2),
        "batch_statistics": lambda x, kinds: functional.batch_norm(x, None, None, training=True, eps=1e-2),
    }
    return calls[name]


@operator("f")
def layers(r: Random, x: Tensor) -> Call | None:
    """Layers in a row, which may become one function: all equal, or one of them with another number."""
    if x.dim() < 2 or not 2 <= x.shape[-1] <= 40 or x.numel() > 2000:
        return None
    odd, gain = r.choice((None, 0, 1, 3)), r.choice((0.3, 2.0))

    def call(x: Tensor, kinds: Kinds) -> Tensor:
        first = x
        for number in range(4):
            normal = functional.layer_norm(x, x.shape[-1:], eps=1e-2)
            scores = (normal @ first.mT / x.shape[-1]).softmax(-1)
            mixed = functional.gelu(scores @ normal) * (gain if number == odd else 0.7)
            x = x + mixed.tanh() + functional.silu(normal.roll(1, -1)) * 0.5
        return x

    return call


# Indices: any integers become positions by their remainder.
@operator("fi", "scatter_amax", "scatter_mean", "index_fill", "one_hot", "take", "bucketize")
def placed(name: str, _r: Random, x: Tensor, i: Tensor) -> Call | None:
    if x.dim() < 1 or not 1 <= i.numel() <= 20 or x.numel() > 1000:
        return None

    def rows(x: Tensor, p: Tensor) -> Tensor:
        return p.reshape(-1, *[1] * (x.dim() - 1)).expand(-1, *x.shape[1:])

    calls: dict[str, Call] = {
        "scatter_amax": lambda x, p: x.scatter_reduce(0, rows(x, p), x[p] + 0.5, "amax"),
        "scatter_mean": lambda x, p: x.scatter_reduce(0, rows(x, p), x[p] * 0.5, "mean", include_self=False),
        "index_fill": lambda x, p: x.index_fill(0, p, 0.25),
        "one_hot": lambda x, p: functional.one_hot(p, x.shape[0]).to(x.dtype) @ x.reshape(x.shape[0], -1),
        "take": lambda x, p: x.take(p * (x.numel() // x.shape[0])),
        "bucketize": lambda x, p: torch.bucketize(p, torch.arange(0, 60, 7, device=p.device)).to(x.dtype) + x.sum() * 0,
    }
    call = calls[name]
    return lambda x, i, kinds: call(x, (i.flatten() % x.shape[0]).long())
