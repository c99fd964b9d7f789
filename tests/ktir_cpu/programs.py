"""Programs whose KTIR runs on another interpreter: from one op to a layer of a language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tests.functions import FunctionModel

functional = nn.functional
Case = tuple[Callable[[], nn.Module], tuple[torch.Tensor, ...]]


def half(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape) + len(shape))
    return torch.randn(shape, dtype=torch.float16, generator=generator)


def rows(count: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(3))


def _of(function: Callable[..., Any], *inputs: torch.Tensor) -> Case:
    return (lambda: FunctionModel(function)), inputs


def _with_weights(make: Callable[[], nn.Module], *inputs: torch.Tensor) -> Case:
    def build() -> nn.Module:
        torch.manual_seed(1)
        return make().half()

    return build, inputs


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(128, 256)
        self.down = nn.Linear(256, 128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.gelu(self.up(x)))


class SwiGlu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(128, 256, bias=False)
        self.up = nn.Linear(128, 256, bias=False)
        self.down = nn.Linear(256, 128, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(functional.silu(self.gate(x)) * self.up(x))


class LinearRelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(128, 192)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


class LlamaLayer(nn.Module):
    """A layer in which every group of kernels of a decoder occurs: norms, rotated heads, attention, a gated MLP."""

    def __init__(self, width: int = 128, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.before = nn.RMSNorm(width)
        self.after = nn.RMSNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.mlp = SwiGlu()
        angles = torch.outer(torch.arange(64), 10000.0 ** (-torch.arange(0, 32) / 32.0))
        self.register_buffer("cos", torch.cat([angles.cos(), angles.cos()], -1))
        self.register_buffer("sin", torch.cat([angles.sin(), angles.sin()], -1))

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def _rotated(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, -1)
        return x * self.cos + torch.cat([-right, left], -1) * self.sin

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.before(x)
        q, k, v = self._rotated(self._split(self.q(y))), self._rotated(self._split(self.k(y))), self._split(self.v(y))
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.after(x))


HEADS = (half(1, 2, 64, 64), half(1, 2, 64, 64) * 0.5, half(1, 2, 64, 64) * 0.7)

PROGRAMS: dict[str, Case] = {
    "add": _of(lambda a, b: a + b, half(64, 128), half(64, 128)),
    "bias": _of(lambda a, b: a + b, half(128, 256), half(256)),
    "column": _of(lambda a, b: a * b, half(64, 128), half(64, 1)),
    "scalar": _of(lambda a, b: a * b + 2, half(64, 128), half()),
    "ragged": _of(lambda a, b: a - b, half(7, 100), half(7, 100)),
    "three_axes": _of(lambda a, b: a * b + a, half(3, 10, 70), half(3, 10, 70)),
    "division": _of(lambda a, b: a / (b.abs() + 1), half(64, 128), half(64, 128)),
    "exponential": _of(torch.exp, half(64, 128)),
    "square_root": _of(lambda a: torch.sqrt(a.abs()), half(64, 128)),
    "gelu": _of(functional.gelu, half(64, 128)),
    "silu": _of(functional.silu, half(64, 128)),
    "sigmoid": _of(torch.sigmoid, half(64, 128)),
    "tanh": _of(torch.tanh, half(64, 128)),
    "clamp": _of(lambda a: a.clamp(-0.5, 0.5), half(64, 128)),
    "select": _of(lambda a, b: torch.where(a > b, a, b * 2), half(64, 128), half(64, 128)),
    "sum_on_the_stick": _of(lambda a: a.sum(-1), half(128, 200)),
    "sum_off_the_stick": _of(lambda a: a.sum(0), half(128, 256)),
    "sum_of_all": _of(lambda a: a.sum(), half(32, 128)),
    "largest_on_the_stick": _of(lambda a: a.amax(-1), half(64, 200)),
    "largest_off_the_stick": _of(lambda a: a.amax(0), half(64, 128)),
    "smallest": _of(lambda a: a.amin(-1), half(64, 100)),
    "mean_on_the_stick": _of(lambda a: a.mean(-1), half(128, 200)),
    "mean_off_the_stick": _of(lambda a: a.mean(0), half(128, 128)),
    "mean_of_the_middle": _of(lambda a: a.mean(1), half(4, 40, 64)),
    "variance": _of(lambda a: a.var(-1), half(64, 128)),
    "softmax": _of(lambda a: a.softmax(-1), half(64, 200)),
    "softmax_of_columns": _of(lambda a: a.softmax(0), half(64, 128)),
    "softmax_twice": _of(lambda a: a.exp().softmax(0).softmax(1), half(64, 128) * 0.5),
    "masked_softmax": _of(lambda a, b: a.masked_fill(b > 0, -1e4).softmax(-1), half(64, 128), half(64, 128)),
    "log_softmax": _of(lambda a: a.log_softmax(-1), half(64, 128)),
    "layer_norm": _of(lambda a, w, b: functional.layer_norm(a, (128,), w, b), half(64, 128), half(128), half(128)),
    "rms_norm": _of(lambda a, w: functional.rms_norm(a, (128,), w), half(64, 128), half(128)),
    "wide_rms_norm": _of(lambda a, w: functional.rms_norm(a, (1000,), w), half(16, 1000), half(1000)),
    "normalised": _of(lambda a: functional.normalize(a, dim=-1), half(32, 128)),
    "cumulative_sum": _of(lambda a: a.cumsum(-1), half(8, 64)),
    "matmul": _of(lambda a, b: a @ b, half(64, 192), half(192, 128)),
    "padded_matmul": _of(lambda a, b: a @ b, half(37, 100), half(100, 70)),
    "matmul_split": _of(lambda a, b: a @ b, half(1, 2048), half(2048, 64)),
    "matmul_batches": _of(lambda a, b: a @ b, half(3, 40, 64), half(3, 64, 128)),
    "matvec": _of(lambda a, b: a @ b, half(64, 256), half(256)),
    "transposed": _of(lambda a: a.t() @ a, half(64, 128)),
    "moved": _of(lambda a: a.permute(1, 0, 2).contiguous() * 2, half(4, 32, 64)),
    "gather": _of(functional.embedding, rows(1000, 128), half(1000, 256)),
    "gather_of_sentences": _of(functional.embedding, rows(50, 3, 40), half(50, 128)),
    "concatenation": _of(lambda a, b: torch.cat([a, b], 0).exp(), half(64, 128), half(32, 128)),
    "concatenation_of_columns": _of(lambda a, b: torch.cat([a, b], 1) * 2, half(32, 128), half(32, 64)),
    "convolution": _with_weights(lambda: nn.Conv2d(8, 16, 3), half(1, 8, 12, 12)),
    "attention": _of(functional.scaled_dot_product_attention, *HEADS),
    "causal_attention": _of(lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True), *HEADS),
    "whole_numbers": _of(lambda a, b: a + b, rows(400, 64, 128), rows(500, 64, 128)),
    "linear_relu": _with_weights(LinearRelu, half(64, 128)),
    "mlp": _with_weights(Mlp, half(64, 128)),
    "swiglu": _with_weights(SwiGlu, half(64, 128)),
    "llama_layer": _with_weights(LlamaLayer, half(1, 64, 128)),
}
