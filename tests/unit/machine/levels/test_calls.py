"""Calls of regions on the machine."""

import numpy as np
import pytest

from spyre_mlir.dialects.places import Rebase
from spyre_mlir.errors import MachineFault
from spyre_mlir.machine.levels.calls import places_at
from spyre_mlir.machine.levels.run import run_function
from tests.unit.transforms.regions.programs import calls, parsed

# The loop reads behind the end of its operand; the function was made from layer 0.
PROGRAM = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = func.call @layers(%x) : (tensor<4xf32>) -> tensor<4xf32> loc("layers.3"(unknown))
  func.return %0 : tensor<4xf32>
}
func.func private @layers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = spyre.loop.empty : tensor<4xf32> loc("layers.0.mlp"("m.py":7:0))
  %1 = aten.neg(%0) : (tensor<4xf32>) -> tensor<4xf32> loc("layers.0.mlp"("m.py":7:0))
  func.return %1 : tensor<4xf32>
}"""


def test_a_fault_is_told_of_the_layer_of_the_call() -> None:
    with pytest.raises(MachineFault) as met:
        run_function(parsed(PROGRAM), [np.zeros(4)])
    assert met.value.place.line == "m.py:7 (layers.3.mlp)"
    assert "layers.3.mlp" in (met.value.where or "")
    assert "layers.0" not in str(met.value)


def test_places_at_a_call() -> None:
    (call,) = calls(parsed(PROGRAM))
    assert places_at(call) == Rebase("layers.0", "layers.3")
