"""Tensors that a branch or body makes of numbers of Python, as `torch.tensor([1.0, 2.0])`: constants of the program.

Torch lifts constants of the outermost graph alone. It keeps those of a graph within it as attributes, which no
decomposition follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, InputSpec, TensorArgument
from torch.fx import Graph, GraphModule, Node

from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.nested_graphs import graphs_of
from spyre_mlir.frontend.torch_private import HigherOrderOperator

# Where control flow has the operands that all its graphs are given behind everything else, by its name.
_LAST_OPERANDS = {"cond": 3, "while_loop": 3, "scan": 3, "map_impl": 2}
_NAME = "constant_of_body"


def with_lifted_constants(exported: ExportedProgram) -> ExportedProgram:
    """Return a program whose control flow is given the constants of its graphs; the program given stays as it is."""
    if not _constants_within(exported.graph):
        return exported
    changed = with_own_graph(exported)
    constants = _constants_within(changed.graph)
    _give(changed.graph, {key: _declared(changed, constant) for key, constant in constants.items()})
    for module in graphs_of(changed.graph_module):
        module.recompile()
    return changed


@dataclass(frozen=True)
class _Constant:
    """A tensor that is an attribute of a graph.

    Attributes:
        tensor: the tensor.
        val: what torch has noted of it.
    """

    tensor: torch.Tensor
    val: Any


_Constants = dict[int, _Constant]  # by the identity of the tensor


def _graphs(node: Node) -> list[GraphModule]:
    """The graphs of control flow."""
    target: object = node.target
    if not isinstance(target, HigherOrderOperator) or target.name() not in _LAST_OPERANDS:
        return []
    parts = (getattr(node.graph.owning_module, str(n.target)) for n in node.all_input_nodes if n.op == "get_attr")
    return [part for part in parts if isinstance(part, GraphModule)]


def _attributes(module: GraphModule) -> list[tuple[Node, torch.Tensor]]:
    named = ((n, getattr(module, str(n.target))) for n in module.graph.nodes if n.op == "get_attr")
    return [(node, value) for node, value in named if isinstance(value, torch.Tensor)]


def _constants_within(graph: Graph) -> _Constants:
    """The constants of all graphs in a graph."""
    return {key: constant for node in graph.nodes for key, constant in _constants_of(node).items()}


def _constants_of(call: Node) -> _Constants:
    """The constants of the graphs of control flow, and of those in them."""
    found = _Constants()
    for inner in _graphs(call):
        found |= {id(tensor): _Constant(tensor, node.meta["val"]) for node, tensor in _attributes(inner)}
        found |= _constants_within(inner.graph)
    return found


def _give(graph: Graph, given: Mapping[int, Node]) -> None:
    """Hand over constants to all control flow of a graph.

    Args:
        graph: the graph.
        given: what the constants are in it.
    """
    for call in graph.nodes:
        constants = _constants_of(call)
        if not constants:
            continue
        place = _LAST_OPERANDS[call.target.name()]
        operands = (*cast("Sequence[Any]", call.args[place]), *(given[key] for key in constants))
        call.args = (*call.args[:place], operands, *call.args[place + 1 :])
        for inner in _graphs(call):
            _give(inner.graph, _taken(inner, constants))


def _taken(module: GraphModule, constants: _Constants) -> dict[int, Node]:
    """Take constants as arguments behind those that a graph has, in the place of its attributes."""
    taken = dict[int, Node]()
    for key, constant in constants.items():
        taken[key] = _placeholder(module.graph, [*module.graph.find_nodes(op="placeholder")], constant)
    for node, tensor in _attributes(module):
        node.replace_all_uses_with(taken[id(tensor)])
        module.graph.erase_node(node)
        delattr(module, str(node.target))
    return taken


def _declared(exported: ExportedProgram, constant: _Constant) -> Node:
    """Make a constant one of the program, in front of what the user hands over."""
    specs, placeholders = exported.graph_signature.input_specs, [*exported.graph.find_nodes(op="placeholder")]
    first = next((n for n, spec in enumerate(specs) if spec.kind is InputKind.USER_INPUT), len(specs))
    made = _placeholder(exported.graph, placeholders[:first], constant)
    specs.insert(first, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name=made.name), made.name))
    exported.constants[made.name] = constant.tensor
    return made


def _placeholder(graph: Graph, behind: Sequence[Node], constant: _Constant) -> Node:
    place = graph.inserting_after(behind[-1]) if behind else graph.inserting_before(next(iter(graph.nodes)))
    with place:
        made = graph.placeholder(_NAME)
    made.target = made.name  # which is new in the graph
    made.meta["val"] = constant.val
    return made


__all__ = ["with_lifted_constants"]
