"""The ops of a DSC are linked by the numbers in their entries; numbers that name nothing link nothing."""

from __future__ import annotations

from xdsl.ir import Operation

from spyre_mlir.dialects.superdsc.codec.linked_body import linked_body
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, LabeledDsOp, SdscComputeOp, SdscConstantOp
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject


def numbered(*numbers: int | str) -> list[JsonObject]:
    return [{"ldsIdx_": number} for number in numbers]


def owners(op: Operation) -> list[object]:
    return [value.owner for value in op.operands]


def test_an_operation_reads_operands_at_their_places() -> None:
    compute: JsonObject = {"inputLabeledDs": ["Tensor0-idx0"], "outputLabeledDs": ["Tensor1-idx1"]}
    node0, node1, operand0, operand1, constant, op = linked_body(numbered(0, 1), numbered(0, 1), {"k": {}}, [compute])
    assert isinstance(node0, AllocateOp)
    assert isinstance(constant, SdscConstantOp)
    assert isinstance(op, SdscComputeOp)
    assert (owners(operand0), owners(operand1), owners(op)) == ([node0], [node1], [operand0, operand1])
    assert [value.owner for value in op.outputs] == [operand1]
    assert op.fields == compute


def test_several_nodes_and_operands_of_one_number() -> None:
    compute: JsonObject = {"inputLabeledDs": ["Tensor0-idx0"]}
    first, second, operand, again, op = linked_body(numbered(0, 0), numbered(0, 0), {}, [compute])
    assert owners(operand) == owners(again) == [first, second]
    assert owners(op) == [operand]


def test_numbers_without_a_partner_link_nothing() -> None:
    compute: JsonObject = {"inputLabeledDs": ["Tensor0-idx0", "Tensor7-idx7"]}
    *ops, op = linked_body(numbered(1, "0"), numbered(0, "1"), {}, [compute])
    assert [type(inner) for inner in ops] == [AllocateOp, AllocateOp, LabeledDsOp, LabeledDsOp]
    assert not any(owners(inner) for inner in (*ops, op))
    assert op.fields == compute
