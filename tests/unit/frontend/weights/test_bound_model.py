"""The model behind a program with other tensors."""

from __future__ import annotations

import threading

import torch

from spyre_mlir.frontend.weights.bound_model import bound_model
from tests.unit.frontend.weights.test_sources import Tied

X = torch.tensor([[1.0, 2.0]])
VALUES = {"first.weight": torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "table": torch.tensor([10.0, 20.0])}


def test_a_module_gets_tensors_and_the_model_stays() -> None:
    with torch.device("meta"):
        model = Tied()
    bound = bound_model(model, VALUES, {"second.weight": "first.weight"})
    # Exchanged twice: (1, 2) again.
    assert torch.as_tensor(bound(X)).tolist() == [[11, 22]]
    assert model.first.weight.is_meta and model.table.is_meta
    assert isinstance(bound, Tied)
    assert bound.first.weight.data_ptr() == VALUES["first.weight"].data_ptr()
    assert bound.second.weight is bound.first.weight


def test_tensors_that_are_not_given_are_not_copied() -> None:
    model = Tied()
    bound = bound_model(model, {"table": VALUES["table"]}, {})
    assert isinstance(bound, Tied)
    assert bound.first.weight is model.first.weight and bound.table is VALUES["table"]


def test_an_exported_program_gets_tensors() -> None:
    program = torch.export.export(Tied(), (X,))
    before = program.module()(X)
    bound = bound_model(program, VALUES, {"second.weight": "first.weight"})
    assert isinstance(bound, torch.export.ExportedProgram)
    assert bound.module()(X).tolist() == [[11, 22]]
    assert torch.equal(program.module()(X), before)


def test_anything_else_is_as_it_was() -> None:
    assert bound_model(len, VALUES, {}) is len


def test_a_model_that_cannot_be_copied_is_as_it_was() -> None:
    model = Tied()
    model.lock = threading.Lock()  # type: ignore[assignment]
    assert bound_model(model, VALUES, {}) is model
