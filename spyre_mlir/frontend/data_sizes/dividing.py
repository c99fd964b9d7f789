"""Division of a program at the calls whose results have sizes that depend on data.

The host runs such a call, and with it knows the size. What stands between two of them is a program of its own, whose
arguments have that size as a symbol. Sizes, and checks of sizes, are computed where the call runs.

Decision: docs/decisions/0149-programs-are-divided-where-data-decides-sizes.md
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Graph, GraphModule, Node

from spyre_mlir.frontend.capture.control_flow.kept import is_kept
from spyre_mlir.frontend.capture.effects.checks import ASSERTIONS
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.data_sizes.branches import draws, makes_size
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.symbolic.sizes import Sizes

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_ASSERTION = torch.ops.aten._assert_scalar.default
_CHECKS = frozenset({_ASSERTION, *ASSERTIONS, HOST.printed.default})
_WRITES = frozenset({OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION, OutputKind.PARAMETER_MUTATION})


@dataclass(frozen=True)
class Piece:
    """Calls that run between two steps of the host: a program of its own.

    Attributes:
        module: the graph, with the weights that it reads.
        inputs: nodes of the whole program that are its arguments, tensors and numbers.
        outputs: nodes of the whole program that are its results, all tensors.
    """

    module: GraphModule
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]

    @property
    def of_inputs(self) -> bool:
        """True if all arguments are inputs of the whole program."""
        return all(node.op == "placeholder" for node in self.inputs)


@dataclass(frozen=True)
class SizingCall:
    """A call that the host runs with torch's operator: it makes a size, checks one, or draws random numbers.

    Control flow is one, too, if a size is made in a branch, or a body.
    """

    node: Node


@dataclass(frozen=True)
class DividedProgram:
    """A program in steps.

    Attributes:
        name: of the model.
        steps: in the order in which they run.
        tensors: weights and constants by their placeholders.
        inputs: placeholders of the model's inputs, in order; None for an input that is no tensor.
        results: what the model gives: nodes, or values.
        writes: placeholders of inputs and buffers, each with the node of what it holds behind a call.
        call_spec: nesting of inputs and results, as torch notes it.
        sizes: symbols of the inputs.
        guards: conditions on them.
        assumed: conditions on sizes that data decides, which the trace takes for granted and a step checks.
    """

    name: str
    steps: tuple[Piece | SizingCall, ...]
    tensors: Mapping[Node, torch.Tensor]
    inputs: tuple[Node, ...]
    results: tuple[object, ...]
    writes: tuple[tuple[Node, Node], ...]
    call_spec: Any
    sizes: Sizes
    guards: tuple[str, ...]
    assumed: frozenset[str]


def is_number(node: Node) -> bool:
    """Return whether a node gives a number or a truth value of Python, such as a size."""
    return isinstance(node.meta.get("val"), (*_SYMBOLS, int, float, bool))


def divided(
    name: str,
    program: FunctionalProgram,
    sizes: Sizes,
    guards: Sequence[str] = (),
    assumed: frozenset[str] = frozenset(),
) -> DividedProgram:
    """Divide a program at the calls that make sizes.

    Args:
        name: of the model.
        program: the functional program.
        sizes: symbols of its inputs.
        guards: conditions on them.
        assumed: conditions on sizes that data decides, which the trace takes for granted.
    """
    tensors, inputs = _placeholders(program)
    (output,) = program.graph.find_nodes(op="output")
    given = tuple(cast("tuple[object, ...]", output.args[0]))
    writes = tuple(_writes(program, given))
    read = {n for n in given if isinstance(n, Node)}
    # A tensor that calls write to is an argument of the pieces: a weight of theirs would be laid out anew each time.
    own = {node: tensor for node, tensor in tensors.items() if all(node is not written for written, _ in writes)}
    steps = tuple(_Division(program, own, read).steps())
    return DividedProgram(
        name, steps, tensors, inputs, given[len(writes) :], writes, program.call_spec, sizes, tuple(guards), assumed
    )


def _writes(program: FunctionalProgram, given: tuple[object, ...]) -> Iterator[tuple[Node, Node]]:
    """What a call leaves in inputs and buffers; the results that say it come first."""
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    held = {
        spec.target: nodes[spec.arg.name] for spec in program.graph_signature.input_specs if spec.target is not None
    }
    for spec, value in zip(program.graph_signature.output_specs, given, strict=True):
        if spec.kind in _WRITES:
            target = cast(str, spec.target)
            yield nodes[target] if spec.kind is OutputKind.USER_INPUT_MUTATION else held[target], cast(Node, value)


def _placeholders(program: FunctionalProgram) -> tuple[dict[Node, torch.Tensor], tuple[Node, ...]]:
    """Weights and constants by their placeholders, and the placeholders of inputs."""
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    tensors, inputs = dict[Node, torch.Tensor](), list[Node]()
    for spec in program.graph_signature.input_specs:
        node = nodes[spec.arg.name]
        if spec.kind is InputKind.USER_INPUT:
            inputs.append(node)
            continue
        name = cast(str, spec.target)
        value = program.state_dict[name] if name in program.state_dict else program.constants[name]
        tensors[node] = cast(torch.Tensor, value)
    return tensors, tuple(inputs)


@dataclass
class _Division:
    """Walks a graph once; `_open` are the calls of the piece that is being collected."""

    program: FunctionalProgram
    tensors: Mapping[Node, torch.Tensor]
    results: set[Node]
    _open: list[Node] = field(default_factory=list[Node])
    _checks: list[Node] = field(default_factory=list[Node])

    def steps(self) -> Iterator[Piece | SizingCall]:
        """The steps, in order."""
        for node in _with_their_items(self.program.graph):
            if node.target in _CHECKS:
                self._checks.append(node)
            elif makes_size(node):
                yield from self._close()
                yield SizingCall(node)
            elif draws(node) and not is_kept(node):
                # One that reads no tensor may go before the piece that is being collected, unless that draws, too.
                if any(map(_is_tensor, node.all_input_nodes)) or any(map(draws, self._open)):
                    yield from self._close()
                yield SizingCall(node)
            elif not is_number(node) and not _is_item_of_size(node):
                self._open.append(node)
        yield from self._close()

    def _close(self) -> Iterator[Piece | SizingCall]:
        nodes, self._open = self._open, []
        checks, self._checks = self._checks, []
        own = set(nodes)
        read = (n for n in nodes if _is_tensor(n) and self._is_read(n, own))
        outputs = tuple(n for n in read if n in self.results or not _is_expanded(n))
        behind = [check for check in checks if check.target is not _ASSERTION or _follows(check, own)]
        yield from (SizingCall(check) for check in checks if check not in behind)  # a piece may not stand for the size
        if outputs:
            yield _piece(nodes, outputs, self.tensors)
        yield from map(SizingCall, behind)

    def _is_read(self, node: Node, own: set[Node]) -> bool:
        if node in self.results or any(user not in own and user.op != "output" for user in node.users):
            return True
        return any(_is_expanded(user) and user in own and self._is_read(user, own) for user in node.users)


def _follows(number: Node, calls: set[Node]) -> bool:
    """Return whether a number, or a check of one, follows from one of some calls; tensors before them are there."""
    sources = number.all_input_nodes
    return any(source in calls or (is_number(source) and _follows(source, calls)) for source in sources)


def _with_their_items(graph: Graph) -> list[Node]:
    """The calls of a graph in order, items of a call's results behind the call."""
    ordered = list[Node]()
    for node in graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            ordered += [node, *_items(node)]
    return ordered


