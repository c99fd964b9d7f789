"""Constants that follow from weights: which of them stay in memory, and when they are computed again."""

from __future__ import annotations

import gc
from weakref import ref

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir.frontend import bind, import_program
from spyre_mlir.frontend.calling.current_values import CurrentValues
from spyre_mlir.frontend.program.program import Program


class Normed(nn.Module):
    """A product with the norm of a weight."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-3, 3, width * 8).reshape(8, width).half())

    def forward(self, x: Tensor) -> Tensor:
        return x @ (self.weight / self.weight.norm(dim=0)).t()


def values_of(width: int, *, stored: bool) -> tuple[CurrentValues, str, Program]:
    """The tensors of a program, and the name of the one constant."""
    program = import_program(Normed(width), (torch.ones(2, width).half(),))
    (name,) = program.recipes
    return CurrentValues(program.values, program.recipes, program.read_ahead, stored=stored), name, program


@pytest.mark.parametrize(
    ("stored", "width", "kept"), [(True, 1 << 17, False), (True, 64, True), (False, 1 << 17, True)]
)
def test_a_large_value_of_files_is_dropped_after_its_reader(stored: bool, width: int, kept: bool) -> None:
    values, name, _ = values_of(width, stored=stored)
    first = ref(values[name])
    gc.collect()
    assert (first() is not None) == kept
    weight = Normed(width).weight.detach()
    assert torch.equal(values[name], (weight / weight.norm(dim=0)).t())


def test_a_value_is_computed_once_per_state_of_its_weight() -> None:
    values, name, program = values_of(64, stored=False)
    before = values[name]
    assert values[name] is before
    with torch.no_grad():
        program.read_ahead["weight"].data.mul_(-1)
    assert torch.equal(values[name], -before)


def test_a_bound_program_has_the_value_of_its_own_weight() -> None:
    _, name, program = values_of(64, stored=False)
    bound = bind(program, {"weight": program.read_ahead["weight"] * -2})
    assert torch.equal(bound.values[name], -program.values[name])
