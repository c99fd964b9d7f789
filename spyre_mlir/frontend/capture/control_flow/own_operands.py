"""Operands of `torch.cond`, `while_loop` and loops that share memory, as a tensor and its transpose: each gets its own.

Torch makes no graph functional that control flow hands two views of one tensor, or a tensor twice: a loop may carry
what its body reads, too.
"""

from __future__ import annotations

import operator
from functools import partial
from typing import cast

import torch
from torch.export import ExportedProgram
from torch.fx import Node

from spyre_mlir.frontend.capture.call_writer import CallWriter
from spyre_mlir.frontend.capture.control_flow.kept import calls_graphs, operands_of, set_operands
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import graphs_of
from spyre_mlir.frontend.symbolic.sizes import gives_number
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of


def with_own_operands(exported: ExportedProgram) -> ExportedProgram:
    """Return a program whose control flow is given no two views of one tensor; the program given stays as it is."""
    if not any(_shared(node) for module in graphs_of(exported.graph_module) for node in module.graph.nodes):
        return exported
    changed = with_own_graph(exported)
    for module in graphs_of(changed.graph_module):
        for node in list(module.graph.nodes):
            shared, write = _shared(node), CallWriter(node)
            if shared:
                clone = partial(write, torch.ops.aten.clone.default)
                operands = enumerate(operands_of(node)[1])
                set_operands(node, [clone(operand) if place in shared else operand for place, operand in operands])
        module.recompile()
    return changed


def _shared(node: Node) -> list[int]:
    """Places of operands of control flow in whose memory an earlier one lies."""
    if not calls_graphs(node):
        return []
    roots, shared = set[Node](), list[int]()
    for place, operand in enumerate(operands_of(node)[1]):
        if not isinstance(operand, Node) or gives_number(operand):  # pyright: ignore[reportUnnecessaryIsInstance]
            continue
        root = _root(operand)
        if root in roots:
            shared.append(place)
        roots.add(root)
    return shared


def _root(node: Node) -> Node:
    """The node whose memory a view is of."""
    while node.op == "call_function":
        source, target = next(iter(node.all_input_nodes), None), cast(object, node.target)
        if source is None or not (target is operator.getitem or _is_view(target)):
            break
        node = source
    return node


def _is_view(target: object) -> bool:
    if not isinstance(target, OpOverload):
        return False
    returned = schema_of(cast(Operator, target)).returns
    return bool(returned) and returned[0].alias_info is not None


__all__ = ["with_own_operands"]
