"""A functional graph without complex numbers: each is a pair of real tensors, interleaved at the program's border.

Decision: docs/decisions/0144-complex-numbers-are-pairs.md
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch.export.graph_signature import OutputSpec, TensorArgument
from torch.fx import Graph, GraphModule, Node

from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.complex_pairs import arithmetic, fourier, functions, products
from spyre_mlir.frontend.capture.complex_pairs.arithmetic import Rule
from spyre_mlir.frontend.capture.complex_pairs.by_parts import by_parts, converted, is_by_parts, ones
from spyre_mlir.frontend.capture.complex_pairs.host_calls import by_host
from spyre_mlir.frontend.capture.complex_pairs.writer import REAL_TYPES, ComplexPair, ComplexParts, PartWriter
from spyre_mlir.frontend.capture.control_flow.kept import graphs_of, is_kept, nodes_within, predicate_of
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.capture.liveness import find_aliases, live_nodes
from spyre_mlir.frontend.capture.unsupported import REAL, UnsupportedNode, is_complex_node, op_name
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import Operator, OpOverload, free_unbacked_symbols, schema_of, tree_flatten

_ATEN = torch.ops.aten
_RULES: dict[Any, Rule] = {**arithmetic.RULES, **functions.RULES, **products.RULES, **fourier.RULES}
_ONES = (_ATEN.ones_like.default, _ATEN.new_ones.default, _ATEN.ones.default)


def in_pairs(program: FunctionalProgram, live: Sequence[Node]) -> tuple[FunctionalProgram, list[UnsupportedNode]]:
    """Return a program without complex numbers, and the calls that have no form on pairs, in which case it is no use.

    A complex argument or result has a last dimension of two instead, as `torch.view_as_real` gives it.

    Args:
        program: the program, whose graph is changed.
        live: placeholders and the nodes that its results need, in order.
    """
    walk = _walked(program.graph, live, inner=False)
    if walk is None:
        return program, []
    return (program if walk.refused else walk.finished(program)), walk.refused


def _walked(graph: Graph, live: Sequence[Node], *, inner: bool) -> _Walk | None:
    """The walk over a graph, in which calls on parts stand for complex values; None if it has none."""
    affected = [node for node in live if _is_affected(node)]
    if not affected:
        return None
    needed = set(live)
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and node not in needed:
            graph.erase_node(node)
    walk = _Walk(graph, inner=inner)
    for node in affected:
        walk.take(node)
    return walk


def _is_affected(node: Node) -> bool:
    return (
        is_complex_node(node) or _reads_complex(node) or (is_kept(node) and any(map(_is_affected, nodes_within(node))))
    )


def _reads_complex(node: Node) -> bool:
    literal = any(isinstance(leaf, complex) for leaf in tree_flatten((list(node.args), dict(node.kwargs)))[0])
    return literal or any(map(is_complex_node, node.all_input_nodes))


class _Walk:
    """The nodes with complex values, in order, each replaced by calls on parts.

    Args:
        graph: which is changed.
        inner: whether it is a graph of control flow, whose arguments and results are parts.
    """

    def __init__(self, graph: Graph, *, inner: bool) -> None:
        self._graph, self._inner, self._writer = graph, inner, PartWriter(graph)
        self._pairs: dict[Node, Any] = {}
        self._replaced: list[Node] = []
        self._unknown: set[Node] = set()
        self._inputs: set[str] = set()
        self.refused: list[UnsupportedNode] = []

    def take(self, node: Node) -> None:
        """Replace one node."""
        if any(read in self._unknown for read in node.all_input_nodes):
            self._unknown.add(node)
        elif any(isinstance(v, (torch.Tensor, torch.SymInt)) and free_unbacked_symbols(v) for v in _values(node)):
            self._refuse(node, "complex numbers of a shape that depends on the data have no form")
        elif is_kept(node):
            self._control_flow(node)
        elif node.op == "placeholder":
            self._placeholder(node)
        elif node.target is operator.getitem and is_kept(cast(Node, node.args[0])):
            return  # its call has replaced it
        elif node.target is operator.getitem:
            self._item(node)
        else:
            self._writer.move(node)
            self._call(node)

    def _placeholder(self, node: Node) -> None:
        form: torch.Tensor = node.meta["val"].resolve_conj()
        if self._inner:
            made = (self._argument(node, f"{node.name}_{n}", part) for n, part in enumerate(_parts_of(form)))
            self._set(node, ComplexPair(form, ComplexParts(*made)))
            return
        self._inputs.add(node.name)
        self._set(node, ComplexPair(form, whole=self._argument(node, str(node.target), torch.view_as_real(form))))

    def _argument(self, node: Node, name: str, value: torch.Tensor) -> Node:
        with self._graph.inserting_before(node):
            made = self._graph.create_node("placeholder", name)
        made.meta = node.meta | {"val": value}
        return made

    def _control_flow(self, node: Node) -> None:
        """Rewrite the graphs of a node: each complex operand and result is two real ones."""
        refused = [finding for _, module in graphs_of(node) for finding in _without_complex(module)]
        if refused:
            self.refused += refused
            self._unknown.add(node)
            return
        self._writer.move(node)
        graphs = 2 if predicate_of(node) is None else 3
        lists = (tuple(self._flat(cast("Sequence[Any]", part))) for part in node.args[graphs:])
        node.args = (*node.args[:graphs], *lists)
        results = [_parts_of(value) for value in cast("tuple[Any, ...]", node.meta["val"])]
        node.meta["val"] = tuple(part for parts in results for part in parts)
        starts = [sum(map(len, results[:number])) for number in range(len(results))]
        for user in list(node.users):
            number = cast("tuple[Node, int]", user.args)[1]
            if is_complex_node(user):
                self._result_pair(user, starts[number])
            else:
                user.args = (node, starts[number])

    def _result_pair(self, item: Node, start: int) -> None:
        """Put two results of control flow in the place of a complex one."""
        call = cast(Node, item.args[0])
        self._writer.move(item)
        parts = (self._writer(operator.getitem, call, start + n) for n in (0, 1))
        self._set(item, ComplexPair(item.meta["val"].resolve_conj(), ComplexParts(*parts)))

    def _flat(self, values: Sequence[Any]) -> Iterator[Any]:
        """Values, two for each that is complex."""
        for value in values:
            pair = self._pairs.get(value) if isinstance(value, Node) else None
            yield from (value,) if pair is None else self._writer.parts(pair)

    def _call(self, node: Node) -> None:
        given = {name: self._paired(argument.value) for name, argument in bind(node).items()}
        result = self._result(node, given)
        form = node.meta["val"]
        if result is not None:
            self._stand_for(node, result, form)
        elif (made := by_host(self._writer, node, given)) is not None:
            self._by_host(node, made, form)
        else:
            self._refuse(node, f"it has no form for complex numbers ({_complex_dtype(node)})")

    def _stand_for(self, node: Node, result: ComplexPair | ComplexParts | Node | list[ComplexParts], form: Any) -> None:
        if isinstance(result, Node):
            self._replace(node, result)
        elif isinstance(result, list):
            self._set(node, [self._pair(parts, one) for parts, one in zip(result, form, strict=True)])
        else:
            self._set(node, result if isinstance(result, ComplexPair) else self._pair(result, form))

    def _by_host(self, node: Node, made: list[ComplexParts | Node], form: Any) -> None:
        """Put results of a call that the host makes in the place of the node and of those who take one of several."""
        if isinstance(form, torch.Tensor):
            (result,) = made
            self._stand_for(node, result, form)
            return
        self._set(node, [r if isinstance(r, Node) else self._pair(r, one) for r, one in zip(made, form, strict=True)])
        if not is_complex_node(node):
            for user in list(node.users):
                self._item(user)

    def _item(self, node: Node) -> None:
        """Put one of several results in the place of the node that takes it."""
        source, number = cast("tuple[Node, int]", node.args)
        result = self._pairs[source][number]
        if isinstance(result, Node):
            self._replace(node, result)
        else:
            self._set(node, result)

    def _refuse(self, node: Node, reason: str) -> None:
        self.refused.append(UnsupportedNode(op_name(node), reason, place_of(node), REAL))
        self._unknown.add(node)

    def _result(
        self, node: Node, given: dict[str, Any]
    ) -> ComplexPair | ComplexParts | Node | list[ComplexParts] | None:
        """What stands for a call; None if nothing can."""
        target: object = node.target
        if target is _ATEN.view_as_real.default:
            return self._as_real(node, given["self"])
        if target is _ATEN.view_as_complex.default:
            return ComplexPair(node.meta["val"], whole=given["self"])
        if target is _ATEN.sym_size.int:
            return self._size(given["self"], given["dim"])
        if target is _ATEN._to_copy.default:
            return converted(self._writer, given, node.meta["val"].dtype)
        if target in _ONES:
            return ones(self._writer, cast(Operator, target), given)
        if (rule := _RULES.get(target)) is not None:
            return rule(self._writer, given)
        mixed = any(isinstance(given.get(name), complex) for name in ("alpha", "weight"))
        if isinstance(target, OpOverload) and is_by_parts(cast(Operator, target)) and not mixed:
            return by_parts(self._writer, cast(Operator, target), given)
        return None

    def _size(self, pair: ComplexPair, dim: int) -> Node:
        """The extent of a dimension, counted from the first."""
        held = self._writer.parts(pair).re if pair.whole is None else pair.whole
        return self._writer(_ATEN.sym_size.int, held, dim)

    def _as_real(self, node: Node, pair: ComplexPair) -> Node:
        """Both parts side by side, but for those who select one of them, as `real` and `imag` do."""
        last = pair.form.dim()
        for user in list(node.users):
            if user.target is _ATEN.select.int and user.args[1] in (last, -1) and user.args[2] in (0, 1):
                self._replace(user, cast(Node, self._writer.parts(pair)[cast(int, user.args[2])]))
        return self._writer.whole(pair) if node.users else node

    def _pair(self, parts: ComplexParts, form: torch.Tensor) -> ComplexPair:
        """A pair in the shape and type that torch gives the value."""
        dtype = REAL_TYPES[form.dtype]
        fitted = (self._writer.node(part, form, dtype) if isinstance(part, Node) else part for part in parts)
        return ComplexPair(form, ComplexParts(*fitted))

    def _paired(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._paired(item) for item in cast("list[Any]", value)]
        return self._pairs.get(value, value) if isinstance(value, Node) else value

    def _set(self, node: Node, pair: Any) -> None:
        self._pairs[node] = pair
        self._replaced.append(node)

    def _replace(self, node: Node, made: Node) -> None:
        """Put a real result in the place of a call, with the name by which it is known."""
        if node is made:
            node.graph.erase_node(node)
            return
        name = node.name
        node.replace_all_uses_with(made)
        node.graph.erase_node(node)
        if made in self._writer.written:
            self._writer.written.discard(made)
            made.name = name

    def finished(self, program: FunctionalProgram) -> FunctionalProgram:
        """Return the program with real arguments and results."""
        signature, interleaved = program.graph_signature, set[int]()
        output = self._graph.output_node()
        self._writer.move(output)
        values = list(cast("Any", output.args[0]))
        for number, value in enumerate(values):
            if isinstance(value, Node) and (pair := self._pairs.get(value)) is not None:
                interleaved.add(number)
                values[number] = self._writer.whole(pair)
        output.args = (tuple(values),)
        self._erase()
        for node in self._replaced:
            if node.op == "placeholder":
                self._pairs[node].whole.name = node.name
        signature.output_specs[:] = [
            OutputSpec(spec.kind, TensorArgument(value.name), spec.target) if isinstance(value, Node) else spec
            for value, spec in zip(values, signature.output_specs, strict=True)
        ]
        return replace(program, complex_inputs=frozenset(self._inputs), complex_outputs=frozenset(interleaved))

    def finish_inner(self) -> None:
        """Give results in parts, each in memory of its own, as torch asks of branches and bodies."""
        output = self._graph.output_node()
        self._writer.move(output)
        parts = list(self._flat(tree_flatten(output.args[0])[0]))
        for number, part in enumerate(parts):
            if isinstance(part, Node) and (part in parts[:number] or not _is_new(part)):
                parts[number] = self._writer(_ATEN.clone.default, part)
        output.args = (tuple(parts),)
        self._erase()

    def _erase(self) -> None:
        for node in reversed(self._replaced):
            self._graph.erase_node(node)


def _without_complex(module: GraphModule) -> list[UnsupportedNode]:
    """Rewrite a graph of control flow, once; return the calls that have no form."""
    walk = _walked(module.graph, live_nodes(list(module.graph.nodes)), inner=True)
    if walk is None:
        return []
    if not walk.refused:
        walk.finish_inner()
        module.recompile()
    return walk.refused


def _is_new(node: Node) -> bool:
    """Return whether a value has memory of its own, which a result of control flow always has."""
    target = cast(object, node.target)
    if target is operator.getitem:
        return _is_new(cast(Node, node.args[0]))
    if not isinstance(target, OpOverload):
        return node.op == "call_function"
    returned = schema_of(cast(Operator, target)).returns
    return node not in find_aliases([node]) and all(result.alias_info is None for result in returned)


def _parts_of(value: Any) -> tuple[Any, ...]:
    """What torch would note of the parts of a complex tensor; another value as it is."""
    if not isinstance(value, torch.Tensor) or not value.is_complex():
        return (value,)
    part = torch.empty_like(value, dtype=REAL_TYPES[value.dtype])
    return part, part


def _values(node: Node) -> list[Any]:
    """What torch has noted of a node and of what it reads."""
    return tree_flatten([node.meta.get("val"), *(read.meta.get("val") for read in node.all_input_nodes)])[0]


def _complex_dtype(node: Node) -> torch.dtype:
    values = _values(node)
    return next((v.dtype for v in values if isinstance(v, torch.Tensor) and v.dtype.is_complex), torch.complex64)
