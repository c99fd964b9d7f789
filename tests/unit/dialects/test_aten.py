"""The aten dialect's Python side: classes from the table, arguments by name, attributes to values and back."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import IntegerAttr, TensorType, f16, f32, i1, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten import OP_CLASSES, CallOp, make_op
from spyre_mlir.dialects.aten_arguments import NoneAttr, OperandsAttr, to_attribute, to_value
from spyre_mlir.dialects.aten_types import broadcast_shapes, result_type
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import OpEntry
from tests.paths import TESTS

LIT = TESTS / "lit" / "dialects" / "aten"


def values(*types: Attribute) -> list[SSAValue]:
    return list(TestOp(result_types=list(types)).results)


def entry(overload: str) -> OpEntry:
    found = ATEN.find(overload)
    assert found is not None
    return found


@pytest.mark.parametrize("value", [None, True, False, 3, -1, 0.5, float("inf"), "tanh", (), (1, -1), (1.5, None), f32])
def test_values_survive_attributes(value: object) -> None:
    attribute = to_attribute(value)
    assert to_value(attribute) == (str(value) if value is f32 else value)


def test_booleans_and_integers_stay_apart() -> None:
    assert to_value(to_attribute(True)) is True
    assert to_value(to_attribute(1)) == 1
    assert not isinstance(to_value(to_attribute(1)), bool)


def test_no_attribute_for_other_values() -> None:
    with pytest.raises(TypeError, match="no attribute spells"):
        to_attribute(object())


def test_arguments_by_name() -> None:
    x, bias = values(TensorType(f32, [4, 8]), TensorType(f32, [8]))
    op = make_op("layer_norm", [x, bias], {"weight": NoneAttr(), "normalized_shape": to_attribute((8,))}, [x.type])
    op.verify()
    bound = op.arguments()
    assert (bound["input"], bound["weight"], bound["bias"]) == (x, None, bias)
    assert (bound["normalized_shape"], bound["eps"], bound["cudnn_enable"]) == ((8,), 1e-5, True)


def test_one_integer_where_a_list_is_meant() -> None:
    (x,) = values(TensorType(f32, [4, 1]))
    op = make_op("squeeze.dim", [x], {"dim": IntegerAttr(1, i64)}, [TensorType(f32, [4])])
    op.verify()
    assert op.arguments()["dim"] == (1,)


def test_list_of_tensors_without_count_takes_all() -> None:
    x, y = values(TensorType(f32, [4]), TensorType(f32, [3]))
    assert make_op("cat", [x, y], {}, [TensorType(f32, [7])]).arguments()["tensors"] == [x, y]


def test_overload_without_entry_becomes_a_call() -> None:
    (x,) = values(TensorType(f32, [4]))
    given = {"self": OperandsAttr(1), "UPLO": to_attribute("U")}
    op = make_op("linalg_eigh", [x], given, [TensorType(f32, [4]), TensorType(f32, [4, 4])])
    assert isinstance(op, CallOp)
    assert op.overload == "linalg_eigh"
    assert op.arguments() == {"self": x, "UPLO": "U"}
    assert op.ENTRY is None


def test_class_knows_its_entry_and_documents_itself() -> None:
    (x,) = values(TensorType(f32, [4]))
    op = make_op("add.Scalar", [x], {"other": to_attribute(2)}, [x.type])
    assert type(op) is OP_CLASSES["add.Scalar"]
    assert op.ENTRY is entry("add.Tensor")
    assert type(op).__name__ == "AddScalarOp"
    assert type(op).__doc__ == entry("add.Tensor").doc


def test_two_results_are_refused() -> None:
    (x,) = values(TensorType(f32, [4]))
    with pytest.raises(VerifyException, match="one result, got 2"):
        make_op("neg", [x], {}, [x.type, x.type]).verify()


def test_result_types() -> None:
    half, mask = values(TensorType(f16, [4, 1]), TensorType(i1, [1, 8]))
    assert result_type(entry("mul.Tensor"), {"self": mask, "other": half}) == TensorType(f16, [4, 8])
    assert result_type(entry("gt.Tensor"), {"self": half, "other": 0.5}) == TensorType(i1, [4, 1])
    assert result_type(entry("mm"), {"self": half, "other": mask}) == TensorType(f16, [4, 8])


def test_broadcasting() -> None:
    assert broadcast_shapes([(3, 1), (4,), ()]) == (3, 4)
    with pytest.raises(ValueError, match="do not broadcast"):
        broadcast_shapes([(3,), (4,)])


def test_every_overload_has_a_round_trip() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in LIT.glob("*.mlir") if path.stem != "invalid")
    shown = set(re.findall(r"// CHECK: aten\.([\w.]+)\(", text))
    # Composed ops share one syntax; their samples are printed and read by tests/unit/machine/levels/test_aten.py.
    assert {o for o, c in OP_CLASSES.items() if not (c.ENTRY and c.ENTRY.composed)} - shown == set()
