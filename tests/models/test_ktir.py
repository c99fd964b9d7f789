"""Whole models as KTIR: every function runs on all its cores, and the model's result comes out."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("transformers")

from spyre_mlir.errors import UnsupportedError
from tests.models.examine import compiled_once
from tests.models.zoo import ZOO
from tests.unit.transforms.ktir_programs import program_of

TOLERANCE = 1e-2  # a model of many layers in halves
CASES = [pytest.param(n, marks=() if n == "mlp" else pytest.mark.slow) for n in ZOO]


@pytest.mark.parametrize("name", CASES)
def test_a_model_runs_as_ktir(name: str) -> None:
    compiled, inputs, _ = compiled_once(name)
    if compiled.host_steps:
        with pytest.raises(UnsupportedError, match="has no KTIR"):
            compiled.ktir()
        return
    arrays = compiled._inputs(inputs, {})
    wanted = compiled._run("spyre.kernel", arrays)
    got = program_of(compiled.mlir("spyre.kernel"), compiled.ktir()).run(arrays)
    for one, other in zip(got, wanted, strict=True):
        reference = np.asarray(other, np.float64)
        if one is not None:
            assert np.abs(one.astype(np.float64) - reference).max() <= TOLERANCE * np.abs(reference).max()
