"""Branches where padding needs masks: both are computed, and the truth value selects.

Masks are put into one graph. A branch is pure where it neither draws nor checks: what the branch that is not taken
gives, no number of it is read.

Decision: docs/decisions/0233-both-branches-are-computed-where-padding-has-masks.md
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, cast

import torch
from torch.fx import Graph, GraphModule, Node

from spyre_mlir.frontend.capture.control_flow.kept import is_kept, operands_of, predicate_of
from spyre_mlir.frontend.data_sizes.branches import draws
from spyre_mlir.frontend.data_sizes.dividing import is_number
from spyre_mlir.frontend.torch_private import Operator, OpOverload, expression_of, schema_of

_ASSERTION = torch.ops.aten._assert_scalar.default
_WHERE = torch.ops.aten.where.self


def inline_branches(graph: Graph, owner: torch.nn.Module) -> bool:
    """Compute both branches in the place of each `torch.cond` that allows it, those in branches too.

    Args:
        graph: is changed.
        owner: has the graphs of the branches.

    Returns:
        Whether there are some.
    """
    found = False
    while (node := next(_inlined(graph, owner), None)) is not None:
        _inline(node, owner)
        found = True
    return found


def _inlined(graph: Graph, owner: torch.nn.Module) -> Iterator[Node]:
    """Each call whose branches may both be computed."""
    for node in graph.nodes:
        if not is_kept(node) or not isinstance(predicate_of(node), Node) or is_number(predicate_of(node)):
            continue
        if all(map(_is_pure, _branches(node, owner))):
            yield node


def _branches(node: Node, owner: torch.nn.Module) -> list[GraphModule]:
    return [cast(GraphModule, getattr(owner, str(cast(Node, part).target))) for part in node.args[1:3]]


def _is_pure(branch: GraphModule) -> bool:
    calls = [n for n in branch.graph.nodes if n.op == "call_function"]
    return not any(map(draws, calls)) and all(_writes_nothing(n) or _says_nothing(n) for n in calls)


def _says_nothing(check: Node) -> bool:
    """Return whether a check holds for all sizes of 2 and more, as those that torch writes into branches do.

    For smaller ones, the part runs with its branches before its program is taken.
    """
    condition = check.args[0] if check.args else None
    value = condition.meta.get("val") if isinstance(condition, Node) else None
    if check.target is not _ASSERTION or not isinstance(value, torch.SymBool):
        return False
    said = expression_of(value)
    margin = {">=": 0, ">": 1}.get(str(getattr(said, "rel_op", "")))
    if margin is None:
        return False
    above = {s: type(s)(f"{s}_above", integer=True, nonnegative=True) + 2 for s in said.free_symbols}
    return bool((said.lhs - said.rhs - margin).subs(above).expand().is_nonnegative)


def _writes_nothing(node: Node) -> bool:
    """Return whether a call only gives a result."""
    target = cast(object, node.target)
    if not isinstance(target, OpOverload):
        return True
    schema = schema_of(cast(Operator, target))
    return not schema.is_mutable and bool(schema.returns)


def _inline(node: Node, owner: torch.nn.Module) -> None:
    predicate, given = operands_of(node)
    yes, no = (_written(node, branch, given, owner) for branch in _branches(node, owner))
    with node.graph.inserting_before(node):
        for reader in list(node.users):
            assert reader.target is operator.getitem
            place = cast(int, reader.args[1])
            made = node.graph.call_function(_WHERE, (predicate, yes[place], no[place]))
            made.meta = dict(reader.meta)
            reader.replace_all_uses_with(made)
            node.graph.erase_node(reader)
    parts = [cast(Node, part) for part in node.args[1:3]]
    node.graph.erase_node(node)
    for part in parts:
        if not part.users:
            part.graph.erase_node(part)


def _written(node: Node, branch: GraphModule, given: list[Node], owner: torch.nn.Module) -> list[Node]:
    """Write the calls of a branch in front of a call; what the branch gives."""
    copied = dict(zip(branch.graph.find_nodes(op="placeholder"), given, strict=True))
    for inner in branch.graph.nodes:
        if inner.op == "placeholder" or inner.target is _ASSERTION:
            continue
        if inner.op == "output":
            return [copied[cast(Node, result)] for result in cast("tuple[Any, ...]", inner.args[0])]
        with node.graph.inserting_before(node):
            made = node.graph.node_copy(inner, lambda source: copied[source])
        if inner.op == "get_attr":  # a graph in it, or a constant
            made.target = _taken_over(owner, branch, str(inner.target))
        copied[inner] = made
    return []


def _taken_over(owner: torch.nn.Module, branch: GraphModule, name: str) -> str:
    """A name of the owner for an attribute of a branch."""
    value = getattr(branch, name)
    own = f"{name}_of_branch"
    while hasattr(owner, own) and getattr(owner, own) is not value:
        own += "_"
    setattr(owner, own, value)
    return own


__all__ = ["inline_branches"]
