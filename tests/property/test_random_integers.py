"""Random programs on integers of every type, values to the limits, from the bundle in device numerics: torch exactly.

A program may fault only if one of its numbers, before a short type wraps it, is beyond what float32 holds exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import spyre_mlir
from spyre_mlir.errors import MachineFault
from tests.property.examples import examples

LARGEST = 2**24 - 1
TYPES = (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)
BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "where": lambda a, b: torch.where(a < b, a, b * 3),
    "quotient": lambda a, b: torch.div(a, b * b + 1, rounding_mode="floor") if a.dtype is torch.int32 else a - b,
}
Step = tuple[str, int, int]


class Steps(nn.Module):
    """Every step computes a new value from two earlier ones."""

    def __init__(self, steps: Sequence[Step]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values = [a, b]
        for name, left, right in self.steps:
            values.append(BINARY[name](values[left % len(values)], values[right % len(values)]))
        return values[-1], values[-1].sum(-1) if values[-1].dtype is torch.int8 else values[-1].amax(-1)

    def largest(self, a: torch.Tensor, b: torch.Tensor) -> int:
        """The largest number of the program, none wrapped where it is computed."""
        values, found = [a, b], max(int(a.abs().max()), int(b.abs().max()))
        for name, left, right in self.steps:
            x, y = (values[n % len(values)] for n in (left, right))
            wide_x, wide_y = x.long(), y.long()
            wide = [wide_x - wide_y, wide_y * wide_y + 1] if name == "quotient" else [BINARY[name](wide_x, wide_y)]
            wide += [wide_y * 3] if name == "where" else []
            found = max([found, *(int(w.abs().max()) for w in wide)])
            values.append(BINARY[name](x, y))
        return found


def limits(dtype: torch.dtype) -> tuple[int, int]:
    kind = torch.iinfo(dtype)
    return max(kind.min, -LARGEST), min(kind.max, LARGEST)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Step], torch.Tensor, torch.Tensor]:
    dtype = draw(st.sampled_from(TYPES))
    low, high = limits(dtype)
    small = st.integers(max(low, -99), min(high, 99))
    number = st.one_of(small, st.sampled_from([low, high, 0, 1, high // 2, high - 1]))
    shape = (draw(st.integers(1, 3)), draw(st.sampled_from([1, 3, 5, 31, 33, 64, 66, 70])))
    drawn = [draw(st.lists(number, min_size=4, max_size=9)) for _ in range(2)]
    count = shape[0] * shape[1]
    a, b = (torch.tensor((n * count)[:count], dtype=torch.int64).to(dtype).reshape(shape) for n in drawn)
    step = st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 5), st.integers(0, 5))
    return draw(st.lists(step, min_size=1, max_size=3)), a, b


@examples(8)
@given(cases())
def test_random_programs_on_integers(case: tuple[list[Step], torch.Tensor, torch.Tensor]) -> None:
    steps, a, b = case
    program = Steps(steps)
    compiled = spyre_mlir.compile(program, (a, b), numerics="device")
    if program.largest(a, b) > LARGEST:
        with suppress(MachineFault):
            same(compiled(a, b), program(a, b))
        return
    same(compiled(a, b), program(a, b))


def same(got: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> None:
    for mine, torchs in zip(got, wanted, strict=True):
        assert mine.dtype == torchs.dtype
        assert torch.equal(mine, torchs)
