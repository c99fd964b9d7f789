"""Inputs by name."""

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, f32, i8, i32, i64
from xdsl.ir import Attribute

from spyre_mlir.debug.named_inputs import argument_names, argument_types, bound_inputs, converted, place_limits
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


DOUBLES = np.array([0.1, -1 / 3, 1e-9, np.inf, np.nan, 65_000.0])
TYPES: dict[Attribute, torch.dtype] = {f32: torch.float32, f16: torch.float16, bf16: torch.bfloat16}


@pytest.mark.parametrize("element", TYPES, ids=str)
@pytest.mark.parametrize("values", [DOUBLES, np.array([1, -7, 2**24 + 1 - 2**24, 3])], ids=["float64", "int64"])
def test_numbers_become_those_of_the_argument_as_in_torch(element: Attribute, values: np.ndarray) -> None:
    wanted = torch.from_numpy(values).to(TYPES[element]).double().numpy()
    got = converted(values, TensorType(element, values.shape), "x")
    np.testing.assert_array_equal(got.astype(np.float64), wanted)


@pytest.mark.parametrize(
    ("values", "element", "found"),
    [
        (np.array([0.0, 1e300]), f32, r"'x' holds 1e\+300 at \[1\], which is beyond f32"),
        (np.array([7e4]), f16, r"70000.0 at \[0\], which is beyond f16"),
        (np.array([[300]]), i8, r"300 at \[0, 0\], which is beyond i8"),
        (np.array([2**31]), i32, r"2147483648 at \[0\]"),
    ],
)
def test_numbers_beyond_the_argument_are_refused(values: np.ndarray, element: Attribute, found: str) -> None:
    with pytest.raises(InputError, match=found):
        bound_inputs([("x", TensorType(element, values.shape))], {"x": values}, {}, (), 0)


def test_random_integers_make_indices_together() -> None:
    step = '{call = "aten.mul", as = i64, self = "%0", other = "@j"}'
    places = f'aten.places = [{{op = "aten.gather", at = "", size = 20 : i64, by = [{step}]}}]'
    arguments = f'%i: tensor<3xi64> {{aten.name = "i", {places}}}, %j: tensor<3xi64> {{aten.name = "j"}}'
    module = parse_module(f"func.func @main({arguments}) -> () {{ func.return }}", make_context())
    assert place_limits(module) == {"i": (0, 4), "j": (0, 4)}


def test_numbers_of_the_type_stay_as_they_are() -> None:
    for values, element in ((DOUBLES.astype(np.float32), f32), (np.array([2**40]), i64), (DOUBLES, i64)):
        assert converted(values, TensorType(element, values.shape), "x") is values
