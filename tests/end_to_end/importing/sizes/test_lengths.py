"""A language model with a symbolic length: imported once, right at every length."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim

import spyre_mlir
from spyre_mlir import frontend
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.dynamic.programs import specialized
from spyre_mlir.frontend import import_program
from spyre_mlir.text.render import module_text
from tests.end_to_end.models import llama

LONGEST = 300
MODEL, EXAMPLE = llama()


def tokens(length: int) -> torch.Tensor:
    return torch.randint(0, 100, (1, length), generator=torch.Generator().manual_seed(length))


@pytest.fixture(scope="module")
def dynamic() -> DynamicModel:
    shapes = ({1: Dim("length", min=2, max=512)},)
    made = spyre_mlir.compile(MODEL, EXAMPLE, dynamic_shapes=shapes, numerics="exact", specializations=1)
    assert isinstance(made, DynamicModel)
    return made


def right(model: DynamicModel, length: int) -> bool:
    ids = tokens(length)
    expected = MODEL(ids)
    return bool(((model(ids) - expected).abs().max() / expected.abs().max()) < 1e-5)


@pytest.mark.parametrize("length", [2, 65])
def test_a_length(length: int, dynamic: DynamicModel, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("imported again")

    monkeypatch.setattr(frontend, "import_program", refuse)
    assert right(dynamic, length)


def test_one_token_has_a_program_of_its_own(dynamic: DynamicModel) -> None:
    assert right(dynamic, 1)


@pytest.mark.slow(reason="300 programs; the default run has a few")
def test_every_length(dynamic: DynamicModel) -> None:
    assert [length for length in range(1, LONGEST + 1) if not right(dynamic, length)] == []


@pytest.mark.parametrize("length", [2, 65])
def test_the_text_is_that_of_a_static_export(length: int) -> None:
    shapes = ({1: Dim("length", min=2, max=512)},)
    symbolic = import_program(MODEL, EXAMPLE, None, shapes)
    static = import_program(MODEL, (tokens(length),))
    assert module_text(specialized(symbolic, {"s0": length}).module) == module_text(static.module)
