"""How good the layouts of small programs are: chosen, repaired, and the best of all that are legal.

`python benchmarks/layout_choice.py [--programs N] [--ops N] [--seed N]`. Programs of element-wise operators, sums,
maxima, products and transposes, drawn at random. The best is found by lowering a program with every combination of the
layouts that its nests may have, up to `MOST` of them, and pricing each as the others are: by the timeline of its files,
calibrated profile. Nothing is measured on a card.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from random import Random

import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.debug.remaining_passes import lower_on
from spyre_mlir.dialects.ir.modules import copy_of
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice
from spyre_mlir.errors import SpyreError
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.buffer_layouts.choose_layouts import ChooseLayoutsPass
from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import PlannedLayouts
from spyre_mlir.universe import make_context

SIZES = (64, 128, 256, 512, 1000, 1024, 2048)
MOST = 300  # combinations of layouts of a program
LIMITS = (0.001, 0.02, 0.1, 0.5)
CONTEXT = make_context()

BINARY = ("add", "mul", "sub", "matmul")

Step = tuple[str, tuple[int, ...], int]  # operator, numbers of the tensors that it reads, dimension

ELEMENTWISE: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "exp": torch.exp,
    "silu": nn.functional.silu,
}


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
        case "transpose":
            return operands[0].t()
        case "add" | "mul" | "sub":
            return getattr(torch, name)(*operands)
        case "matmul":
            return operands[0] @ operands[1]
        case _:
            return ELEMENTWISE[name](operands[0])


def drawn(random: Random, ops: int) -> tuple[Program, tuple[Tensor, ...]]:
    """Draws a program of so many operators, and its inputs."""
    rows, columns = random.choice(SIZES), random.choice(SIZES)
    shapes = [(rows, columns), random.choice(((rows, columns), (columns, rows), (columns, columns)))]
    inputs, steps = tuple(shapes), list[Step]()
    while len(steps) < ops:
        name = random.choice((*ELEMENTWISE, "add", "mul", "sub", "sum", "amax", "transpose", "matmul", "sum", "add"))
        first = len(shapes) - 1 if random.random() < 0.7 else random.randrange(len(shapes))
        second = random.choice([n for n in range(len(shapes)) if n != first])
        dim = random.randrange(2)
        shape = _shape(name, shapes[first], shapes[second], dim)
        if shape is not None:
            reads = (first, second) if name in BINARY else (first,)
            steps.append((name, reads, dim))
            shapes.append(shape)
    return Program(steps), tuple(torch.zeros(shape, dtype=torch.float16) for shape in inputs)


def _shape(name: str, one: tuple[int, int], other: tuple[int, int], dim: int) -> tuple[int, int] | None:
    """The shape of a result; None if the operator does not take these operands, or it would not do much."""
    match name:
        case "matmul":
            fits = one[1] == other[0] and min(*one, *other) >= SIZES[0]
            return (one[0], other[1]) if fits else None
        case "add" | "mul" | "sub":
            fits = all(a == b or 1 in (a, b) for a, b in zip(one, other, strict=True))
            return (max(one[0], other[0]), max(one[1], other[1])) if fits else None
        case "sum" | "amax":
            reduced = (1, one[1]) if dim == 0 else (one[0], 1)
            return reduced if reduced != one else None
        case "transpose":
            return one[1], one[0]
        case _:
            return one


def us(loop: ModuleOp, *, repair: bool) -> float:
    """Predicted time of a program at the loop level."""
    module, options = copy_of(loop), {ChooseLayoutsPass.name: {"repair": repair}}
    lower_on(module, CONTEXT, LEVELS[-1], options)
    return module_timeline(module, "calibrated").total_us


def combinations(loop: ModuleOp) -> Iterator[dict[int, LayoutChoice]]:
    """Every combination of dense layouts, by the number of the op; none if they are too many."""
    (function,) = ChooseLayoutsPass().planned(CONTEXT, loop)
    planned = PlannedLayouts.of(function)
    function.take_back()
    numbers = {op: n for n, op in enumerate(loop.walk())}
    listed = {numbers[op]: legal for op, legal in planned.open.items()}
    if prod(map(len, listed.values())) <= MOST:
        for chosen in product(*listed.values()):
            yield dict(zip(listed, chosen, strict=True))


def best_us(loop: ModuleOp) -> float | None:
    """Predicted time with the best layouts; None if there are too many to try."""
    found = list[float]()
    for chosen in combinations(loop):
        module = copy_of(loop)
        for number, op in enumerate(module.walk()):
            if number in chosen:
                op.attributes[LAYOUT] = LayoutAttr(chosen[number])
        try:
            found.append(us(module, repair=False))
        except SpyreError:
            continue
    return min(found) if found else None


def main() -> None:
    """Prints a line per program, and how far from the best they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--ops", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    ratios: dict[str, list[float]] = {"chosen": [], "repaired": []}
    for number in range(options.programs):
        program, inputs = drawn(Random(f"{options.seed} {options.ops} {number}"), options.ops)
        loop = import_program(program, inputs).module
        lower_on(loop, CONTEXT, "cut-columns")
        best = best_us(loop)
        if not best:
            continue
        found = {"chosen": us(loop, repair=False), "repaired": us(loop, repair=True)}
        for name, time_us in found.items():
            ratios[name].append(time_us / best)
        if found["repaired"] > 1.02 * best or found["chosen"] > 1.1 * best:
            steps = " ".join(f"{name}{list(reads)}{dim}" for name, reads, dim in program.steps)
            said = ", ".join(f"{name} {time_us:.2f}" for name, time_us in found.items())
            sys.stdout.write(f"{number}: {said}, best {best:.2f}: {[tuple(i.shape) for i in inputs]} {steps}\n")
            sys.stdout.flush()
    for name, values in ratios.items():
        within = (f"{sum(v <= 1 + part for v in values) / len(values):.0%} within {part:.1%}" for part in LIMITS)
        mean, most = sum(values) / len(values), max(values)
        sys.stdout.write(f"{name}: {len(values)} programs, {', '.join(within)}, mean {mean:.3f}, most {most:.2f}\n")


if __name__ == "__main__":
    main()
