"""The bundle that calls run, in memory and in files, which copies of a model share."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.backend.held import HeldBundle
from spyre_mlir.backend.stored import StoredBundle
from spyre_mlir.compiled import CompiledModel

X = torch.eye(4, 64)


def linear() -> tuple[torch.nn.Linear, CompiledModel]:
    model = torch.nn.Linear(64, 64)
    return model, spyre_mlir.compile(model, (X,), numerics="device")


def check(model: torch.nn.Module, *compiled: CompiledModel) -> None:
    for one in compiled:
        torch.testing.assert_close(one(X), model(X), rtol=0.01, atol=0.01)


@pytest.mark.parametrize("files", [False, True])
@torch.no_grad()
def test_copies_see_a_weight_that_changes(files: bool) -> None:
    model, compiled = linear()
    if files:
        compiled.bundle_directory()
    copies = copy.copy(compiled), compiled.in_exact_numerics(), compiled
    check(model, *copies)
    model.weight.mul_(3)
    check(model, *copies)
    model.weight.mul_(3)
    check(model, *reversed(copies))


def test_files_are_read_from_when_they_are_asked_for() -> None:
    model, compiled = linear()
    assert isinstance(compiled._bundle.prepared()[0], HeldBundle)
    directory = compiled.bundle_directory()
    stored = compiled._bundle.prepared()[0]
    assert isinstance(stored, StoredBundle)
    assert stored.directory == directory
    assert compiled._bundle.prepared()[0] is stored
    compiled.reload()
    assert compiled._bundle.prepared()[0] is not stored
    check(model, compiled)


def test_files_stay_as_long_as_a_copy_of_the_model() -> None:
    _, compiled = linear()
    first = pickle.loads(pickle.dumps(compiled))
    kept, directory = copy.copy(first), Path(first.bundle_directory())
    del first
    assert directory.exists()
    torch.testing.assert_close(kept(X), compiled(X))
    del kept
    assert not directory.exists()
