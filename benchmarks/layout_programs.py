"""Small programs drawn at random, whose tensors may lie in several ways."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import torch
from torch import Tensor, nn

SIZES = (64, 100, 128, 256, 512, 777, 1000, 1024, 1500, 2048)
LEAST = 64  # rows, columns and depth of a product

Shape = tuple[int, int]
Step = tuple[str, tuple[int, ...], int]  # operator, numbers of the tensors that it reads, dimension

ELEMENTWISE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "exp": torch.exp,
    "silu": nn.functional.silu,
}
BINARY = ("add", "mul", "sub")
REDUCTIONS = ("sum", "amax")
NAMES = (*ELEMENTWISE, *BINARY, *REDUCTIONS, "add", "sum", "softmax", "transpose", "matmul", "cat", "slice")


class Program(nn.Module):
    """Steps on tensors: the inputs first, then the result of each step; what no step reads is returned."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors that no step reads."""
        tensors = list(inputs)
        for name, reads, dim in self.steps:
            tensors.append(_done(name, [tensors[n] for n in reads], dim))
        used = {n for _, reads, _ in self.steps for n in reads}
        return tuple(t for n, t in enumerate(tensors) if n not in used and n >= len(inputs))


def _done(name: str, operands: list[Tensor], dim: int) -> Tensor:
    match name:
        case "sum" | "amax":
            return getattr(torch, name)(operands[0], dim, keepdim=True)
        case "softmax":
            return torch.softmax(operands[0], dim)
        case "transpose":
            return operands[0].t()
        case "cat":
            return torch.cat(operands, dim)
        case "slice":
            return operands[0].narrow(dim, *_part(operands[0].shape[dim]))
        case "add" | "mul" | "sub":
            return getattr(torch, name)(*operands)
        case "matmul":
            return operands[0] @ operands[1]
        case _:
            return ELEMENTWISE[name](operands[0])


def _part(extent: int) -> tuple[int, int]:
    """Where a slice of a dimension begins, and how long it is: half of it, behind a quarter."""
    return extent // 4, extent // 2


def drawn(random: Random, ops: int) -> tuple[Program, tuple[Tensor, ...]]:
    """Draws a program of so many operators, and its inputs."""
    rows, columns = random.choice(SIZES), random.choice(SIZES)
    others = ((rows, columns), (columns, rows), (columns, columns), (1, columns), (rows, 1))
    shapes = [(rows, columns), random.choice(others)]
    inputs, steps = tuple(shapes), list[Step]()
    while len(steps) < ops:
        name = random.choice(NAMES)
        first = len(shapes) - 1 if random.random() < 0.7 else random.randrange(len(shapes))
        second = random.choice([n for n in range(len(shapes)) if n != first])
        dim = random.randrange(2)
        shape = _shape(name, shapes[first], shapes[second], dim)
        if shape is not None:
            reads = (first, second) if name in (*BINARY, "matmul", "cat") else (first,)
            steps.append((name, reads, dim))
            shapes.append(shape)
    return Program(steps), tuple(torch.zeros(shape, dtype=torch.float16) for shape in inputs)


def _shape(name: str, one: Shape, other: Shape, dim: int) -> Shape | None:
    """The shape of a result; None if the operator does not take these operands, or it would not do much."""
    match name:
        case "matmul":
            fits = one[1] == other[0] and min(*one, *other) >= LEAST
            return (one[0], other[1]) if fits else None
        case "add" | "mul" | "sub":
            fits = all(a == b or 1 in (a, b) for a, b in zip(one, other, strict=True))
            return (max(one[0], other[0]), max(one[1], other[1])) if fits else None
        case "sum" | "amax":
            return _with(one, dim, 1) if one[dim] > 1 else None
        case "softmax":
            return one if one[dim] > 1 else None
        case "cat":
            return _with(one, dim, one[dim] + other[dim]) if one[1 - dim] == other[1 - dim] else None
        case "slice":
            return _with(one, dim, _part(one[dim])[1]) if one[dim] > LEAST else None
        case "transpose":
            return one[1], one[0]
        case _:
            return one


def _with(shape: Shape, dim: int, extent: int) -> Shape:
    return (extent, shape[1]) if dim == 0 else (shape[0], extent)


def told(program: Program, inputs: Sequence[Tensor]) -> str:
    """Return a program as a line of text: shapes of inputs, and steps with tensors read and dimension."""
    steps = " ".join(f"{name}{list(reads)}{dim}".replace(" ", "") for name, reads, dim in program.steps)
    return f"{[tuple(i.shape) for i in inputs]} {steps}"


__all__ = ["Program", "drawn", "told"]
