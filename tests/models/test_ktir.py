"""Whole models as KTIR: every function runs on all its cores, and the model's result comes out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import UnsupportedError
from tests.models.examine import compiled_once
from tests.models.zoo import ZOO
from tests.unit.transforms.ktir_programs import program_of

TOLERANCE = 1e-2  # a model of many layers in halves
WHOLE = ("mlp", "llama", "gru", "lstm")
CASES = [
    pytest.param(n, marks=() if n == "mlp" else pytest.mark.slow(reason="the suite models runs the whole zoo"))
    for n in ZOO
]


@pytest.mark.parametrize("name", CASES)
def test_a_model_runs_as_ktir(name: str) -> None:
    compiled, inputs, _ = compiled_once(name)
    try:
        ktir = compiled.ktir()
    except UnsupportedError as error:
        # Host steps, and kernels that convert integers, have no KTIR: said by name.
        if name in WHOLE or "no KTIR" not in error.message:
            raise
        pytest.skip("has steps or kernels without KTIR")
    arrays = compiled._inputs(inputs, {})
    wanted = compiled._run("spyre.kernel", arrays)
    got = program_of(compiled.mlir("spyre.kernel"), ktir).run(arrays)
    for one, other in zip(got, wanted, strict=True):
        reference = np.asarray(other, np.float64)
        if one is not None:
            assert np.abs(one.astype(np.float64) - reference).max() <= TOLERANCE * np.abs(reference).max()


class Nested(torch.nn.Module):
    def forward(self, a: torch.Tensor) -> tuple[torch.Tensor, tuple[torch.Tensor, torch.Tensor]]:
        return a + 1, (a * 2, a * 3)


def test_nested_results_keep_their_names() -> None:
    x = torch.arange(128, dtype=torch.float16).reshape(2, 64)
    compiled = spyre_mlir.compile(Nested(), (x,))
    assert isinstance(compiled, CompiledModel)
    got = program_of(compiled.mlir("spyre.kernel"), compiled.ktir()).run([x.numpy()])
    for one, other in zip(got, (x + 1, x * 2, x * 3), strict=True):
        np.testing.assert_array_equal(one, other.numpy())
