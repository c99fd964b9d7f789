"""Random programs: inputs, and steps that read what is there, several readers per value included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

# Both declare operators; a seed draws from them in the order of these imports.
from tests.graphs import basic_layers as _basic_layers  # noqa: F401
from tests.graphs import compounds as _compounds  # noqa: F401
from tests.graphs.operators import FLOATS, OPERATORS, Call, Kinds, Tensor

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 33, 64, 65, 70)
MOST_ELEMENTS = 6_000
LARGEST = 1e4
TRIES = 400


# Of the name of a step, the number of a value, and the value.
Change = Callable[[str, int, Tensor], Tensor]


@dataclass(frozen=True)
class Step:
    """One call: the operator's name, the call, and the numbers of the values it reads."""

    name: str
    call: Call
    reads: tuple[int, ...]


class Program(torch.nn.Module):
    """A random program as a module.

    Args:
        steps: in order; each adds one value behind the inputs and the steps before it.
        results: numbers of the values that are returned.
        kinds: element types as written, or wide.
    """

    def __init__(self, steps: Sequence[Step], results: Sequence[int], kinds: Kinds | None = None) -> None:
        super().__init__()
        self.steps, self.results, self.kinds = tuple(steps), tuple(results), kinds or Kinds()

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values = self.values(inputs)
        return tuple(values[n] for n in self.results)

    def values(self, inputs: Sequence[Tensor], read: Change | None = None, made: Change | None = None) -> list[Tensor]:
        """Return the inputs and what each step makes.

        Args:
            inputs: as for a call.
            read: told the name of a step and the number of a value, gives the value as the step is to read it.
            made: the same, for the value that the step has made.
        """
        values = list(inputs)
        for step in self.steps:
            given = [values[n] if read is None else read(step.name, n, values[n]) for n in step.reads]
            result = step.call(*given, kinds=self.kinds)
            values.append(result if made is None else made(step.name, len(values), result))
        return values

    def wide(self) -> Program:
        """The same program with every float type replaced by float64."""
        return Program(self.steps, self.results, Kinds(wide=True))

    def __str__(self) -> str:
        first = 1 + max((n for s in self.steps for n in s.reads), default=0) - len(self.steps)
        names = [f"{s.name}{list(s.reads)}" for s in self.steps]
        return f"inputs before {max(first, 0)}: {' '.join(names)} -> {list(self.results)}"


def random_input(random: Random, kind: torch.dtype) -> Tensor:
    """A tensor of random shape and numbers."""
    shape: list[int] = []
    for _ in range(random.choice((1, 2, 2, 3, 3, 4))):
        room = [e for e in EXTENTS if e * torch.Size(shape).numel() <= MOST_ELEMENTS]
        shape.append(random.choice(room))
    generator = torch.Generator().manual_seed(random.randrange(2**31))
    if kind == torch.int64:
        made = torch.randint(-9, 60, shape, generator=generator)
    elif kind == torch.bool:
        made = torch.rand(shape, generator=generator) < 0.5
    else:
        made = torch.randn(shape, generator=generator).to(kind)
    return _laid_out(random, made)


def _laid_out(random: Random, x: Tensor) -> Tensor:
    """The tensor, in a third of the cases in memory where it is not dense: turned, every second, or expanded."""
    match random.choice(("dense", "dense", "dense", "dense", "turned", "every second", "expanded")):
        case "turned":
            return x.mT.contiguous().mT if x.dim() > 1 else x
        case "every second":
            return torch.stack([x, x], -1)[..., 1]
        case "expanded":
            return x[:1].expand(x.shape)
        case _:
            return x


def random_program(seed: int) -> tuple[Program, tuple[Tensor, ...]]:
    """A program of 10 to 25 steps and its inputs; the same for the same seed."""
    random = Random(seed)
    main = random.choices(FLOATS, (6, 2, 2))[0]
    kinds = [main, main, main, torch.int64, torch.bool][: random.choice((3, 4, 5))]
    inputs = tuple(random_input(random, kind) for kind in kinds)
    values, steps, wanted = list(inputs), list[Step](), random.randint(10, 25)
    for _ in range(TRIES):
        if len(steps) == wanted:
            break
        step = _random_step(random, values)
        if step is not None and (made := _result(step, values)) is not None:
            steps.append(step)
            values.append(made)
    read = {n for step in steps for n in step.reads}
    results = [n for n in range(len(inputs), len(values)) if n not in read]
    return Program(steps, results[-6:]), inputs


def _random_step(random: Random, values: Sequence[Tensor]) -> Step | None:
    name = random.choice(list(OPERATORS))
    choices = _fitting(OPERATORS[name].takes, values)
    if not all(choices):
        return None
    # Any value may be read again; the newest is taken more often, so that programs are deep too.
    reads = tuple(fit[-1] if random.random() < 0.4 else random.choice(fit) for fit in choices)
    call = OPERATORS[name].draw(random, *(values[n] for n in reads))
    return None if call is None else Step(name, call, reads)


def _result(step: Step, values: Sequence[Tensor]) -> Tensor | None:
    """What torch makes of a step; None where that is empty, large or not finite."""
    made = step.call(*(values[n] for n in step.reads), kinds=Kinds())
    usable = 0 < made.numel() <= 20_000 and bool(torch.isfinite(made).all())
    return made if usable and float(made.double().abs().max()) <= LARGEST else None


def _fitting(takes: str, tensors: Sequence[Tensor]) -> list[list[int]]:
    """For each operand, the numbers of the tensors of its kind."""

    def is_kind(kind: str, x: Any) -> bool:
        whole = not x.is_floating_point() and x.dtype != torch.bool
        return {
            "f": x.is_floating_point(),
            "i": whole,
            "b": x.dtype == torch.bool,
            "n": x.dtype != torch.bool,
            "a": True,
        }[kind]

    return [[n for n, x in enumerate(tensors) if is_kind(kind, x)] for kind in takes]
