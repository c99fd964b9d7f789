"""Our KTIR on the interpreter of its authors: every program equals torch in double precision."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from tests.ktir_cpu.interpreter import checkout, run
from tests.ktir_cpu.programs import PROGRAMS
from tests.unit.transforms.ktir_programs import program_of

TOLERANCE = 1.5e-3  # of the largest number: two ulps of an f16


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_equals_torch(name: str) -> None:
    checkout()
    assert error_of(name) <= TOLERANCE


def error_of(name: str) -> float:
    """The largest difference, in parts of the largest number."""
    make, inputs = PROGRAMS[name]
    model = make().eval()
    wanted = deepcopy(model).double()(*(x.double() if x.is_floating_point() else x for x in inputs))
    compiled = spyre_mlir.compile(model, inputs)
    assert isinstance(compiled, CompiledModel)
    program = program_of(compiled.mlir("spyre.kernel"), compiled.ktir())
    program.fill(arrays_of(compiled, inputs))
    for function, text in compiled.ktir_modules().items():
        pointers = re.findall(r"%(\w+): index", text.split("func.func", 1)[1].split("{", 1)[0])
        program.arrays |= run(text, function, {n: program.arrays[n] for n in pointers})
    (got,) = program.outputs()
    reference = wanted.detach().numpy()
    assert got.shape == reference.shape
    difference = np.abs(got.astype(np.float64) - reference)
    assert np.isfinite(difference).all()
    return float(difference.max() / max(1.0, np.abs(reference).max()))


def arrays_of(compiled: CompiledModel, inputs: tuple[torch.Tensor, ...]) -> list[Any]:
    """What the host sends: the inputs and the weights, in the order of the program's arguments."""
    return compiled._inputs(inputs, {})
