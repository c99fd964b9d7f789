"""Pass `inline-regions`."""

import numpy as np

from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.transforms.inline_regions import InlineRegionsPass
from spyre_mlir.transforms.outline_regions import OutlineRegionsPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.regions.programs import calls, stacked


def test_both_forms_compute_the_same() -> None:
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal((4, 8)) * 0.1 for _ in range(4)]
    module = stacked(3)
    (flat,) = run_function(module, inputs)
    OutlineRegionsPass().apply(make_context(), module)
    (outlined,) = run_function(module, inputs)
    assert len(calls(module)) == 3
    InlineRegionsPass().apply(make_context(), module)
    (inlined,) = run_function(module, inputs)
    assert not calls(module)
    assert np.array_equal(flat, outlined)
    assert np.array_equal(flat, inlined)