def _items(node: Node) -> Iterator[Node]:
    for user in node.users:
        if user.target is operator.getitem:
            yield user
            yield from _items(user)


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _is_expanded(node: Node) -> bool:
    """Return whether a tensor repeats another one: who reads it repeats it, and knows what is alike."""
    return node.target is torch.ops.aten.expand.default


def _is_item_of_size(node: Node) -> bool:
    """Return whether a node is one of several results of a call that the host runs."""
    while node.target is operator.getitem:
        node = cast(Node, node.args[0])
        if makes_size(node):
            return True
    return False


def _piece(nodes: Sequence[Node], outputs: tuple[Node, ...], tensors: Mapping[Node, torch.Tensor]) -> Piece:
    """The graph of some calls; sizes that they need are asked from its own arguments."""
    writer = _PieceWriter(tensors)
    for node in _needed(nodes, outputs):
        writer.copy(node)
    writer.graph.output(tuple(writer.made[n] for n in outputs))
    return Piece(GraphModule(writer.root, writer.graph), tuple(writer.inputs), outputs)


def _needed(nodes: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    wanted, own = set(outputs), set(nodes)
    for node in reversed(nodes):
        if node in wanted:
            wanted |= own & set(node.all_input_nodes)
    return [n for n in nodes if n in wanted]


class _PieceWriter:
    """Copies nodes to a graph of their own; what they read from outside becomes an argument, or an attribute."""

    def __init__(self, tensors: Mapping[Node, torch.Tensor]) -> None:
        self.graph, self.root = Graph(), torch.nn.Module()
        self.made: dict[Node, Node] = {}
        self.inputs: list[Node] = []
        self._tensors = tensors

    def copy(self, node: Node) -> Node:
        """Copy a call, and first what it reads."""
        for source in node.all_input_nodes:
            if source not in self.made:
                self.made[source] = self._from_outside(source)
        made = self.graph.node_copy(node, lambda source: self.made[source])
        self.made[node] = made
        return made

    def _from_outside(self, node: Node) -> Node:
        if node.op == "get_attr":
            return self._at_start(lambda: self._graph_of_branch(node), node)
        if node in self._tensors:
            name = f"{node.name}_of_model"
            value = self._tensors[node]
            if isinstance(value, torch.nn.Parameter):
                self.root.register_parameter(name, value)
            else:
                self.root.register_buffer(name, value)
            return self._at_start(lambda: self.graph.get_attr(name), node)
        if (is_number(node) and node.op == "call_function" and not makes_size(node)) or _is_expanded(node):
            return self.copy(node)
        self.inputs.append(node)
        return self._at_start(lambda: self.graph.placeholder(node.name), node)

    def _graph_of_branch(self, node: Node) -> Node:
        """Take over a graph that control flow calls."""
        name = str(node.target)
        self.root.add_module(name, cast(GraphModule, getattr(node.graph.owning_module, name)))
        return self.graph.get_attr(name)

    def _at_start(self, make: Any, like: Node) -> Node:
        """Make an argument, which stands before all calls and behind the other arguments."""
        calls = (n for n in self.graph.nodes if n.op == "call_function")
        first = next(calls, None)
        with self.graph.inserting_before(first) if first is not None else self.graph.inserting_after():
            made = cast(Node, make())
        made.meta = dict(like.meta)
        return made


def evaluated(node: Node, known: dict[Node, Any]) -> Any:
    """Return the value of a node of the whole program: what steps gave, and numbers that follow from it."""
    if node.op == "get_attr":
        return getattr(node.graph.owning_module, str(node.target))
    if node not in known:
        arguments, keywords = _resolved(node.args, known), _resolved(node.kwargs, known)
        known[node] = cast(Any, node.target)(*arguments, **keywords)
    return known[node]


def _resolved(argument: Any, known: dict[Node, Any]) -> Any:
    if isinstance(argument, Node):
        return evaluated(argument, known)
    if isinstance(argument, tuple):
        return tuple(_resolved(a, known) for a in cast("tuple[Any, ...]", argument))
    if isinstance(argument, list):
        return [_resolved(a, known) for a in cast("list[Any]", argument)]
    if isinstance(argument, dict):
        return {name: _resolved(a, known) for name, a in cast("dict[str, Any]", argument).items()}
    return argument
