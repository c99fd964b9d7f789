"""The aten level on the machine: every overload as an op, before and after `decompose-aten`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f16, f32, i1, i64
from xdsl.ir import Attribute, Block, Region

from spyre_mlir.dialects.aten import make_op
from spyre_mlir.dialects.aten_arguments import OperandsAttr, to_attribute
from spyre_mlir.dialects.aten_build import result_types
from spyre_mlir.errors import MachineFault, UnsupportedError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.ops.table import OpEntry, Sample
from spyre_mlir.text.render import module_text as render
from spyre_mlir.transforms.decompose_aten import DecomposeAtenPass
from tests.end_to_end.ops import cases
from tests.unit.machine.modules import Array, close, main, numbers, parse, run

GOOD = cases.good_cases()
ELEMENTS = {"i": i64, "b": i1}


def type_of(array: Array, number: Attribute) -> TensorType[Attribute]:
    return TensorType(ELEMENTS.get(array.dtype.kind, number), array.shape)


def module_of(
    entry: OpEntry, overload: str, given: dict[str, Any], number: Attribute = f32
) -> tuple[ModuleOp, list[Array]]:
    """A module with one op, and the arrays for its arguments."""
    arrays: list[Array] = []
    attributes: dict[str, Attribute] = {}
    for param in entry.params:
        value = given[param.name]
        if isinstance(value, np.ndarray):
            arrays.append(value)
        elif isinstance(value, list):
            arrays += value
            attributes[param.name] = OperandsAttr(len(value))
        elif value is not None and value != param.default:
            attributes[param.name] = to_attribute(value)
    block = Block(arg_types=[type_of(a, number) for a in arrays])
    queue, bound = list(block.args), dict[str, Any]()
    for param in entry.params:
        value = given[param.name]
        taken = len(value) if isinstance(value, list) else 1
        if isinstance(value, np.ndarray | list):
            picked, queue = queue[:taken], queue[taken:]
            bound[param.name] = picked if isinstance(value, list) else picked[0]
        else:
            bound[param.name] = value
    types = result_types(entry, bound)
    op = make_op(overload, list(block.args), attributes, types)
    block.add_ops([op, func.ReturnOp(*op.results)])
    signature = FunctionType.from_lists([a.type for a in block.args], types)
    module = ModuleOp([func.FuncOp("main", signature, Region(block))])
    module.verify()
    return module, arrays


@pytest.mark.parametrize(("entry", "overload", "sample"), GOOD, ids=cases.case_id)
def test_op_gives_what_torch_gives(entry: OpEntry, overload: str, sample: Sample) -> None:
    given = cases.arguments(entry, overload, sample)
    module, arrays = module_of(entry, overload, given, number=f16)
    text = render(module)
    assert render(parse(text)) == text
    for got, wanted in zip(run_function(module, arrays), cases.expected(overload, given), strict=True):
        kind = wanted.dtype.kind if entry.composed else "b" if entry.boolean else "f"
        assert got.dtype == {"b": np.bool_, "i": np.int64, "f": np.float64}[kind]
        close(got.astype(np.float64), wanted.astype(np.float64), entry.tolerance)


@pytest.mark.parametrize(
    ("entry", "overload", "sample"), [c for c in GOOD if c[0].decompose is not None], ids=cases.case_id
)
def test_decomposition_gives_what_torch_gives(entry: OpEntry, overload: str, sample: Sample) -> None:
    given = cases.arguments(entry, overload, sample)
    module, arrays = module_of(entry, overload, given, number=f16)
    DecomposeAtenPass().apply(Context(), module)
    module.verify()
    for got, wanted in zip(run_function(module, arrays), cases.expected(overload, given), strict=True):
        close(got.astype(np.float64), wanted.astype(np.float64), entry.tolerance)


def test_comparison_gives_booleans() -> None:
    text = main(
        "%a: tensor<2xf32>", "%out = aten.gt.Scalar(%a) {other = 0.5} : (tensor<2xf32>) -> tensor<2xi1>", "tensor<2xi1>"
    )
    got = run(text, np.array([0.25, 0.75]))
    assert got.dtype == np.bool_
    assert got.tolist() == [False, True]


def test_integers_stay_integers() -> None:
    text = main(
        "%a: tensor<2xi64>",
        "%out = aten.add.Scalar(%a) {other = 1 : i64} : (tensor<2xi64>) -> tensor<2xi64>",
        "tensor<2xi64>",
    )
    got = run(text, np.array([2**53, -1]))
    assert got.tolist() == [2**53 + 1, 0]


def test_nothing_rounds() -> None:
    text = main(
        "%a: tensor<1xf16>",
        "%out = aten.add.Scalar(%a) {other = 1.0} : (tensor<1xf16>) -> tensor<1xf16>",
        "tensor<1xf16>",
    )
    assert run(text, np.array([2.0**-40]))[0] == 1.0 + 2.0**-40


def test_conversion_to_integer_truncates() -> None:
    text = main(
        "%a: tensor<2xf32>",
        "%out = aten._to_copy(%a) {dtype = i64} : (tensor<2xf32>) -> tensor<2xi64>",
        "tensor<2xi64>",
    )
    assert run(text, np.array([-1.75, 1.75])).tolist() == [-1, 1]


def test_inputs_are_not_changed() -> None:
    a = numbers(3, 4)
    kept = a.copy()
    text = main("%a: tensor<3x4xf32>", "%out = aten.t(%a) : (tensor<3x4xf32>) -> tensor<4x3xf32>", "tensor<4x3xf32>")
    got = run(text, a)
    np.testing.assert_array_equal(got, kept.T)
    np.testing.assert_array_equal(a, kept)


def test_overload_without_entry_is_unsupported_and_named() -> None:
    text = main(
        "%a: tensor<4xf32>",
        '%out = aten.call "aten.cumsum"(%a) {self = #aten.operands<1>, dim = 0 : i64} '
        ": (tensor<4xf32>) -> tensor<4xf32>",
        "tensor<4xf32>",
    )
    with pytest.raises(UnsupportedError, match="cumsum"):
        run_function(parse(text), [numbers(4)])


def test_index_outside_of_an_embedding_is_a_fault() -> None:
    body = "%out = aten.embedding(%w, %i) : (tensor<4x3xf32>, tensor<2xi64>) -> tensor<2x3xf32>"
    text = main("%w: tensor<4x3xf32>, %i: tensor<2xi64>", body, "tensor<2x3xf32>")
    with pytest.raises(MachineFault, match="4 rows") as caught:
        run_function(parse(text), [numbers(4, 3), np.array([0, 4])])
    assert caught.value.where is not None
    assert caught.value.where.startswith("aten.embedding")
