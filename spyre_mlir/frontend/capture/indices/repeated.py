"""Rows that are looked up for one sequence and then repeated, where indices are repeated before the look-up.

Models give the types of tokens, or positions, to each sequence of a batch before they look up rows of a table. A table
has the same rows for the same indices, so the rows of one sequence are enough; a card reads them for all.

Decision: docs/decisions/0170-known-gathers-are-made-at-load.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.capture.call_writer import CallWriter, replace_node
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram

_LOOK_UP, _REPEAT = torch.ops.aten.embedding.default, torch.ops.aten.expand.default


def with_repeated_rows(program: FunctionalProgram) -> FunctionalProgram:
    """Make look-ups of repeated indices repetitions of what is looked up, in place.

    Args:
        program: in functional form.
    """
    for node in list(program.graph.nodes):
        if node.target is not _LOOK_UP or not _is_repeated(index := cast(Node, node.args[1])):
            continue
        write, (few, sizes) = CallWriter(node), cast("tuple[Node, Sequence[Any]]", index.args[:2])
        rows = write(_LOOK_UP, node.args[0], few, *node.args[2:], **node.kwargs)
        made = write(_REPEAT, rows, [*sizes, -1])
        replace_node(node, made)
        if not index.users:
            program.graph.erase_node(index)
    return program


def _is_repeated(index: Node) -> bool:
    """Whether a tensor repeats the elements of another, which has fewer."""
    if index.target is not _REPEAT:
        return False
    few, many = (cast("Sequence[object]", n.meta["val"].shape) for n in (cast(Node, index.args[0]), index))
    added = len(many) - len(few)
    return added > 0 or any(_is_one(size) and not _is_one(whole) for size, whole in zip(few, many, strict=True))


def _is_one(size: object) -> bool:
    """Whether an extent is 1 for all sizes; asking a symbol would bind it."""
    return isinstance(size, int) and size == 1


__all__ = ["with_repeated_rows"]
