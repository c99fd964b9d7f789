"""Loops over slices that the program keeps: those of many slices, whose bodies have no effects but draws.

Decision: docs/decisions/0197-loops-over-slices-are-loops-of-the-bundle.md
"""

from __future__ import annotations

import operator
from typing import cast

import torch
from torch.fx import GraphModule, Node

from spyre_mlir.frontend.arguments import is_random, runs_unread
from spyre_mlir.frontend.capture.call_writer import value_of
from spyre_mlir.frontend.capture.control_flow.kept import calls_graphs, given_to_loop, nodes_within, operands_of
from spyre_mlir.frontend.symbolic.sizes import gives_number, torch_symbols
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of, tree_flatten
from spyre_mlir.ops.composed.nn.recurrent import MOST_UNROLLED


def number_of_slices(loop: Node) -> object:
    """Return how many slices a loop goes over: an integer, or a symbol."""
    _, slices, _ = given_to_loop(loop)
    return value_of(slices[0]).shape[0]


def stays_loop(loop: Node) -> bool:
    """Return whether a loop over slices is one of the program; others are unrolled.

    Its body, with all graphs that control flow in it calls, has operators of real numbers alone, none of which writes,
    checks or exchanges. Sizes in it may be symbols, if they are those of what the loop is given.
    """
    count, operands = number_of_slices(loop), operands_of(loop)[1]
    if type(count) is not int or count <= MOST_UNROLLED or not all(map(_is_given, operands)):
        return False
    known = set[str]().union(*(torch_symbols(value_of(operand)) for operand in operands))
    return all(_is_free(node) and torch_symbols(node.meta.get("val")) <= known for node in nodes_within(loop))


def _is_given(operand: object) -> bool:
    """Whether an operand is a tensor of real numbers, or a size that depends on symbols."""
    return isinstance(operand, Node) and (gives_number(operand) or _is_plain(operand))


def _is_plain(operand: object) -> bool:
    """Whether an operand is a tensor of real numbers."""
    value = value_of(operand) if isinstance(operand, Node) else None
    return isinstance(value, torch.Tensor) and not value.is_complex()


def _is_free(node: Node) -> bool:
    """Whether a node of a body can be a part of a function that runs once per slice."""
    if node.op == "get_attr":
        return isinstance(getattr(node.graph.owning_module, str(node.target), None), GraphModule)
    if node.op == "output":
        return all(map(_is_plain, tree_flatten(node.args[0])[0]))
    if node.op == "placeholder":
        return _is_given(node)
    if node.op != "call_function" or any(map(_is_complex, tree_flatten(node.meta.get("val"))[0])):
        return False
    target: object = node.target
    if target is operator.getitem or gives_number(node):
        return True
    if calls_graphs(node):
        return all(map(_is_free, nodes_within(node)))
    if not isinstance(target, OpOverload):
        return False
    if target.namespace not in ("aten", "prims") or schema_of(cast(Operator, target)).is_mutable:
        return False
    return is_random(node) or not runs_unread(node)


def _is_complex(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.is_complex()


__all__ = ["number_of_slices", "stays_loop"]
