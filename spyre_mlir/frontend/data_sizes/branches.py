"""Control flow beside sizes that data decides: which of it a part of the program has, and which the host runs whole.

Decision: docs/decisions/0149-programs-are-divided-where-data-decides-sizes.md
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import Graph, GraphModule, Node

from spyre_mlir.frontend.arguments import is_random
from spyre_mlir.frontend.capture.control_flow.kept import calls_graphs, graphs_of, is_kept, nodes_within, predicate_of
from spyre_mlir.frontend.symbolic.sizes import is_symbolic_node
from spyre_mlir.frontend.torch_private import OpOverload, free_unbacked_symbols, tree_flatten

_check = cast(Any, torch)._check


def makes_size(node: Node) -> bool:
    """Return whether only the data says the size or value of a result of a call, or of a call in a branch of it."""
    if is_kept(node):
        return any(map(makes_size, nodes_within(node))) or not _keeps_sizes(node)
    return bool(node.meta.get("unbacked_bindings")) or _makes_known_size(node)


def _makes_known_size(node: Node) -> bool:
    """Return whether a call makes a size that a call before it has made of the same mask, which torch remembers."""
    target: Any = node.target
    if target is torch.ops.aten.bincount.default:  # of a length that is checked: a piece by itself would not know it
        return True
    if not isinstance(target, OpOverload) or torch.Tag.dynamic_output_shape not in cast(Any, target).tags:
        return False
    return not _symbols(node) <= {symbol for given in node.all_input_nodes for symbol in _symbols(given)}


def _symbols(node: Node) -> set[object]:
    """The symbols that data decides in the shape of a value."""
    value: Any = node.meta.get("val")
    return set(free_unbacked_symbols(value))


def has_own_sizes(exported: ExportedProgram) -> bool:
    """Return whether parts of a program have to be compiled for the sizes of a call.

    Data decides sizes in it, or it has control flow and symbols.
    """
    nodes = exported.graph.nodes
    if any(map(makes_size, nodes)):
        return True
    return any(map(is_symbolic_node, nodes)) and any(map(calls_graphs, nodes))


def _keeps_sizes(node: Node) -> bool:
    """Return whether both branches give the same sizes, or a body the sizes that it is given.

    Torch gives the results new symbols if there are symbols in them.
    """
    (_, first), (_, second) = graphs_of(node)
    given = second.graph.find_nodes(op="placeholder") if predicate_of(node) is None else _results(first)
    return all(_sizes(a) == _sizes(b) for a, b in zip(given, _results(second), strict=False))


def note_sizes_of_branches(graph: Graph) -> None:
    """Note that results of branches are as long as both branches say: torch gives them new symbols."""
    for node in graph.nodes:
        if not is_kept(node) or predicate_of(node) is None or makes_size(node):
            continue
        (_, first), _ = graphs_of(node)
        for given, made in zip(node.meta["val"], _results(first), strict=True):
            known = made.meta.get("val") if isinstance(made, Node) else None
            if isinstance(given, torch.Tensor) and isinstance(known, torch.Tensor):
                for size, other in zip(given.shape, known.shape, strict=True):
                    if isinstance(size, torch.SymInt):
                        _check(size == other)


def _results(graph: GraphModule) -> list[Any]:
    (output,) = graph.graph.find_nodes(op="output")
    return list(tree_flatten(output.args[0])[0])


def _sizes(value: object) -> str:
    known = value.meta.get("val") if isinstance(value, Node) else value
    return str(tuple(known.shape)) if isinstance(known, torch.Tensor) else ""


def draws(node: Node) -> bool:
    """Return whether a call draws random numbers, in a branch or by itself."""
    if is_kept(node):
        return any(map(draws, nodes_within(node)))
    return node.op == "call_function" and isinstance(node.target, OpOverload) and is_random(node)


__all__ = ["draws", "has_own_sizes", "makes_size", "note_sizes_of_branches"]
