"""Templates of products of matrices, convolutions, norms and attention."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from tests.op_cases.cases import Case
from tests.op_cases.program import Program, template, tensors_of

EPSILON = 1e-5
HEAD = 128


@template("test_addmm_cpu", "test_addmm_out_cpu")
def product_and_bias(case: Case, arguments: list[Any]) -> Program:
    """The variant with a result to write to is the same program: nothing is written in place on the device."""
    return Program(torch.addmm, tuple(arguments), sized=lambda c, a, b: torch.addmm(c.abs(), a.abs(), b.abs()))


@template("test_addmm_scaled_cpu")
def scaled_product_and_bias(case: Case, arguments: list[Any]) -> Program:
    alpha, *tensors = arguments
    return Program(
        lambda c, a, b: torch.addmm(c, a, b, alpha=alpha),
        tuple(tensors),
        sized=lambda c, a, b: torch.addmm(c.abs(), a.abs(), b.abs(), alpha=alpha),
    )


@template("test_mm_autocast_cpu")
def product_under_autocast(case: Case, arguments: list[Any]) -> Program:
    enabled, *tensors = arguments

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.float16, enabled=enabled):
            return torch.mm(a, b)

    return Program(product, tuple(tensors), sized=lambda a, b: a.abs() @ b.abs(), wide=False)


@template("test_linear_fn")
def linear(case: Case, arguments: list[Any]) -> Program:
    return Program(
        functional.linear,
        tensors_of(arguments),
        sized=lambda *tensors: functional.linear(*(tensor.abs() for tensor in tensors)),
    )


@template("test_conv2d_cpu")
def convolution(case: Case, arguments: list[Any]) -> Program:
    x, weight, bias, padding, stride, groups = arguments
    options = {"bias": bias, "stride": stride, "padding": padding, "groups": groups}
    return Program(
        lambda x, w: functional.conv2d(x, w, **options),
        (x, weight),
        sized=lambda x, w: functional.conv2d(x.abs(), w.abs(), **options),
    )


@template("test_layernorm_cpu")
def layer_norm(case: Case, arguments: list[Any]) -> Program:
    x, weight, bias = arguments
    return Program(
        lambda x, w, b: functional.layer_norm(x, (x.shape[-1],), w, b, EPSILON), (x, weight, bias), peak=True
    )


@template("test_rmsnorm_cpu")
def rms_norm(case: Case, arguments: list[Any]) -> Program:
    return Program(lambda x: functional.rms_norm(x, (x.shape[-1],), eps=EPSILON), tuple(arguments))


@template("test_attention_cpu")
def attention_by_hand(case: Case, arguments: list[Any]) -> Program:
    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.transpose(-2, -1) * scale, -1) @ v

    return Program(attention, tuple(arguments), sized=lambda q, k, v, scale: attention(q, k, v.abs(), scale))


@template("test_sdpa_cpu")
def attention(case: Case, arguments: list[Any]) -> Program:
    """With five arguments there is no mask, and heads come after words: they are brought to the front first."""
    q, k, v, *rest = arguments
    mask = rest[0] if len(rest) == 3 else None
    causal, grouped = rest[-2:]
    words_first = len(rest) == 2
    held = () if mask is None else (mask,)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *mask: torch.Tensor) -> torch.Tensor:
        if words_first:
            q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
        bias = mask[0] if mask else None
        return functional.scaled_dot_product_attention(q, k, v, bias, is_causal=causal, enable_gqa=grouped)

    return Program(attend, (q, k, v, *held), sized=lambda q, k, v, *mask: attend(q, k, v.abs(), *mask))


@template("test_rope_cpu")
def rotary(case: Case, arguments: list[Any]) -> Program:
    """Halves of every head, rotated by a matrix of two by two per position and frequency."""

    def rotate(x: torch.Tensor, rotations: torch.Tensor) -> torch.Tensor:
        heads = x.view(*x.shape[:2], -1, 1, 2, HEAD // 2)
        return (rotations[:, -x.shape[1] :].unsqueeze(2) * heads).sum(4).flatten(3)

    return Program(rotate, tuple(arguments), sized=lambda x, r: rotate(x.abs(), r.abs()))


@template("test_attn_qkv_paths")
def attention_after_rotation(case: Case, arguments: list[Any]) -> Program:
    """What rotary embedding leaves of queries and keys, and values as a projection leaves them."""

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = (t.reshape(*t.shape[:2], -1, HEAD).transpose(1, 2) for t in (q, k, v))
        k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(HEAD), -1)
        return (weights @ v).transpose(1, 2).flatten(2)

    return Program(attend, tuple(arguments), sized=lambda q, k, v: attend(q, k, v.abs()))
