"""Aten ops in place of ops of a model: location, name, readers, and erasure with the last reader."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, erase_unread, replace, unshaped


def layer() -> AtenOp:
    """A layer of a program."""
    module = import_program(torch.nn.Linear(4, 4), (torch.ones(2, 4),)).module
    return next(op for op in module.walk() if isinstance(op, AtenOp))


def test_ops_have_the_place_of_their_source() -> None:
    op = layer()
    made = AtenWriter(op).call("unsqueeze", self=op.operands[0], dim=0).owner
    assert isinstance(made, AtenOp)
    assert made.location == op.location
    assert made.next_op is op


def test_an_unknown_op_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing is not in the op table"):
        AtenWriter(layer()).call("nothing")


def test_views_are_seen_through_and_written_where_they_are_needed() -> None:
    op = layer()
    writer, source = AtenWriter(op), op.operands[0]
    assert writer.viewed(source, (2, 4)) is source
    turned = writer.call("permute", self=writer.viewed(source, (4, 2)), dims=(1, 0))
    assert shape_of(turned) == (2, 4)
    assert unshaped(writer.call("unsqueeze", self=writer.viewed(turned, (8,)), dim=0)) is turned


def test_what_is_read_by_nothing_is_erased() -> None:
    op = layer()
    writer, block = AtenWriter(op), op.parent_block()
    assert block is not None
    before = len(list(block.ops))
    last = writer.call("unsqueeze", self=writer.call("unsqueeze", self=op.operands[0], dim=0), dim=0).owner
    assert len(list(block.ops)) == before + 2
    assert isinstance(last, AtenOp)
    erase_unread(last)
    assert len(list(block.ops)) == before


def test_readers_place_and_name_go_to_the_new_op() -> None:
    op = layer()
    location, name, readers = op.location, op.results[0].name_hint, [use.operation for use in op.results[0].uses]
    made = replace(op, "relu", {"self": op.operands[0]})
    assert (made.location, made.results[0].name_hint) == (location, name)
    assert [use.operation for use in made.results[0].uses] == readers
    assert made.overload == "relu"


def test_an_overload_that_is_not_in_the_table_is_an_error() -> None:
    op = layer()
    with pytest.raises(ValueError, match="no_such_op is not in the op table"):
        replace(op, "no_such_op", {})
