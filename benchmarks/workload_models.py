"""Models of `workloads.toml`, with weights on the meta device."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

WORKLOADS = Path(__file__).parent / "workloads.toml"
GRANITE = {"hidden": 4096, "inner": 12800, "heads": 32, "shared": 8, "head": 128}  # Granite-3.3-8B


def read(path: Path = WORKLOADS) -> list[dict[str, Any]]:
    """The workloads, in order."""
    return tomllib.loads(path.read_text(encoding="utf-8"))["workload"]


@dataclass(frozen=True)
class Case:
    """A model and its example inputs."""

    model: nn.Module
    inputs: tuple[Tensor, ...]


class Weighted(nn.Module):
    """A function of inputs, then of weights that are its parameters."""

    def __init__(self, function: Callable[..., Any], weights: Sequence[Tensor]) -> None:
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(nn.Parameter(w, requires_grad=False) for w in weights)

    def forward(self, *inputs: Tensor) -> Any:
        """Calls the function."""
        return self.function(*inputs, *self.weights)


def case(workload: dict[str, Any]) -> Case:
    """Builds a workload."""
    with torch.device("meta"):
        return KINDS[workload["kind"]](workload)


def _half(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float16)


def _plain(
    function: Callable[..., Any], inputs: Sequence[Sequence[int]], weights: Sequence[Sequence[int]] = ()
) -> Case:
    return Case(Weighted(function, [_half(*w) for w in weights]), tuple(_half(*i) for i in inputs))


def _linear(w: dict[str, Any]) -> Case:
    rows, depth, columns = w["sizes"]
    return _plain(functional.linear, [(rows, depth)], [(columns, depth)])


def _swiglu(w: dict[str, Any]) -> Case:
    rows, hidden, inner = w["sizes"]

    def mlp(x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        return functional.linear(functional.silu(functional.linear(x, gate)) * functional.linear(x, up), down)

    return _plain(mlp, [(rows, hidden)], [(inner, hidden), (inner, hidden), (hidden, inner)])


def _swiglu8(w: dict[str, Any]) -> Case:
    """The same with weights of eight-bit floats and a scale per row of each."""
    rows, hidden, inner = w["sizes"]

    def mlp(x: Tensor, gate: Tensor, up: Tensor, down: Tensor, *scales: Tensor) -> Tensor:
        of_gate, of_up, of_down = ((w.float() * s).half() for w, s in zip((gate, up, down), scales, strict=True))
        return functional.linear(functional.silu(functional.linear(x, of_gate)) * functional.linear(x, of_up), of_down)

    shapes = [(inner, hidden), (inner, hidden), (hidden, inner)]
    weights = [torch.zeros(shape, dtype=torch.float8_e4m3fn) for shape in shapes]
    scales = [torch.zeros(rows, 1) for rows, _ in shapes]
    return Case(Weighted(mlp, [*weights, *scales]), (_half(rows, hidden),))


def _swiglu_integers(w: dict[str, Any]) -> Case:
    """The same with weights of 8-bit integers and a scale per row, or of 4-bit ones and a scale per 32 of a row."""
    rows, hidden, inner = w["sizes"]
    shapes = [(inner, hidden), (inner, hidden), (hidden, inner)]

    def of(weight: Tensor, scale: Tensor) -> Tensor:
        groups = weight.half().reshape(weight.shape[0], scale.shape[1], -1)
        return (groups * scale[:, :, None]).reshape(weight.shape)

    def mlp(x: Tensor, gate: Tensor, up: Tensor, down: Tensor, *scales: Tensor) -> Tensor:
        if w["bits"] == 4:
            wide = [of(weight, scale) for weight, scale in zip((gate, up, down), scales, strict=True)]
        else:
            wide = [weight.half() * scale for weight, scale in zip((gate, up, down), scales, strict=True)]
        return functional.linear(
            functional.silu(functional.linear(x, wide[0])) * functional.linear(x, wide[1]), wide[2]
        )

    # How many bits the numbers need is looked up, so there are numbers.
    weights = [torch.zeros(shape, dtype=torch.int8, device="cpu" if w["bits"] == 4 else None) for shape in shapes]
    scales = [_half(n, k // 32 if w["bits"] == 4 else 1) for n, k in shapes]
    return Case(Weighted(mlp, [*weights, *scales]), (_half(rows, hidden),))


def _attention(w: dict[str, Any]) -> Case:
    kept = (1, w["shared_heads"], w["keys"], 128)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        shared = w["heads"] != w["shared_heads"]
        return functional.scaled_dot_product_attention(q, k, v, is_causal=w.get("causal", False), enable_gqa=shared)

    return _plain(attend, [(1, w["heads"], w["queries"], 128), kept, kept])


def _softmax(w: dict[str, Any]) -> Case:
    return _plain(lambda x: functional.softmax(x, -1), [w["sizes"]])


def _layer_norm(w: dict[str, Any]) -> Case:
    return _plain(lambda x: functional.layer_norm(x, (x.shape[-1],)), [w["sizes"]])


def _convolution(w: dict[str, Any]) -> Case:
    (channels, height, width), (filters, size) = w["image"], w["filters"]
    options = {name: w[name] for name in ("stride", "padding", "groups") if name in w}
    weight = (filters, channels // w.get("groups", 1), size, size)
    return _plain(lambda x, k: functional.conv2d(x, k, **options), [(1, channels, height, width)], [weight])


def _bottleneck(w: dict[str, Any]) -> Case:
    (channels, height, width), inner = w["image"], w["inner"]

    def block(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        y = functional.relu(functional.conv2d(x, a))
        y = functional.relu(functional.conv2d(y, b, padding=1))
        return functional.relu(functional.conv2d(y, c) + x)

    weights = [(inner, channels, 1, 1), (inner, inner, 3, 3), (channels, inner, 1, 1)]
    return _plain(block, [(1, channels, height, width)], weights)


def _experts(w: dict[str, Any]) -> Case:
    rows, hidden, inner = w["sizes"]
    count, chosen = w["experts"], w["chosen"]

    def mixture(x: Tensor, router: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Tensor:
        scores = functional.softmax(functional.linear(x, router), -1)
        best, where = torch.topk(scores, chosen, -1)
        kept = torch.zeros_like(scores).scatter(-1, where, best)
        y = functional.silu(x @ gate) * (x @ up)  # dense: every expert computes every row
        return ((y @ down) * kept.transpose(0, 1).unsqueeze(-1)).sum(0)

    weights = [(count, hidden), (count, hidden, inner), (count, hidden, inner), (count, inner, hidden)]
    return _plain(mixture, [(rows, hidden)], weights)


def _chain(w: dict[str, Any]) -> Case:
    functions = (torch.neg, torch.abs) if w["inputs"] == 1 else (torch.add, torch.mul)

    def chain(x: Tensor, *others: Tensor) -> Tensor:
        for number in range(w["length"]):
            x = functions[number % 2](x, *others)
        return x

    return _plain(chain, [w["sizes"]] * w["inputs"])


class Layer(nn.Module):
    """A Granite layer; with a cache, one token at a position of it, which is updated in place."""

    def __init__(self) -> None:
        super().__init__()
        hidden, inner, head = GRANITE["hidden"], GRANITE["inner"], GRANITE["head"]
        self.norms = nn.ModuleList(nn.RMSNorm(hidden, eps=1e-5) for _ in range(2))
        self.q, self.o = nn.Linear(hidden, hidden, bias=False), nn.Linear(hidden, hidden, bias=False)
        self.k, self.v = (nn.Linear(hidden, GRANITE["shared"] * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(hidden, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, *cache: Tensor) -> Tensor:
        """Runs the layer; `cache` is keys, values, the position to write, and a mask."""
        normed = self.norms[0](x)
        q, k, v = (self._heads(p(normed)) for p in (self.q, self.k, self.v))
        q, k = (t * cos + self._turned(t) * sin for t in (q, k))
        mask = None
        if cache:
            keys, values, position, mask = cache
            k, v = keys.index_copy_(2, position, k), values.index_copy_(2, position, v)
        y = functional.scaled_dot_product_attention(q, k, v, mask, is_causal=not cache, enable_gqa=True)
        x = x + 0.22 * self.o(y.transpose(1, 2).flatten(2))
        normed = self.norms[1](x)
        return x + 0.22 * self.down(functional.silu(self.gate(normed)) * self.up(normed))

    @staticmethod
    def _heads(t: Tensor) -> Tensor:
        return t.unflatten(-1, (-1, GRANITE["head"])).transpose(1, 2)

    @staticmethod
    def _turned(t: Tensor) -> Tensor:
        first, second = t.chunk(2, -1)
        return torch.cat([-second, first], -1)


def _layer(w: dict[str, Any]) -> Case:
    batch, tokens = w.get("batch", 1), w["tokens"]
    inputs = [_half(batch, tokens, GRANITE["hidden"]), *[_half(tokens, GRANITE["head"])] * 2]
    if "cache" in w:
        kept = [_half(batch, GRANITE["shared"], w["cache"], GRANITE["head"]) for _ in range(2)]
        mask = torch.zeros(1, 1, tokens, w["cache"], dtype=torch.bool)
        inputs += [*kept, torch.zeros(tokens, dtype=torch.long), mask]
    return Case(Layer().half().eval(), tuple(inputs))


KINDS: dict[str, Callable[[dict[str, Any]], Case]] = {
    "attention": _attention,
    "bottleneck": _bottleneck,
    "chain": _chain,
    "convolution": _convolution,
    "experts": _experts,
    "layer": _layer,
    "layer_norm": _layer_norm,
    "linear": _linear,
    "softmax": _softmax,
    "swiglu": _swiglu,
    "swiglu8": _swiglu8,
    "swiglu_integers": _swiglu_integers,
}
