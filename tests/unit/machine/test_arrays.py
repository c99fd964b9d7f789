"""Host arrays, views of them by strides and index maps, and matrix products over named axes, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from xdsl.dialects.builtin import (
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    IndexType,
    IntegerType,
    ModuleOp,
    Signedness,
    TensorType,
    f32,
    i1,
    i8,
    i64,
)
from xdsl.dialects.test import TestOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl
from xdsl.ir import Attribute

from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.machine.arrays import (
    HostArray,
    as_numbers,
    axis_range,
    check_known,
    contract,
    expression_grid,
    first_index,
    in_width,
    numpy_type,
    strided,
    tensor_type,
    with_rules,
)

Array = NDArray[Any]
u8 = IntegerType(8, Signedness.UNSIGNED)


def test_an_array_of_values_is_all_defined() -> None:
    array = HostArray.of(np.asarray([1, 2], np.int32), f32)
    assert array.values.dtype == np.float64
    assert array.values.tolist() == [1.0, 2.0]
    assert array.defined is None
    assert array.known(TestOp(), "it") is array.values


@pytest.mark.parametrize(("element", "blank"), [(f32, np.nan), (i64, 0), (i1, False)])
def test_an_undefined_array_has_no_value_anywhere(element: Attribute, blank: float) -> None:
    array = HostArray.undefined((2, 3), element)
    np.testing.assert_array_equal(array.values, np.full((2, 3), blank))
    assert array.defined is not None
    assert array.defined.tolist() == [[False] * 3] * 2


def test_an_element_without_a_value_is_named_when_read() -> None:
    defined = np.asarray([[True, True, True], [True, False, False]])
    with pytest.raises(MachineFault, match=r"operand 0: element \[1, 1\] has no value \(2 such elements\)") as caught:
        HostArray(np.zeros((2, 3)), defined).known(TestOp(), "operand 0")
    assert caught.value.kind == FaultKind.UNINITIALISED_READ
    assert caught.value.place.tensor == "operand 0"
    with pytest.raises(MachineFault) as caught:
        HostArray(np.zeros((2, 3)), defined).known(TestOp(), "result", FaultKind.UNWRITTEN_OUTPUT)
    assert caught.value.kind == FaultKind.UNWRITTEN_OUTPUT


def test_a_mask_of_defined_elements_is_no_fault() -> None:
    values = np.asarray([3.0, 4.0])
    assert HostArray(values, np.ones(2, np.bool_)).known(TestOp(), "it") is values
    with pytest.raises(MachineFault) as caught:
        check_known(np.asarray([False]), TestOp(), "it")
    assert caught.value.kind == FaultKind.UNINITIALISED_READ


def test_the_first_true_element_in_row_major_order() -> None:
    assert first_index(np.asarray([[False, False, False], [False, False, True], [True, True, True]])) == [1, 2]


@pytest.mark.parametrize(
    ("element", "kind"),
    [(i1, np.bool_), (i8, np.int64), (i64, np.int64), (IndexType(), np.int64), (f32, np.float64)],
)
def test_each_element_type_has_a_numpy_type_that_holds_it(element: Attribute, kind: type) -> None:
    assert numpy_type(element) is kind


def test_numbers_of_float32_stay_narrow_only_when_asked() -> None:
    narrow = np.asarray([[1, 2], [3, 4]], np.float32).T
    assert as_numbers(narrow, f32).dtype == np.float64
    kept = as_numbers(narrow, f32, narrow=True)
    assert kept.dtype == np.float32
    assert kept.flags.c_contiguous
    assert kept.tolist() == [[1, 3], [2, 4]]
    assert as_numbers(narrow, i64, narrow=True).dtype == np.int64
    assert as_numbers(narrow.astype(np.float16), f32, narrow=True).dtype == np.float64
    assert as_numbers(narrow.astype(np.float64), f32).flags.c_contiguous
    dense = np.ones(3)
    assert as_numbers(dense, f32) is dense


@pytest.mark.parametrize(
    ("element", "given", "held"),
    [
        (i8, [-128, 127], [-128, 127]),
        (i8, [127, 128, 300, -129], [127, -128, 44, 127]),
        (i8, [0, -129], [0, 127]),
        (i8, [0, 128], [0, -128]),
        (u8, [0, 255], [0, 255]),
        (u8, [256, -1, 5], [0, 255, 5]),
        (i8, [], []),
        (i64, [2**62, -(2**63)], [2**62, -(2**63)]),
    ],
)
def test_integers_wrap_at_the_ends_of_their_type(element: Attribute, given: list[int], held: list[int]) -> None:
    assert in_width(np.asarray(given, np.int64), element).tolist() == held


def test_truth_values_and_floats_have_no_width() -> None:
    truths, floats = np.asarray([True, False]), np.asarray([1e300, 0.1])
    assert in_width(truths, i1) is truths
    assert in_width(floats, f32) is floats


def test_eight_bit_floats_are_rounded() -> None:
    """Three bits of fraction: from 16 on only even numbers, and a tie goes to the even one."""
    given = np.asarray([1.0, 17.0, 18.0, 19.0])
    assert in_width(given, Float8E4M3FNType()).tolist() == [1.0, 16.0, 18.0, 20.0]


@pytest.mark.parametrize(
    ("element", "type_"),
    [
        (Float8E5M2Type(), torch.float8_e5m2),
        (Float8E4M3FNUZType(), torch.float8_e4m3fnuz),
        (Float8E5M2FNUZType(), torch.float8_e5m2fnuz),
    ],
)
def test_eight_bit_floats_of_the_host_are_those_of_torch(element: Attribute, type_: torch.dtype) -> None:
    given = np.asarray([0.0, 1.1, -17.0, 19.0, 2.0**-17, 239.0, 250.0, 60000.0, 62000.0, 1e9, np.inf, np.nan])
    rounded = torch.from_numpy(given).float().to(type_).double().numpy()
    np.testing.assert_array_equal(in_width(given, element), rounded)


def test_a_tensor_type_is_given_back() -> None:
    type_ = TensorType(f32, [2, 3])
    assert tensor_type(type_) is type_


def test_rules_made_by_a_program_are_registered_under_their_op() -> None:
    def doubled(self: object, interpreter: Interpreter, op: TestOp, args: PythonValues) -> PythonValues:
        return (2 * args[0],)

    class Doubles(InterpreterFunctions):
        """What the rule is added to."""

    made = with_rules(Doubles, {"run": impl(TestOp)(doubled)})
    assert made.__name__ == "Doubles" and issubclass(made, Doubles)
    interpreter = Interpreter(ModuleOp([]))
    interpreter.register_implementations(made())
    source = TestOp(result_types=[i64])
    assert interpreter.run_op(TestOp([source.results[0]], [i64]), (21,)) == (42,)


def test_a_strided_view_is_the_array_and_no_copy() -> None:
    flat = np.arange(12.0)
    view = strided(flat, 1, [2, 3], [6, 2])
    assert view.tolist() == [[1, 3, 5], [7, 9, 11]]
    view[0, 0] = -1.0
    assert flat[1] == -1.0
    assert strided(flat, 11, [12], [-1]).tolist() == flat[::-1].tolist()
    assert strided(flat, 0, [12], [1]).shape == (12,)
    assert strided(flat, 5, [3], [0]).tolist() == [5, 5, 5]


@pytest.mark.parametrize(
    ("offset", "shape", "strides", "span"),
    [(1, [12], [1], "1 to 12"), (2, [4], [-1], "-1 to 2"), (-1, [2], [1], "-1 to 0"), (0, [2, 4], [6, 3], "0 to 15")],
)
def test_a_strided_view_that_leaves_the_array_is_refused(
    offset: int, shape: list[int], strides: list[int], span: str
) -> None:
    with pytest.raises(IndexError, match=f"elements {span} of an array of 12"):
        strided(np.arange(12.0), offset, shape, strides)


def test_the_values_of_an_expression_over_a_space() -> None:
    expr = LinearExpr(5, (("j", 10), ("i", -1)))
    grid = expression_grid(expr, {"i": 2, "n": 7, "j": 3}, ["i", "n", "j"])
    assert grid.shape == (2, 1, 3)
    assert grid[:, 0].tolist() == [[5, 15, 25], [4, 14, 24]]


def test_a_range_along_one_axis() -> None:
    assert axis_range(1, 3, 3).tolist() == [[[0], [1], [2]]]
    assert axis_range(0, 2, 1).tolist() == [0, 1]


@pytest.mark.parametrize("axes", ["bik bkj bij", "kib jk ijb", "ik jk ij", "ikl lkj ji", "i j ij", "bi bi b", "i i "])
def test_a_contraction_is_what_einsum_says(axes: str) -> None:
    left, right, out = axes.split(" ")
    extent = {"b": 2, "i": 3, "j": 4, "k": 5, "l": 6}
    random = np.random.default_rng(0)
    a, b = (random.integers(-9, 9, [extent[x] for x in names]).astype(float) for names in (left, right))
    assert np.array_equal(contract(a, b, left, right, out), np.einsum(f"{left},{right}->{out}", a, b))


@pytest.mark.parametrize(("left", "right", "out"), [("ik", "j", "ij"), ("ik", "kj", "ijz"), ("i", "kj", "ij")])
def test_a_contraction_that_is_no_matrix_product_is_refused(left: str, right: str, out: str) -> None:
    with pytest.raises(ValueError, match="no matrix product"):
        contract(np.zeros((2,) * len(left)), np.zeros((2,) * len(right)), left, right, out)


def test_floats_beyond_all_integers_become_one_in_silence() -> None:
    values = np.array([np.nan, np.inf, 1e20, 2.5])
    assert np.array_equal(as_numbers(values, i64), torch.from_numpy(values).long().numpy())
