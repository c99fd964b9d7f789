"""Models that take derivatives inside: `torch.func.grad`, `vjp`, `jvp`, `jacrev`, `hessian`, `torch.autograd.grad`.

`torch.export` writes a derivative as a change of torch's state between calls, or loses it. So such a model is traced
by what its operators compute first, and the graph, in which a derivative is made of plain operators, is exported.

Decision: docs/decisions/0160-derivatives-are-traced-first.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Interpreter, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.arguments import is_random
from spyre_mlir.frontend.capture.operator_tracing import no_cpu_libraries
from spyre_mlir.frontend.capture.random_draws.differentiated import refusals_out_of_order
from spyre_mlir.frontend.capture.tracing.constant_values import ConstantValues
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import (
    OpOverload,
    TreeSpec,
    holders,
    is_differentiated,
    tree_flatten,
    tree_unflatten,
)

_Held = tuple[dict[str, torch.Tensor | None], str, torch.Tensor]  # where a module has a tensor, and the tensor
_ATEN = torch.ops.aten
_OF_AUTOGRAD = (torch.autograd.grad, torch.autograd.backward, cast(Any, torch.Tensor).backward)
# What a derivative begins with: it has the shape of a result, whose value may be of no use.
_FILLED = {_ATEN.ones_like.default: 1, _ATEN.zeros_like.default: 0}
# Calls in an exported graph that change torch's state; those of `vmap` alone are followed as they are.
_CHANGES = ("_unwrap_for_grad", "_make_dual", "_unpack_dual", "_jvp_increment_nesting", "_grad_increment_nesting")

_MAPS = "_vmap_increment_nesting"


def draws_when_mapped(graph_module: torch.nn.Module) -> bool:
    """Return whether random numbers are drawn in graphs of a module that map functions over tensors by `vmap`.

    A call there says the shape of one draw of many, and not whether all of them are the same.
    """
    return _first_mapped_draw(graph_module) is not None


def takes_derivatives(graph_module: torch.nn.Module) -> bool:
    """Return whether a derivative is taken in the graphs of a module, which may also be no graph at all."""
    return _first_change(graph_module) is not None


def check_no_derivative(exported: ExportedProgram) -> None:
    """Check a program that torch has exported before.

    Raises:
        UnsupportedError: it takes derivatives, or draws random numbers inside of `vmap`.
    """
    if (node := _first_mapped_draw(exported.graph_module)) is not None:
        raise UnsupportedError(
            f"{str(node.target).removesuffix('.default')} draws random numbers inside of vmap, of which the exported "
            "program says neither how many they are nor whether they are the same",
            where=place_of(node),
            hint="compile the module itself, compile(model, example inputs)",
        )
    if (node := _first_change(exported.graph_module)) is not None:
        raise UnsupportedError(
            "the exported program takes derivatives, which torch.export writes as changes of torch's state, or loses",
            where=place_of(node),
            hint="compile the module itself, compile(model, example inputs)",
        )


def _nodes(graph_module: torch.nn.Module) -> list[Node]:
    graphs = [m.graph for m in graph_module.modules() if isinstance(m, GraphModule)]
    return [node for graph in graphs for node in graph.nodes]


def _first_change(graph_module: torch.nn.Module) -> Node | None:
    return next((node for node in _nodes(graph_module) if getattr(node.target, "__name__", "") in _CHANGES), None)


def _first_mapped_draw(graph_module: torch.nn.Module) -> Node | None:
    nodes = _nodes(graph_module)
    if not any(getattr(node.target, "__name__", "") == _MAPS for node in nodes):
        return None
    calls = (node for node in nodes if node.op == "call_function" and isinstance(node.target, OpOverload))
    return next((node for node in calls if is_random(node)), None)


class DerivativeTakenError(Exception):
    """A model takes a derivative while it is exported; for the caller, which traces it in another way."""


class DerivativesSought(TorchFunctionMode):
    """Torch mode that breaks an export off where a derivative is taken."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Looks at one call; Dynamo, which reads the code of branches and bodies, has derivatives in its graph."""
        if torch.compiler.is_dynamo_compiling():
            return func(*args, **(kwargs or {}))
        tracked = any(isinstance(x, torch.Tensor) and is_differentiated(x) for x in args)
        if tracked or func in _OF_AUTOGRAD:
            raise DerivativeTakenError
        return func(*args, **(kwargs or {}))


