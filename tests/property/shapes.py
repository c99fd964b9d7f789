"""Random chains of views, movements, reductions and pointwise operations in torch, on shapes of every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from random import Random

import torch

Step = tuple[str, Callable[[torch.Tensor], torch.Tensor]]

EXTENTS = (0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, 127, 128, 130)
MOST_ELEMENTS = 4_500
MOST_RANK = 6


def shape(random: Random) -> tuple[int, ...]:
    """Of rank 0 to 6; without elements in one case of twelve or so."""
    out: list[int] = []
    for _ in range(random.randint(0, MOST_RANK)):
        fitting = [e for e in EXTENTS if e * prod(out) <= MOST_ELEMENTS]
        out.append(random.choice(fitting if random.random() < 0.2 else fitting[1:]))
    random.shuffle(out)
    return tuple(out)


def given(random: Random, extents: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    """An input of a shape: dense, transposed, every second of more, or a part of a larger tensor."""
    numbers = torch.Generator().manual_seed(seed)

    def draw(*sizes: int) -> torch.Tensor:
        return torch.randint(-8, 9, sizes, generator=numbers).float() / 4

    way = random.randrange(6)
    if way == 0 and len(extents) >= 2:
        return draw(*reversed(extents)).permute(*reversed(range(len(extents))))
    if way == 1 and extents:
        return draw(2 * extents[0], *extents[1:])[::2]
    if way == 2 and extents:
        return draw(*extents[:-1], extents[-1] + 3)[..., 2:-1]
    if way == 3 and extents and extents[0]:
        return draw(1, *extents[1:]).expand(extents)
    return draw(*extents)


def _dims(random: Random, x: torch.Tensor) -> tuple[int, ...]:
    some = tuple(d for d in range(x.dim()) if random.random() < 0.5)
    return some or ((random.randrange(x.dim()),) if x.dim() else ())


def _regrouped(random: Random, extents: Sequence[int]) -> tuple[int, ...]:
    """Another shape of as many elements, dimensions split and merged."""
    out = list(extents)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(out)) if out else 0
        if out and at + 1 < len(out) and random.random() < 0.5:
            out[at : at + 2] = [out[at] * out[at + 1]]
        elif out and len(out) < MOST_RANK:
            divisor = random.choice([d for d in range(1, max(out[at], 1) + 1) if out[at] % d == 0])
            out[at : at + 1] = [out[at] // divisor, divisor]
    return tuple(out)


def _beside(random: Random, extents: Sequence[int]) -> tuple[int, ...]:
    """A shape that broadcasts with another: of fewer dimensions or more, and either may repeat the other."""
    out = [random.choice((1, 3, 65)) if e == 1 else 1 if random.random() < 0.4 else e for e in extents]
    out = out[random.randint(0, len(out)) :]
    return (random.choice((1, 2)), *out) if len(out) == len(extents) < MOST_RANK else tuple(out)


def pointwise(random: Random, x: torch.Tensor) -> Step:
    other = given(random, _beside(random, x.shape), 1)
    name = random.choice(("add", "mul", "maximum", "where", "abs"))
    if name == "abs":
        return "abs", torch.abs
    if name == "where":
        return f"where {tuple(other.shape)}", lambda y: torch.where(y > other, y, other)
    function = getattr(torch, name)
    return f"{name} {tuple(other.shape)}", lambda y: function(y, other)


def reduction(random: Random, x: torch.Tensor) -> Step | None:
    dims, keep = _dims(random, x), random.random() < 0.5
    name = random.choice(("sum", "mean", "amax", "amin"))
    if name != "sum" and any(x.shape[d] == 0 for d in dims):
        return None
    if not dims:
        return None
    return f"{name} {dims} {keep}", lambda y: getattr(y, name)(dims, keepdim=keep)


def view(random: Random, x: torch.Tensor) -> Step | None:
    rank = x.dim()
    way = random.choice(("reshape", "permute", "unsqueeze", "squeeze", "expand", "transpose"))
    if way == "reshape":
        size = _regrouped(random, x.shape)
        return f"reshape {size}", lambda y: y.reshape(size)
    if way == "permute":
        order = tuple(random.sample(range(rank), rank))
        return f"permute {order}", lambda y: y.permute(order)
    if way == "unsqueeze" and rank < MOST_RANK:
        at = random.randint(-rank - 1, rank)
        return f"unsqueeze {at}", lambda y: y.unsqueeze(at)
    if way == "squeeze":
        return "squeeze", torch.squeeze
    if way == "expand" and rank < MOST_RANK:
        size = tuple(random.choice((2, 3)) if e == 1 else e for e in x.shape)
        size = (2, *size) if random.random() < 0.5 else size
        return (f"expand {size}", lambda y: y.expand(size)) if prod(size) <= MOST_ELEMENTS else None
    if rank >= 2:
        a, c = random.randrange(rank), random.randrange(-rank, rank)
        return f"transpose {a} {c}", lambda y: y.transpose(a, c)
    return None


def part(random: Random, x: torch.Tensor) -> Step | None:
    if not x.dim():
        return None
    dim = random.randrange(x.dim())
    extent = x.shape[dim]
    way = random.choice(("slice", "slice", "select", "flip", "roll", "unfold", "split"))
    if way == "slice":
        start, end, step = random.randint(0, extent), random.randint(0, extent), random.choice((1, 1, 2, 3))
        index = (*(slice(None),) * dim, slice(start, end, step))
        return f"slice {dim} {start}:{end}:{step}", lambda y: y[index]
    if extent == 0:
        return None
    if way == "select":
        at = random.randrange(-extent, extent)
        return f"select {dim} {at}", lambda y: y.select(dim, at)
    if way == "flip":
        return f"flip {dim}", lambda y: y.flip(dim)
    if way == "roll":
        shift = random.randint(-extent, extent)
        return f"roll {shift} {dim}", lambda y: y.roll(shift, dim)
    if way == "unfold" and x.dim() < MOST_RANK:
        size = random.randint(1, min(extent, 4))
        step = random.randint(1, 4)
        return f"unfold {dim} {size} {step}", lambda y: y.unfold(dim, size, step)
    pieces = random.randint(1, min(extent, 3))
    return f"chunk {pieces} {dim}", lambda y: y.chunk(pieces, dim)[-1]


def joined(random: Random, x: torch.Tensor) -> Step | None:
    if not x.dim() or x.numel() > MOST_ELEMENTS // 3:
        return None
    dim = random.randrange(x.dim())
    way = random.choice(("cat", "stack", "pad", "repeat", "interleave"))
    if way == "cat":
        other = given(random, (*x.shape[:dim], random.choice((0, 1, 31, 64)), *x.shape[dim + 1 :]), 2)
        if x.numel() + other.numel() > MOST_ELEMENTS:
            return None
        turn = random.random() < 0.5
        return f"cat {dim} {tuple(other.shape)}", lambda y: torch.cat([other, y] if turn else [y, other], dim)
    if way == "stack" and x.dim() < MOST_RANK:
        return f"stack {dim}", lambda y: torch.stack([y, y + 1], dim)
    if way == "pad":
        before, after = random.randint(-min(x.shape[-1] // 2, 2), 3), random.randint(0, 3)
        return f"pad {before} {after}", lambda y: torch.nn.functional.pad(y, (before, after), value=0.5)
    if way == "repeat":
        times = tuple(random.randint(1, 2) for _ in x.shape)
        return (f"repeat {times}", lambda y: y.repeat(times)) if prod(times) * x.numel() <= MOST_ELEMENTS else None
    return f"repeat_interleave 2 {dim}", lambda y: y.repeat_interleave(2, dim)


MAKERS = (pointwise, pointwise, reduction, view, view, view, part, part, joined)


class Chain(torch.nn.Module):
    """Steps one after another."""

    def __init__(self, random: Random, start: torch.Tensor, most: int = 4) -> None:
        super().__init__()
        self.steps: list[Step] = []
        x = start
        for _ in range(random.randint(1, most)):
            step = random.choice(MAKERS)(random, x)
            if step is not None and (after := step[1](x)).numel() <= MOST_ELEMENTS and after.dim() <= MOST_RANK:
                self.steps.append(step)
                x = after

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _, step in self.steps:
            x = step(x)
        return x

    def __str__(self) -> str:
        return "; ".join(name for name, _ in self.steps)
