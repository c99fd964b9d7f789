"""Groups of operands whose sizes are read once."""

import pytest
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.dialects.test import TestOp, TestType
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, irdl_op_definition, opt_operand_def, var_operand_def

from spyre_mlir.dialects.ir.operand_groups import known_groups


@known_groups("many", "one")
@irdl_op_definition
class Grouped(IRDLOperation):
    name = "test.grouped"

    many = var_operand_def()
    one = opt_operand_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)


VALUES = TestOp(result_types=[TestType("a")] * 3).results


def test_groups_are_those_of_the_property() -> None:
    op = Grouped(operands=[VALUES[:2], [VALUES[2]]])
    assert tuple(op.many) == VALUES[:2]
    assert op.one is VALUES[2]
    assert Grouped(operands=[VALUES, []]).one is None


def test_they_follow_new_operands_and_new_sizes() -> None:
    op = Grouped(operands=[VALUES[:2], [VALUES[2]]])
    assert op.one is VALUES[2]
    op.operands = (VALUES[0], VALUES[2], VALUES[1])
    assert op.one is VALUES[1]
    op.properties[AttrSizedOperandSegments.attribute_name] = DenseArrayBase.from_list(i32, [3, 0])
    assert (tuple(op.many), op.one) == ((VALUES[0], VALUES[2], VALUES[1]), None)


def test_a_copy_has_groups_of_its_own() -> None:
    op = Grouped(operands=[VALUES[:2], []])
    assert op.one is None
    copy = op.clone()
    copy.properties[AttrSizedOperandSegments.attribute_name] = DenseArrayBase.from_list(i32, [1, 1])
    assert (copy.one, op.one) == (VALUES[1], None)


def test_a_group_cannot_be_set() -> None:
    with pytest.raises(NotImplementedError):
        Grouped(operands=[VALUES, []]).one = VALUES[0]
