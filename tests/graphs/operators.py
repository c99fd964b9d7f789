"""Operators of random programs: each draws a call that fits given tensors, or says that none does.

A call takes tensors and a `Kinds`, which maps the element types that a program names. So one program runs as it is
written, and once more with every float type replaced by float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from random import Random

import torch
from torch.nn import functional

Tensor = torch.Tensor
Call = Callable[..., Tensor]
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Kinds:
    """Element types as a program names them, and as it runs: `wide` makes every float type float64."""

    wide: bool = False

    def __call__(self, kind: torch.dtype) -> torch.dtype:
        return torch.float64 if self.wide and kind.is_floating_point else kind


@dataclass(frozen=True)
class Operator:
    """An operator of random programs.

    Args:
        takes: kind of each operand: `f` float, `i` integer, `b` truth values, `n` any number, `a` anything.
        draw: a call for the operands, or None where they do not fit.
    """

    takes: str
    draw: Callable[..., Call | None]


OPERATORS: dict[str, Operator] = {}


def operator(takes: str, *names: str) -> Callable[[Callable[..., Call | None]], Callable[..., Call | None]]:
    """Declare one operator; with names, one for each, whose draw is told its name first."""

    def declare(draw: Callable[..., Call | None]) -> Callable[..., Call | None]:
        for name in names:
            OPERATORS[name] = Operator(takes, lambda r, *xs, _name=name: draw(_name, r, *xs))
        if not names:
            OPERATORS[draw.__name__.removesuffix("_")] = Operator(takes, draw)
        return draw

    return declare


def plain(takes: str, calls: Mapping[str, Call]) -> None:
    """Declare operators whose call depends on nothing."""
    for name, call in calls.items():
        OPERATORS[name] = Operator(takes, lambda _r, *_xs, _call=call: lambda *xs, kinds: _call(*xs))


plain(
    "f",
    {
        "neg": torch.neg, "abs": torch.abs, "relu": torch.relu, "sigmoid": torch.sigmoid, "tanh": torch.tanh,
        "exp": lambda x: torch.exp(-x.abs()), "sqrt": lambda x: torch.sqrt(x.abs() + 0.1),
        "rsqrt": lambda x: torch.rsqrt(x.abs() + 1), "reciprocal": lambda x: torch.reciprocal(x.abs() + 1),
        "gelu": functional.gelu, "silu": functional.silu, "mish": functional.mish,
        "softplus": functional.softplus, "erf": torch.erf, "sin": torch.sin,
        "cos": torch.cos, "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "sign": torch.sign,
        "square": torch.square, "leaky_relu": lambda x: functional.leaky_relu(x, 0.1), "elu": functional.elu,
        "hardtanh": functional.hardtanh,
        "clamp": lambda x: x.clamp(-0.5, 1.5), "log1p": lambda x: torch.log1p(x.abs()), "frac": torch.frac,
        "clone": torch.clone, "relu_": lambda x: x.clone().relu_(), "mul_": lambda x: x.clone().mul_(0.5),
        "scalar_add": lambda x: x + 1.5, "scalar_mul": lambda x: x * 0.3, "scalar_rsub": lambda x: 2 - x,
        "pow": lambda x: x.abs().pow(1.5), "hardswish": functional.hardswish, "trunc": torch.trunc,
    },
)  # fmt: skip
plain("n", {"gt_scalar": lambda x: x > 0, "eq_scalar": lambda x: x == 1, "isfinite": lambda x: torch.isfinite(x)})
plain("b", {"logical_not": torch.logical_not})
plain(
    "i",
    {
        "int_mul": lambda x: x * 3, "remainder": lambda x: x % 7, "floor_divide": lambda x: x // 3,
        "bitwise_and": lambda x: x & 12,
    },
)  # fmt: skip


def broadcast(x: Tensor, y: Tensor) -> bool:
    try:
        return prod(torch.broadcast_shapes(x.shape, y.shape)) <= 20_000
    except RuntimeError:
        return False


BINARY: dict[str, Call] = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "maximum": torch.maximum, "minimum": torch.minimum,
    "div": lambda x, y: x / (y.abs() + 1), "add_": lambda x, y: x.clone().add_(y) if x.shape >= y.shape else x + y,
    "lerp": lambda x, y: torch.lerp(x, y, 0.25), "hypot": torch.hypot,
}  # fmt: skip


@operator("ff", *BINARY)
def binary(name: str, _r: Random, x: Tensor, y: Tensor) -> Call | None:
    call = BINARY[name]
    if name in ("add_", "lerp", "hypot") and (x.shape != y.shape or x.dtype != y.dtype):
        return None
    return (lambda x, y, kinds: call(x, y)) if broadcast(x, y) else None


COMPARISONS: dict[str, Call] = {"gt": torch.gt, "le": torch.le, "ne": torch.ne}


@operator("nn", *COMPARISONS)
def comparison(name: str, _r: Random, x: Tensor, y: Tensor) -> Call | None:
    call = COMPARISONS[name]
    return (lambda x, y, kinds: call(x, y)) if broadcast(x, y) else None


@operator("bb", "logical_and", "logical_xor")
def logical(name: str, _r: Random, x: Tensor, y: Tensor) -> Call | None:
    call = getattr(torch, name)
    return (lambda x, y, kinds: call(x, y)) if broadcast(x, y) else None


@operator("ii")
def int_add(_r: Random, x: Tensor, y: Tensor) -> Call | None:
    return (lambda x, y, kinds: x + y) if broadcast(x, y) else None


@operator("bff")
def where(_r: Random, c: Tensor, x: Tensor, y: Tensor) -> Call | None:
    return (lambda c, x, y, kinds: torch.where(c, x, y)) if broadcast(c, x) and broadcast(c + x, y) else None


@operator("fb")
def masked_fill(_r: Random, x: Tensor, c: Tensor) -> Call | None:
    return (lambda x, c, kinds: x.masked_fill(c, 0.75)) if x.dim() >= c.dim() and broadcast(x, c) else None


@operator("fff")
def addcmul(_r: Random, x: Tensor, y: Tensor, z: Tensor) -> Call | None:
    if not (x.dtype == y.dtype == z.dtype and x.shape == y.shape and broadcast(y, z)) or z.dim() > x.dim():
        return None
    return lambda x, y, z, kinds: torch.addcmul(x, y, z, value=0.5)


# Casts.
@operator("n", "float", "half", "bfloat16", "int")
def cast(name: str, _r: Random, _x: Tensor) -> Call | None:
    kind = {"float": torch.float32, "half": torch.float16, "bfloat16": torch.bfloat16, "int": torch.int32}[name]
    return lambda x, kinds: x.to(kinds(kind))


@operator("b")
def bool_to_float(_r: Random, _c: Tensor) -> Call | None:
    return lambda c, kinds: c.to(kinds(torch.float32))


def dim_of(r: Random, x: Tensor) -> int | None:
    return r.randrange(x.dim()) if x.dim() else None


REDUCTIONS: dict[str, Call] = {
    "sum": lambda x, d, k: x.sum(d, keepdim=k), "mean": lambda x, d, k: x.mean(d, keepdim=k),
    "amax": lambda x, d, k: x.amax(d, keepdim=k), "amin": lambda x, d, k: x.amin(d, keepdim=k),
    "var": lambda x, d, k: x.var(d, keepdim=k, correction=0), "logsumexp": lambda x, d, k: x.logsumexp(d, keepdim=k),
    "norm": lambda x, d, k: torch.linalg.vector_norm(x, dim=d, keepdim=k),
}  # fmt: skip


@operator("f", *REDUCTIONS)
def reduction(name: str, r: Random, x: Tensor) -> Call | None:
    dim, keep, call = dim_of(r, x), r.random() < 0.5, REDUCTIONS[name]
    return None if dim is None else lambda x, kinds: call(x, dim, keep)


SCANS: dict[str, Call] = {
    "softmax": lambda x, d: x.softmax(d), "log_softmax": lambda x, d: x.log_softmax(d),
    "cumsum": lambda x, d: x.cumsum(d),
    "flip": lambda x, d: x.flip(d), "roll": lambda x, d: x.roll(2, d), "argmax": lambda x, d: x.argmax(d),
    "sort": lambda x, d: x.sort(d).values, "topk": lambda x, d: x.topk(1, d).values,
    "normalize": lambda x, d: functional.normalize(x, dim=d), "cummax": lambda x, d: x.cummax(d).values,
}  # fmt: skip


@operator("f", *SCANS)
def scan(name: str, r: Random, x: Tensor) -> Call | None:
    dim, call = dim_of(r, x), SCANS[name]
    return None if dim is None or (name in ("sort", "topk") and x.shape[dim] > 70) else lambda x, kinds: call(x, dim)


@operator("b", "any", "all")
def truth(name: str, r: Random, x: Tensor) -> Call | None:
    dim = dim_of(r, x)
    return None if dim is None else lambda x, kinds: getattr(torch, name)(x, dim)


# Shapes.
@operator("a")
def transpose(r: Random, x: Tensor) -> Call | None:
    if x.dim() < 2:
        return None
    first, second = r.randrange(x.dim()), r.randrange(x.dim())
    return lambda x, kinds: x.transpose(first, second)


@operator("a")
def permute(r: Random, x: Tensor) -> Call | None:
    order = r.sample(range(x.dim()), x.dim())
    return lambda x, kinds: x.permute(order)


@operator("a")
def reshape(r: Random, x: Tensor) -> Call | None:
    if x.dim() < 2:
        return None
    at = r.randrange(x.dim() - 1)
    shape = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
    return lambda x, kinds: x.reshape(shape)


@operator("a")
def unflatten(r: Random, x: Tensor) -> Call | None:
    splits = [(d, k) for d in range(x.dim()) for k in (2, 3, 4, 8) if x.shape[d] % k == 0 and x.dim() < 4]
    if not splits:
        return None
    dim, parts = r.choice(splits)
    return lambda x, kinds: x.unflatten(dim, (parts, -1))


@operator("ff", "flat_sub", "flat_mul")
def flat(name: str, _r: Random, x: Tensor, y: Tensor) -> Call:
    """As many elements of both as there are in the smaller, whatever their shapes."""
    call, count = getattr(torch, name.removeprefix("flat_")), min(x.numel(), y.numel())
    return lambda x, y, kinds: call(x.reshape(-1)[:count], y.reshape(-1)[:count])


@operator("a")
def regroup(r: Random, x: Tensor) -> Call | None:
    """The same elements under two extents drawn anew."""
    divisors = [d for d in range(2, x.numel()) if x.numel() % d == 0]
    if not divisors:
        return None
    rows = r.choice(divisors)
    return lambda x, kinds: x.reshape(rows, -1)


@operator("a")
def unsqueeze(r: Random, x: Tensor) -> Call | None:
    dim = r.randrange(x.dim() + 1)
    return None if x.dim() > 3 else lambda x, kinds: x.unsqueeze(dim)


@operator("a")
def squeeze(_r: Random, x: Tensor) -> Call | None:
    return (lambda x, kinds: x.squeeze()) if 1 in x.shape else None


@operator("a")
def expand(r: Random, x: Tensor) -> Call | None:
    count = r.choice((2, 3, 5))
    return None if x.dim() > 3 or x.numel() > 4000 else lambda x, kinds: x.expand(count, *x.shape)


@operator("a", "narrow", "strided", "select", "drop_first")
def part(name: str, r: Random, x: Tensor) -> Call | None:
    dim = dim_of(r, x)
    if dim is None or x.shape[dim] < 3:
        return None
    start, count = 1, r.randrange(1, x.shape[dim] - 1)
    index = r.randrange(x.shape[dim])
    calls: dict[str, Call] = {
        "narrow": lambda x, kinds: x.narrow(dim, start, count),
        "strided": lambda x, kinds: x[(slice(None),) * dim + (slice(None, None, 2),)],
        "select": lambda x, kinds: x.select(dim, index),
        "drop_first": lambda x, kinds: x[(slice(None),) * dim + (slice(1, None),)],
    }
    return calls[name]


@operator("aa")
def cat(r: Random, x: Tensor, y: Tensor) -> Call | None:
    dims = [d for d in range(x.dim()) if x.dim() == y.dim() and x.dtype == y.dtype]
    fits = [d for d in dims if all(a == b for n, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if n != d)]
    if not fits or x.numel() + y.numel() > 20_000:
        return None
    dim = r.choice(fits)
    return lambda x, y, kinds: torch.cat([x, y], dim)


@operator("aa")
def stack(r: Random, x: Tensor, y: Tensor) -> Call | None:
    dim = r.randrange(x.dim() + 1)
    fits = x.shape == y.shape and x.dtype == y.dtype and x.dim() < 4 and x.numel() < 10_000
    return (lambda x, y, kinds: torch.stack([x, y], dim)) if fits else None


@operator("f")
def pad(r: Random, x: Tensor) -> Call | None:
    sizes = (r.randrange(3), r.randrange(3))
    return None if x.dim() < 1 else lambda x, kinds: functional.pad(x, sizes, value=0.5)


@operator("a")
def repeat(r: Random, x: Tensor) -> Call | None:
    counts = [1] * x.dim()
    if not counts or x.numel() > 4000:
        return None
    counts[r.randrange(x.dim())] = 2
    return lambda x, kinds: x.repeat(counts)


@operator("f", "tril", "triu", "diagonal")
def triangle(name: str, _r: Random, x: Tensor) -> Call | None:
    return None if x.dim() < 2 else lambda x, kinds: getattr(torch, name)(x)


@operator("f")
def chunk(r: Random, x: Tensor) -> Call | None:
    dim = dim_of(r, x)
    return None if dim is None or x.shape[dim] < 2 else lambda x, kinds: x.chunk(2, dim)[1]


@operator("f")
def unfold(r: Random, x: Tensor) -> Call | None:
    dim = dim_of(r, x)
    if dim is None or x.shape[dim] < 3 or x.dim() > 3 or x.numel() > 5000:
        return None
    return lambda x, kinds: x.unfold(dim, 2, 1)


# Indices: any integers become positions by their remainder.
@operator("ai", "index_select", "index", "gather", "embedding")
def rows(name: str, r: Random, x: Tensor, i: Tensor) -> Call | None:
    dim = dim_of(r, x)
    if dim is None or not 1 <= i.numel() <= 40 or x.numel() // x.shape[dim] * i.numel() > 20_000:
        return None
    count = x.shape[dim]

    def positions(i: Tensor) -> Tensor:
        return (i.flatten() % count).long()

    if name == "gather":
        fits = i.dim() == x.dim() and all(
            a <= b for n, (a, b) in enumerate(zip(i.shape, x.shape, strict=True)) if n != dim
        )
        return (lambda x, i, kinds: x.gather(dim, (i % count).long())) if fits else None
    if name == "embedding":
        fits = x.dim() == 2 and x.is_floating_point()
        return (lambda x, i, kinds: functional.embedding((i % x.shape[0]).long(), x)) if fits else None
    if name == "index":
        return lambda x, i, kinds: x[(slice(None),) * dim + (positions(i),)]
    return lambda x, i, kinds: x.index_select(dim, positions(i))


@operator("fi", "scatter_add", "index_add", "index_put")
def scattered(name: str, _r: Random, x: Tensor, i: Tensor) -> Call | None:
    if x.dim() < 1 or not 1 <= i.numel() <= 20 or x.numel() > 3000:
        return None
    calls: dict[str, Call] = {
        "scatter_add": lambda x, p: x.scatter_add(
            0, p.reshape(-1, *[1] * (x.dim() - 1)).expand(-1, *x.shape[1:]), x[p]
        ),
        "index_add": lambda x, p: x.index_add(0, p, x[p] * 0.5),
        "index_put": lambda x, p: x.clone().index_put_((p,), x.new_full((), 0.25)),
    }
    call = calls[name]
    return lambda x, i, kinds: call(x, (i.flatten() % x.shape[0]).long())


@operator("f")
def slice_scatter(r: Random, x: Tensor) -> Call | None:
    if x.dim() < 1 or x.shape[0] < 2:
        return None

    def call(x: Tensor, kinds: Kinds) -> Tensor:
        made = x.clone()
        made[1:] = made[1:] * 0.5
        return made

    return call
