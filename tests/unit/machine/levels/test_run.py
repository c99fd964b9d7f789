"""Running functions of the upper levels: same numbers at every level, arguments checked, ops observed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f16
from xdsl.interpreter import OpCounter

from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.ops.table import OpEntry, Sample
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.universe import make_context
from tests.end_to_end.ops import cases
from tests.unit.machine.levels.test_aten import module_of
from tests.unit.machine.modules import close, float32, main, numbers, parse

LOWERING = ("decompose-aten", "convert-aten-to-spyre-loop", "convert-spyre-loop-to-spyre-kernel", "divide-work")
ADD = main(
    '%a: tensor<2x3xf32> {aten.name = "left"}, %b: tensor<3xi64> {aten.name = "right"}',
    "%out = aten.add.Tensor(%a, %b) : (tensor<2x3xf32>, tensor<3xi64>) -> tensor<2x3xf32>",
    "tensor<2x3xf32>",
)


# Normalisation by known statistics has empty results, which no function below the aten level can return.
WITH_ELEMENTS = [
    c for c in cases.good_cases() if c[2].attributes.get("training") is not False and "no_training" not in c[1]
]


def first_of_each(found: list[tuple[OpEntry, str, Sample]]) -> list[Any]:
    """The cases as parameters; all but the first of every entry take long together, and are marked so."""
    firsts = {entry.name: case for case in reversed(found) for entry in case[:1]}
    slow = (pytest.mark.slow(reason="a second sample of an op; the first runs by default"),)
    return [pytest.param(*c, marks=() if firsts[c[0].name] is c else slow) for c in found]


@pytest.mark.parametrize(("entry", "overload", "sample"), first_of_each(WITH_ELEMENTS), ids=cases.case_id)
def test_same_numbers_at_every_level(entry: OpEntry, overload: str, sample: Sample) -> None:
    given = cases.arguments(entry, overload, sample)
    module, arrays = module_of(entry, overload, given, number=f16)
    expected, near = cases.expected(overload, given), max(1e-11, entry.tolerance)
    passes = get_all_passes()
    for name in LOWERING:
        passes[name]()().apply(make_context(), module)
        module.verify()
        for got, wanted in zip(run_function(module, arrays), expected, strict=True):
            np.testing.assert_allclose(
                got.astype(np.float64), wanted.astype(np.float64), rtol=near, atol=near, err_msg=f"after {name}"
            )
    names = {op.name for op in module.walk()}
    assert not [n for n in names if n.startswith(("aten.", "spyre.loop."))]


def test_constants_that_differ_only_in_length_are_two() -> None:
    """Both start 0, 1, 2, 3 and lie in one stick; a shared buffer would end after 4 numbers."""
    module = parse("""
        func.func @main(%a: tensor<4xf32>, %b: tensor<5xf32>) -> (tensor<4xf32>, tensor<5xf32>) {
          %0 = aten.arange.start_step() {end = 4 : i64, dtype = f32} : () -> tensor<4xf32>
          %1 = aten.arange.start_step() {end = 5 : i64, dtype = f32} : () -> tensor<5xf32>
          %2 = aten.add.Tensor(%a, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          %3 = aten.add.Tensor(%b, %1) : (tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
          func.return %2, %3 : tensor<4xf32>, tensor<5xf32>
        }""")
    for name in LOWERING:
        get_all_passes()[name]()().apply(make_context(), module)
    four, five = run_function(module, [np.zeros(4), np.zeros(5)])
    assert four.tolist() == [0, 1, 2, 3]
    assert five.tolist() == [0, 1, 2, 3, 4]


def test_numbers_of_other_widths_are_taken_exactly() -> None:
    (got,) = run_function(parse(ADD), [np.full((2, 3), 0.1, np.float32), np.array([1, 2, 3], np.int8)])
    assert got.dtype == np.float64
    close(got, float32(float(np.float32(0.1)) + np.array([[1, 2, 3]] * 2)))


def test_transposed_inputs_are_read_in_their_own_order() -> None:
    a = numbers(3, 2).T
    (got,) = run_function(parse(ADD), [a, np.zeros(3, np.int64)])
    close(got, a)


def test_too_few_inputs_name_the_arguments() -> None:
    with pytest.raises(InputError, match="1 arrays for 2 arguments") as caught:
        run_function(parse(ADD), [numbers(2, 3)])
    assert caught.value.hint == "pass argument 0, 'left', argument 1, 'right'"
    assert caught.value.where == "@main"


def test_wrong_shape_names_the_argument() -> None:
    with pytest.raises(InputError, match=r"argument 0, 'left' takes shape \(2, 3\), got \(3, 2\)") as caught:
        run_function(parse(ADD), [numbers(3, 2), np.zeros(3, np.int64)])
    assert caught.value.hint is not None and "argument 0, 'left' an array of that shape" in caught.value.hint


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros(3, complex)])
def test_wrong_kind_of_numbers_names_the_argument(wrong: np.ndarray) -> None:
    with pytest.raises(InputError, match="argument 1, 'right' takes i64 numbers, got"):
        run_function(parse(ADD), [numbers(2, 3), wrong])


def test_arguments_without_names_have_numbers() -> None:
    text = main("%a: tensor<2xi1>", "%out = aten.clone(%a) : (tensor<2xi1>) -> tensor<2xi1>", "tensor<2xi1>")
    with pytest.raises(InputError, match="argument 0 takes i1 numbers, got int64"):
        run_function(parse(text), [np.array([0, 1])])


def test_device_tensors_cannot_be_passed() -> None:
    t = "!spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>"
    module = parse(f"func.func @main(%a: {t}) {{ func.return }}")
    with pytest.raises(InputError, match="only host tensors can be passed"):
        run_function(module, [numbers(64)])


def test_unknown_function_lists_those_there_are() -> None:
    with pytest.raises(InputError, match="no function 'other'") as caught:
        run_function(parse(ADD), [], "other")
    assert caught.value.hint == "its functions are main"


def test_several_results_and_calls() -> None:
    module = parse("""
        func.func @twice(%a: tensor<2xf32>) -> tensor<2xf32> {
          %0 = aten.add.Tensor(%a, %a) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
          func.return %0 : tensor<2xf32>
        }
        func.func @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
          %0 = func.call @twice(%a) : (tensor<2xf32>) -> tensor<2xf32>
          func.return %0, %a : tensor<2xf32>, tensor<2xf32>
        }""")
    a = numbers(2)
    first, second = run_function(module, [a])
    close(first, 2 * a)
    close(second, a)


def test_listener_sees_every_op() -> None:
    counter = OpCounter()
    run_function(parse(ADD), [numbers(2, 3), np.zeros(3, np.int64)], listeners=[counter])
    assert counter.ops == {"aten.add.Tensor": 1, "func.return": 1}


def test_fault_names_op_and_line_and_carries_no_module_text() -> None:
    text = """func.func @main(%i: tensor<1xi64>, %t: tensor<4x3xf32>) -> tensor<1x3xf32> {
        %0 = spyre.loop.gather [s = 1, h = 3] rows(%i[s] : tensor<1xi64>) of axis 0 in %t[0, h] : tensor<4x3xf32>
          -> [s, h] : tensor<1x3xf32> loc("model.py":12:3)
        func.return %0 : tensor<1x3xf32>
    }"""
    with pytest.raises(MachineFault) as caught:
        run_function(parse(text), [np.array([4]), numbers(4, 3)])
    assert caught.value.where == 'spyre.loop.gather loc("model.py":12:3)'
    assert caught.value.exit_code == 3
    assert not caught.value.__notes__
