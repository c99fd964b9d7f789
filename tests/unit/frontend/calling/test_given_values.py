"""Values that follow from weights which a call gives: when they are computed, shared and dropped."""

from __future__ import annotations

import gc
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.frontend import GivenValues, Program, bind, import_program


class Scaled(nn.Module):
    """A weight that is given beside one of the model's own."""

    def __init__(self, offset: float = 1.0) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.linspace(1, 2, 4))
        self.offset = torch.full((4,), offset)

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        return x * ((scale + self.offset) * self.own)


def weight(*, trained: bool = False) -> nn.Parameter:
    return nn.Parameter(torch.linspace(-1, 1, 4), trained)


def program_of(offset: float = 1.0, rows: int = 2) -> Program:
    return import_program(Scaled(offset), (torch.ones(rows, 4), weight()))


def values(program: Program, scale: Tensor, made: GivenValues | None = None) -> Tensor:
    (value,) = (made or GivenValues(program)).of({"x": torch.ones(2, 4), "scale": scale}).values()
    return value


def test_a_value_follows_from_given_and_own_weights() -> None:
    program, scale = program_of(), weight()
    assert [argument.name for argument in program.inputs] == ["x", "scale"]
    assert torch.equal(values(program, scale), (scale + 1) * torch.linspace(1, 2, 4))


def test_a_value_is_computed_once_per_state_of_the_weights() -> None:
    program, scale = program_of(), weight()
    made = GivenValues(program)
    first = values(program, scale, made)
    assert values(program, scale, made) is first
    scale.data[0] = 5
    assert values(program, scale, made)[0] == 6
    program.read_ahead["own"].data[1] = 0
    assert values(program, scale, made)[1] == 0


def test_programs_share_what_they_compute_alike() -> None:
    scale = weight()
    programs = [program_of(), program_of(rows=3), program_of(offset=2.0)]
    own = programs[0].read_ahead  # of one model
    made = [GivenValues(replace(program, read_ahead=own)) for program in programs]
    few, more, other = (values(p, scale, each) for p, each in zip(programs, made, strict=True))
    assert few is more
    assert torch.equal(other, (scale + 2) * torch.linspace(1, 2, 4))


def test_a_value_goes_with_the_memory_of_its_weight() -> None:
    program, scale = program_of(), weight()
    made = GivenValues(program)
    values(program, scale, made)
    assert len(made._kept) == 1
    del scale
    gc.collect()
    assert not made._kept


def test_weights_that_take_gradients_are_expected_to_change() -> None:
    program = import_program(Scaled(), (torch.ones(2, 4), weight(trained=True)))
    assert not program.given_recipes and program.in_calls is None


def test_a_program_has_a_form_that_computes_them_in_calls() -> None:
    program = program_of()
    assert program.in_calls is not None
    whole = program.in_calls()
    assert not whole.given_recipes
    assert [argument.name for argument in whole.arguments] == ["x", "scale", "own"]
    assert [argument.name for argument in program.arguments][:2] == ["x", "scale"]


def test_a_bound_program_and_its_form_for_files_have_the_bound_weight(tmp_path: Path) -> None:
    save_file({"own": torch.full((4,), 3.0)}, tmp_path / "model.safetensors")
    bound, scale = bind(program_of(), tmp_path), weight()
    assert torch.equal(values(bound, scale), (scale + 1) * 3)
    assert bound.in_calls is not None
    assert torch.equal(bound.in_calls().values["own"], torch.full((4,), 3.0))


def test_a_value_that_torch_refuses_names_the_weight() -> None:
    class Picked(nn.Module):
        def forward(self, x: Tensor, table: Tensor, place: Tensor) -> Tensor:
            return x + table[place]

    given = torch.ones(4), nn.Parameter(torch.ones(3, 4), False), nn.Parameter(torch.tensor(2), False)
    made = spyre_mlir.compile(Picked(), given)
    assert isinstance(made, CompiledModel)
    with pytest.raises(InputError, match="from place, table: index 3 is out of bounds"):
        made(given[0], given[1], torch.tensor(3))
