"""Dominator trees of small graphs of blocks, drawn by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from xdsl.dialects.test import TestOp, TestTermOp
from xdsl.ir import Block, Region

from spyre_mlir.text.dominators import dominator_children

Graph = Mapping[str, Sequence[str]]


def tree(graph: Graph) -> dict[str, set[str]]:
    """Children by the name of their parent, the blocks made in the order of the graph, the first is the entry."""
    blocks = {name: Block() for name in graph}
    for name, successors in graph.items():
        blocks[name].add_op(TestTermOp(successors=[blocks[other] for other in successors]))
    names = {block: name for name, block in blocks.items()}
    found = dominator_children(Region(list(blocks.values())))
    assert all(len(set(children)) == len(children) for children in found.values())
    return {names[parent]: {names[child] for child in children} for parent, children in found.items()}


@pytest.mark.parametrize(
    ("graph", "children"),
    [
        ({"a": ""}, {}),
        ({"a": "b", "b": "c", "c": ""}, {"a": {"b"}, "b": {"c"}}),
        # Two ways meet again: neither dominates what follows.
        ({"a": "bc", "b": "d", "c": "d", "d": ""}, {"a": {"b", "c", "d"}}),
        ({"a": "cb", "b": "d", "c": "d", "d": ""}, {"a": {"b", "c", "d"}}),
        # A loop, with its header, its body and its exit.
        ({"a": "h", "h": "bx", "b": "h", "x": ""}, {"a": {"h"}, "h": {"b", "x"}}),
        # A block that goes to itself, and one that is gone to twice.
        ({"a": "bb", "b": "bc", "c": ""}, {"a": {"b"}, "b": {"c"}}),
        # Nothing leads to u, though u leads on.
        ({"a": "b", "u": "b", "b": ""}, {"a": {"b"}}),
        # Figure 2 of the paper, an irreducible graph: the entry dominates all others at once.
        ({"5": "43", "4": "1", "3": "2", "1": "2", "2": "1"}, {"5": {"4", "3", "2", "1"}}),
        # Figure 4 of the paper.
        ({"6": "54", "5": "1", "4": "23", "3": "2", "2": "13", "1": "2"}, {"6": {"5", "4", "3", "2", "1"}}),
        # A long way and a short cut that meet below a common block.
        ({"a": "b", "b": "ce", "c": "d", "d": "e", "e": ""}, {"a": {"b"}, "b": {"c", "e"}, "c": {"d"}}),
    ],
)
def test_children_of_every_block(graph: Graph, children: dict[str, set[str]]) -> None:
    assert tree(graph) == children


def test_children_stand_in_reverse_postorder() -> None:
    entry, left, right, last = (Block() for _ in range(4))
    entry.add_op(TestTermOp(successors=[left, right]))
    left.add_op(TestTermOp(successors=[last]))
    right.add_op(TestTermOp(successors=[last]))
    # The left way is finished first, with the last block in it; so the right one comes before it.
    assert dominator_children(Region([entry, left, right, last])) == {entry: [right, left, last]}


def test_a_region_without_blocks_has_no_tree() -> None:
    assert dominator_children(Region()) == {}


def test_a_block_may_be_empty_or_end_without_successors() -> None:
    assert dominator_children(Region([Block()])) == {}
    assert dominator_children(Region([Block([TestOp()])])) == {}
