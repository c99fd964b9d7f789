"""Values, who made them, and what is not drawn."""

from __future__ import annotations

from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.test import TestOp
from xdsl.ir import SSAValue

from spyre_mlir.report.graphs.flow import Flow
from spyre_mlir.report.graphs.level_graph import LevelNode


def values(count: int) -> list[SSAValue]:
    return list(TestOp(result_types=[TensorType(f32, [4])] * count).results)


def test_whoever_reads_a_buffer_reads_all_who_wrote_there() -> None:
    flow, (buffer, result) = Flow(), values(2)
    flow.update(LevelNode("first", "a", (), "op"), (), buffer)
    flow.update(LevelNode("second", "b", (), "op"), (), buffer)
    flow.add(LevelNode("reader", "c", (), "op"), (buffer,), (result,))
    assert flow.nodes()[-1].reads == (("first", 0), ("second", 0))


def test_what_is_not_drawn_is_named_by_its_readers() -> None:
    flow, (weight, view, result) = Flow(), values(3)
    flow.argument(weight, "w", is_input=False)
    flow.follow(view, weight)
    flow.add(LevelNode("reader", "c", (), "op"), (view,), (result,))
    (node,) = flow.nodes()
    assert (node.reads, node.figures, node.types) == ((), {"reads": "w"}, ("4xf32",))


def test_ids_are_unique() -> None:
    flow, (first, second, third) = Flow(), values(3)
    for value in (first, second):
        flow.add(LevelNode("same", "a", (), "op"), (), (value,))
    flow.add(LevelNode("reader", "c", (), "op"), (first, second), (third,))
    assert [n.id for n in flow.nodes()] == ["same", "same again 1", "reader"]
    assert flow.nodes()[-1].reads == (("same", 0), ("same again 1", 0))
