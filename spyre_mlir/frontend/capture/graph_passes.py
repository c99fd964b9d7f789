"""Passes of plugins on the graph of a model: run, and what they leave undone done."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from spyre_mlir.errors import RegistrationError
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import FakeTensorMode
from spyre_mlir.ops.call_info import MISTAKES, Registered
from spyre_mlir.plugins.graph_passes import GraphHook, graph_passes_at


def passed_export(exported: ExportedProgram) -> ExportedProgram:
    """Return an exported program as the passes at ``exported`` leave it; the program given stays as it is.

    Raises:
        RegistrationError: a pass fails, or leaves a graph that is none.
    """
    passes = graph_passes_at(GraphHook.EXPORTED)
    if not passes:
        return exported
    changed = with_own_graph(exported)
    _run(passes, changed.graph, changed.graph_signature)
    changed.graph_module.recompile()
    return changed


def with_own_graph(exported: ExportedProgram) -> ExportedProgram:
    """Return a copy of an exported program with the same tensors, whose graph may be changed."""
    tensors = [*exported.state_dict.values(), *exported.constants.values()]
    with torch_noise_hidden():
        copied = deepcopy(exported, {id(tensor): tensor for tensor in tensors})
    for old, new in zip(exported.graph.nodes, copied.graph.nodes, strict=True):
        new.name = old.name  # a copy renames what Python has a function for, as `input`
    return copied


def passed_functional(program: FunctionalProgram) -> FunctionalProgram:
    """Return a functional program as the passes at ``decomposed`` leave it.

    Raises:
        RegistrationError: a pass fails, or leaves a graph that is none.
    """
    _run(graph_passes_at(GraphHook.DECOMPOSED), program.graph, program.graph_signature)
    return program


def _run(passes: Iterable[Registered], graph: Graph, signature: ExportGraphSignature) -> None:
    for registered in passes:
        before = [node.name for node in _results(graph)]
        registered(graph)
        with registered.blamed():
            _complete(graph, registered.owner)
            results = _results(graph)
            if len(results) != len(before):
                raise ValueError(f"the graph had {len(before)} results, and has {len(results)}")
        for old, new in zip(before, results, strict=True):
            if old != new.name:
                signature.replace_all_uses(old, new.name)


def _results(graph: Graph) -> list[Node]:
    (output,) = (node for node in graph.nodes if node.op == "output")
    return [n for n in cast("Iterable[object]", output.args[0]) if isinstance(n, Node)]


def _complete(graph: Graph, owner: str) -> None:
    """Give new nodes what import reads of a node: what their result looks like, and a place in the model.

    Raises:
        RegistrationError: the graph is not well formed, or a new node cannot be computed.
    """
    graph.lint()
    for node in graph.nodes:
        if node.op != "call_function" or "val" in node.meta:
            continue
        readers = [n for n in node.all_input_nodes if "stack_trace" in n.meta or "nn_module_stack" in n.meta]
        for key in ("stack_trace", "nn_module_stack"):
            found = next((n.meta[key] for n in readers if key in n.meta), None)
            if found is not None:
                node.meta.setdefault(key, found)
        try:
            node.meta["val"] = _computed(node)
        except MISTAKES as error:
            raise RegistrationError(
                f"{owner} adds a call of {node.target} that torch refuses: {str(error).partition(chr(10))[0]}",
                where=place_of(node),
            ) from error


def _computed(node: Node) -> Any:
    """What the result of a new node looks like, as fake tensors."""
    args, kwargs = cast("tuple[tuple[Any, ...], dict[str, Any]]", map_arg((node.args, dict(node.kwargs)), _value))
    if node.target is operator.getitem:
        return operator.getitem(*args)
    modes = [v.fake_mode for v in map(_value, node.all_input_nodes) if hasattr(v, "fake_mode")]
    with modes[0] if modes else FakeTensorMode(), torch.no_grad():
        return cast(Any, node.target)(*args, **kwargs)


def _value(node: Node) -> Any:
    return node.meta["val"]
