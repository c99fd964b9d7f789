"""Inputs by name."""

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.debug.named_inputs import argument_names, argument_types, bound_inputs, place_limits
from spyre_mlir.errors import InputError
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

TEXT = """
func.func @main(%x: tensor<2x3xf32> {aten.name = "given"}, %n: tensor<4xi64>, %w: tensor<2xf32>, %b: tensor<5xi1>)
    -> (tensor<2x3xf32>) {
  func.return %x : tensor<2x3xf32>
}
"""

# Size of what integers are places of, and what the program adds to them.
PLACES = {"few": (3, 0), "shifted": (3, -5), "many": (1000, 0), "none": (0, 0)}


@pytest.fixture
def module() -> ModuleOp:
    return parse_module(TEXT, make_context(), "x.mlir")


def test_names(module: ModuleOp) -> None:
    assert argument_names(module, "arg_attrs") == ["given", "n", "w", "b"]
    assert argument_names(module, "res_attrs", 1) == ["result0"]


def test_given_stored_held_and_random(module: ModuleOp) -> None:
    x, w = np.ones((2, 3), np.float32), np.ones(2, np.float32)
    types = argument_types(module)
    bound = bound_inputs(types, {"given": x}, {"given": -x, "w": w}, {"w"}, 0)
    assert bound[0] is x
    assert bound[2] is None
    bound = bound_inputs(types, {}, {"given": -x, "w": w}, (), 0)
    assert np.array_equal(bound[0], -x)
    assert bound[2] is w
    numbers, bools = bound[1], bound[3]
    assert numbers is not None
    assert bools is not None
    assert numbers.min() >= 0
    assert numbers.max() < 10
    assert bools.dtype == np.bool_
    with pytest.raises(InputError, match="the program has no argument 'y'"):
        bound_inputs(types, {"y": x}, {}, (), 0)


def test_random_integers_name_places_that_are_there() -> None:
    places = 'aten.places = [{{op = "aten.gather", at = "", size = {0} : i64, plus = {1} : i64}}]'
    arguments = [f"%{name}: tensor<64xi64> {{{places.format(*at)}}}" for name, at in PLACES.items()]
    text = f"func.func @main({', '.join(arguments)}) -> () {{ func.return }}"
    module = parse_module(text, make_context())
    assert place_limits(module) == {"few": (0, 2), "shifted": (5, 7), "many": (0, 9)}
    few, shifted, many, none = bound_inputs(argument_types(module), {}, {}, (), 0, place_limits(module))
    assert few is not None
    assert shifted is not None
    assert many is not None
    assert none is not None
    assert (few.min(), few.max(), shifted.min(), shifted.max(), many.max(), none.max()) == (0, 2, 5, 7, 9, 9)