@dataclass
class _Written:
    """A model with its derivatives written out.

    Attributes:
        graph: takes the model's tensors, then the leaves of a call.
        held: where modules have these tensors.
        own: the tensors, each once.
        results: the structure of the results.
    """

    graph: GraphModule
    held: list[_Held]
    own: list[torch.Tensor]
    results: TreeSpec


class Differentiated(torch.nn.Module):
    """A model with its derivatives written out: the same parameters and buffers, and a graph instead of its code."""

    def __init__(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Traces a model for example arguments.

        Raises:
            UnsupportedError: the model replaces a parameter or buffer, or leaves gradients in one.
        """
        super().__init__()
        # In the dictionary, as names of the model's modules and tensors may be any.
        shared = ("_parameters", "_buffers", "_non_persistent_buffers_set", "_modules", "training")
        self.__dict__ |= {name: model.__dict__[name] for name in shared}
        self.__dict__["_written"] = _written(model, args, kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on the parameters and buffers that the model has now."""
        written: _Written = self.__dict__["_written"]
        now = {value: holder[name] for holder, name, value in written.held}
        given, _ = tree_flatten((args, kwargs))
        with preserve_node_meta():  # places in the model are kept
            results = Interpreter(written.graph).run(*(now[value] for value in written.own), *given)
        return tree_unflatten(results, written.results)


def _written(model: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Written:
    places = [(holder, name, value) for holder in holders(model) for name, value in holder.items()]
    held = [(holder, name, value) for holder, name, value in places if value is not None]
    own = [*dict.fromkeys(value for _, _, value in held)]
    leaves, tree = tree_flatten((args, dict(kwargs)))
    trees: list[TreeSpec] = []

    def run(stand_ins: list[torch.Tensor], given: list[Any]) -> Any:
        new = dict(zip(own, stand_ins, strict=True))
        new_args, new_kwargs = tree_unflatten(given, tree)
        for holder, name, value in held:
            holder[name] = new[value]
        try:
            results = model(*new_args, **new_kwargs)
            _check_unchanged(type(model).__name__, held, new)
        finally:
            for holder, name, value in held:
                holder[name] = value
        flat, structure = tree_flatten(results)
        trees.append(structure)
        return flat

    trace = make_fx(
        run,
        decomposition_table=refusals_out_of_order(),
        tracing_mode="fake",
        _allow_non_fake_inputs=True,
        record_stack_traces=True,
    )
    # Attention and recurrent layers are in operators whose derivatives the compiler knows.
    attention = cast(AbstractContextManager[Any], sdpa_kernel(SDPBackend.MATH))
    with torch.enable_grad(), preserve_node_meta(), attention, no_cpu_libraries(), ConstantValues():
        graph = trace(own, leaves)
    _simplify(graph)
    return _Written(graph, held, own, trees[-1])


def _simplify(graph: GraphModule) -> None:
    """Make a graph independent of eager's strides, and of values that it reads for their shapes alone."""
    for node in graph.graph.find_nodes(op="call_function", target=_ATEN.view.default):
        node.target = _ATEN.reshape.default
    for like, number in _FILLED.items():
        for node in graph.graph.find_nodes(op="call_function", target=like):
            form: torch.Tensor = node.meta["val"]
            node.target, node.args = _ATEN.full.default, (tuple(form.shape), number)
            node.kwargs = {"dtype": form.dtype}
    graph.graph.eliminate_dead_code()
    graph.recompile()


def _check_unchanged(name: str, held: Sequence[_Held], new: Mapping[torch.Tensor, torch.Tensor]) -> None:
    for holder, attribute, value in held:
        if holder[attribute] is not new[value]:
            raise UnsupportedError(
                f"{name} replaces its tensor '{attribute}' in a call in which it takes derivatives",
                hint=f"write to it in place: self.{attribute}.copy_(…)",
            )
        if new[value].grad is not None:
            raise UnsupportedError(
                f"{name} calls backward(), which leaves gradients in '{attribute}'",
                hint="use torch.autograd.grad or torch.func.grad, whose result is a tensor",
            )


__all__ = [
    "DerivativeTakenError",
    "DerivativesSought",
    "Differentiated",
    "check_no_derivative",
    "draws_when_mapped",
    "takes_derivatives",
]
