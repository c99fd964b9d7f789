"""Random programs as KTIR: they read back, keep the text rules, run on all cores, and equal the kernels."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import lower, lower_to_ktir
from spyre_mlir.text.ktir_program import program_text
from spyre_mlir.text.render import module_text
from spyre_mlir.universe import make_context
from tests.property.programs import build
from tests.unit.transforms.ktir_programs import program_of

LARGEST = 6e4  # a half overflows soon after; DLFloat16 does not
TOLERANCE = 1e-2


def check(seed: int) -> None:
    program, context = build(Random(seed)), make_context()
    # Halves, so that comparisons and `floor` decide alike in all numbers.
    inputs = [x.astype(np.float16).astype(x.dtype) if x.dtype.kind == "f" else x for x in program.inputs]
    try:
        kernels = lower(program.module(), context, until="spyre.kernel").modules["spyre.kernel"]
    except UnsupportedError:
        return  # the kernels are refused, so there is nothing to write
    wanted = run_function(kernels, inputs)
    text = program_text(lower_to_ktir(kernels, context))
    got = program_of(module_text(kernels), text).run(inputs)
    for one, other in zip(got, wanted, strict=True):
        size = np.abs(np.asarray(other, np.float64)).max(initial=1.0)
        if one is None or size > LARGEST:
            continue
        error = np.abs(one.astype(np.float64) - np.asarray(other, np.float64)).max(initial=0.0)
        assert error <= TOLERANCE * size, (seed, program.steps)


@pytest.mark.parametrize("seed", [3, 173])
def test_programs_equal_their_kernels(seed: int) -> None:
    """The second has gaps in device memory."""
    check(seed)


@pytest.mark.slow(reason="four hundred programs; a few run by default")
@pytest.mark.parametrize("seed", range(400))
def test_many_programs(seed: int) -> None:
    check(seed)
