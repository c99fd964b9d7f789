"""A program's graph in functional form, call by call: each form of a call is traced once and copied to where it occurs.

Values, not memory: a write to a tensor makes a new value, which later readers get. What cannot be followed like that is
`Unfollowed`: writes that show in other tensors, symbols, and operations on graphs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from spyre_mlir.frontend.arguments import runs_unread, walks
from spyre_mlir.frontend.capture.call_form import CallForm, OffsetsMatter
from spyre_mlir.frontend.capture.nested_graphs import FlatGraph
from spyre_mlir.frontend.capture.operator_tracing import Tables, TensorForm, Trace, TracedCall, trace_calls
from spyre_mlir.frontend.capture.value_memory import Unfollowed, ValueMemory
from spyre_mlir.frontend.hints import place_and_hint
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of, storage_identity

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
_WRITTEN = {
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


@dataclass(frozen=True)
class FunctionalProgram:
    """A functional graph, and what an exported program says about it besides.

    Attributes:
        complex_inputs: names of placeholders whose last dimension of two stands for complex numbers.
        complex_outputs: the same for outputs, by number.
    """

    graph: Graph
    graph_signature: ExportGraphSignature
    state_dict: Mapping[str, Any]
    constants: Mapping[str, Any]
    call_spec: Any
    complex_inputs: frozenset[str] = frozenset()
    complex_outputs: frozenset[int] = frozenset()

    @classmethod
    def of(cls, exported: ExportedProgram) -> FunctionalProgram:
        """Return an exported program whose graph is functional already."""
        return cls(
            exported.graph, exported.graph_signature, exported.state_dict, exported.constants, exported.call_spec
        )


def functional_program(
    exported: ExportedProgram, tables: Tables, stays: Callable[[Operator], bool]
) -> FunctionalProgram:
    """Bring an exported program to functional form.

    Args:
        exported: the program.
        tables: decompositions, and the calls that they took apart before.
        stays: whether an operator is left as it is.

    Raises:
        Unfollowed: torch has to follow the graph as a whole.
    """
    flat = FlatGraph.of(exported.graph_module)
    if any(_is_symbolic(node) for node in flat.nodes):
        raise Unfollowed("symbols")
    for offsets in (False, True):
        walk = _Walk(exported, flat, tables, stays, offsets)
        try:
            if not walk.run(None):
                trace_calls(tables, walk.resume)
            return walk.program()
        except OffsetsMatter:
            continue
    raise Unfollowed("walks")


def _is_symbolic(node: Node) -> bool:
    value = node.meta.get("val")
    if node.op == "placeholder" and isinstance(value, torch.Tensor):
        return any(isinstance(extent, torch.SymInt) for extent in value.shape)
    return isinstance(value, _SYMBOLS) or "unbacked_bindings" in node.meta


class _Walk:
    """One pass over an exported graph, which stops at a call that has to be traced first, and goes on with a trace."""

    def __init__(
        self,
        exported: ExportedProgram,
        flat: FlatGraph,
        tables: Tables,
        stays: Callable[[Operator], bool],
        offsets: bool,
    ) -> None:
        self._exported, self._flat, self._tables, self._stays, self._offsets = exported, flat, tables, stays, offsets
        self._graph = Graph()
        self._nodes = flat.nodes
        self._order = {node: number for number, node in enumerate(self._nodes)}
        self._order |= {call: self._order[output] for output, call in flat.calls.items()}
        self._at = 0
        self._values: dict[Node, Any] = {}
        self._forms: dict[Node, TensorForm] = {}  # of the values
        self._old_forms: dict[Node, TensorForm] = {}
        self._memory = ValueMemory(lambda holder: any(self._order[user] > self._at for user in holder.users))

    def run(self, trace: Trace | None) -> bool:
        """Go on; return False at a call that has to be traced, if there is nothing to trace it with."""
        while self._at < len(self._nodes):
            node = self._nodes[self._at]
            if node in self._flat.given:
                self._set(node, map_arg_to(self._values, self._flat.given[node]))
            elif node in self._flat.calls:
                self._set(self._flat.calls[node], [*map_arg_to(self._values, node.args[0])])
            elif node.op == "placeholder":
                self._placeholder(node)
            elif node.op == "call_function":
                if not self._call(node, trace):
                    return False
            elif node.op != "output":
                raise Unfollowed(node.op)
            self._at += 1
        return True

    def resume(self, trace: Trace) -> None:
        """Go on to the end."""
        self.run(trace)

    def _placeholder(self, node: Node) -> None:
        value = self._graph.create_node("placeholder", cast(Any, node.target), name=node.name)
        value.name = node.name  # also if Python has a function of this name
        value.meta = dict(node.meta)
        if isinstance(node.meta.get("val"), torch.Tensor):
            self._forms[value] = self._old_form(node)
        self._set(node, value)

    def _call(self, node: Node, trace: Trace | None) -> bool:
        """Take over a call; return False if it has to be traced, and there is nothing to trace it with."""
        target = cast(object, node.target)
        if target is operator.getitem:
            source, index = cast("tuple[Node, int]", node.args)
            self._set(node, self._values[source][index])
            return True
        if not isinstance(target, OpOverload):
            raise Unfollowed(str(target))
        called = cast(Operator, target)
        if self._stays(called) and isinstance(node.meta.get("val"), torch.Tensor) and self._reads_the_same(node):
            self._copy(node, called)
            return True
        form = CallForm(called, map_arg_to(self._values, node.args), map_arg_to(self._values, node.kwargs), self._forms)
        traced = self._tables.traced.get(form.key)
        if traced is None:
            if trace is None:
                return False
            traced = trace(called, form.args, form.kwargs, form.forms)
            self._tables.keep(form.key, traced)
        if traced.walks and not self._offsets:
            raise OffsetsMatter
        self._splice(node, traced, form.tensors)
        return True

    def _reads_the_same(self, node: Node) -> bool:
        """Return whether the tensors that a call reads have the forms they had at export."""
        for read in node.all_input_nodes:
            value = self._values[read]
            if not isinstance(value, Node) or self._forms.get(value) != self._old_form(read):
                return False
        if walks(node) and not self._offsets:
            raise OffsetsMatter
        return True

    def _copy(self, node: Node, called: Operator) -> None:
        """Take over a call as it is."""
        args, kwargs = map_arg_to(self._values, node.args), map_arg_to(self._values, node.kwargs)
        value = self._graph.create_node("call_function", called, args, kwargs, base_name(called))
        value.meta = {"val": node.meta["val"]} | place_and_hint(node)
        self._forms[value] = self._old_form(node)
        if any(result.alias_info is not None for result in schema_of(called).returns):
            self._memory.view(value, value.all_input_nodes[0])
        self._set(node, value)

    def _splice(self, node: Node, traced: TracedCall, tensors: Sequence[Node]) -> None:
        """Put what a call consists of in its place."""
        values = dict(zip(traced.inputs, tensors, strict=True))
        place = place_and_hint(node)
        for part in traced.nodes:
            args, kwargs = map_arg_to(values, part.args), map_arg_to(values, part.kwargs)
            value = self._graph.create_node("call_function", part.target, args, kwargs, traced.names[part])
            value.meta = part.meta | place
            values[part] = value
            if part in traced.forms:
                self._forms[value] = traced.forms[part]
        for part, of in traced.views.items():
            self._memory.view(values[part], values[of])
        self._set(node, _of_results(traced.results, values))
        for number, part in traced.written.items():
            self._write(tensors, number, values[part])

    def _write(self, tensors: Sequence[Node], number: int, value: Node) -> None:
        """Give those that have a written tensor its new value."""
        old = tensors[number]
        if sum(self._memory.whole(tensor) is self._memory.whole(old) for tensor in tensors) > 1:
            raise Unfollowed("a write to what else is read")
        for holder in self._memory.written(old):
            if self._values[holder] is not old:
                raise Unfollowed("a write to one result of several")
            self._set(holder, value)

    def _set(self, node: Node, value: Any) -> None:
        self._values[node] = value
        for one in cast("list[object]", value) if isinstance(value, list) else [value]:
            if isinstance(one, Node):
                self._memory.hold(node, one)

    def _old_form(self, node: Node) -> TensorForm:
        form = self._old_forms.get(node)
        if form is None:
            value = node.meta.get("val")
            if not isinstance(value, torch.Tensor):
                raise Unfollowed(f"the value of {node.name}")
            form = self._old_forms[node] = TensorForm.of(value, offset=self._offsets)
        return form

    def program(self) -> FunctionalProgram:
        """Return the program with the graph that the pass made."""
        signature = self._exported.graph_signature
        by_name = {node.name: node for node in self._exported.graph.nodes if node.op == "placeholder"}
        results: list[tuple[Any, OutputSpec]] = []
        for spec in signature.input_specs:
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name in by_name:
                value = self._values[by_name[spec.arg.name]]
                if value.name != spec.arg.name:
                    self._check_apart(spec)
                    results.append((value, _written(spec, value)))
        returned = cast("Sequence[Any]", self._nodes[-1].args[0])
        for old, spec in zip(returned, signature.output_specs, strict=True):
            value = self._values[old] if isinstance(old, Node) else old
            results.append((value, _renamed(spec, value)))
        self._graph.output(tuple(value for value, _ in results))
        for node in reversed(list(self._graph.nodes)):
            if node.op == "call_function" and not node.users and not runs_unread(node):
                self._graph.erase_node(node)
        signature = ExportGraphSignature(list(signature.input_specs), [spec for _, spec in results])
        return replace(FunctionalProgram.of(self._exported), graph=self._graph, graph_signature=signature)

    def _check_apart(self, written: InputSpec) -> None:
        """Leaves to torch writes to tensors of the model that share memory with others."""
        tensors = {**self._exported.constants, **self._exported.state_dict}
        mine = tensors.get(written.target or "")
        others = [
            tensors.get(spec.target or "") for spec in self._exported.graph_signature.input_specs if spec is not written
        ]
        if isinstance(mine, torch.Tensor) and storage_identity(mine) in {
            storage_identity(other) for other in others if isinstance(other, torch.Tensor)
        }:
            raise Unfollowed("shared memory")


def map_arg_to(values: Mapping[Node, Any], arguments: Any) -> Any:
    """Return arguments with other nodes in them."""
    return map_arg(arguments, lambda node: values[node])


def base_name(called: Operator) -> str:
    """Return the name of a call before it is numbered, as in torch's own traces."""
    name = str(cast(Any, called).overloadpacket.__name__)
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name


def _of_results(results: Any, values: Mapping[Node, Node]) -> Any:
    """The results of a traced call as values; several are a list."""
    if isinstance(results, (list, tuple)):
        return [_of_results(result, values) for result in cast("Sequence[Any]", results)]
    return values[results] if isinstance(results, Node) else results


def _written(spec: InputSpec, value: Node) -> OutputSpec:
    if spec.kind not in _WRITTEN:
        raise Unfollowed(f"a write to {spec.kind.name}")
    target = spec.arg.name if spec.kind is InputKind.USER_INPUT else spec.target
    return OutputSpec(_WRITTEN[spec.kind], TensorArgument(value.name), target)


def _renamed(spec: OutputSpec, value: Any) -> OutputSpec:
    if isinstance(spec.arg, ConstantArgument):
        return spec
    if not isinstance(spec.arg, TensorArgument) or not isinstance(value, Node):
        raise Unfollowed(f"a result {spec.kind.name}")
    return OutputSpec(spec.kind, TensorArgument(value.name), spec.target)
