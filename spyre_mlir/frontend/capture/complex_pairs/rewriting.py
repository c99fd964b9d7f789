"""A functional graph without complex numbers: each is a pair of real tensors, interleaved at the program's border.

Decision: docs/decisions/0144-complex-numbers-are-pairs.md
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from torch.export.graph_signature import OutputSpec, TensorArgument
from torch.fx import Node

from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.complex_pairs import arithmetic, fourier, functions, products
from spyre_mlir.frontend.capture.complex_pairs.arithmetic import Rule
from spyre_mlir.frontend.capture.complex_pairs.by_parts import by_parts, converted, is_by_parts, ones
from spyre_mlir.frontend.capture.complex_pairs.writer import REAL_TYPES, ComplexPair, ComplexParts, PartWriter
from spyre_mlir.frontend.capture.control_flow.kept import is_kept
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.capture.unsupported import COMPLEX_INSIDE, REAL, UnsupportedNode, is_complex_node, op_name
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import Operator, OpOverload, free_unbacked_symbols, tree_flatten

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
    affected = [node for node in live if is_complex_node(node) or _reads_complex(node)]
    if not affected:
        return program, []
    _drop_dead(program, set(live))
    walk = _Walk(program)
    for node in affected:
        walk.take(node)
    return (program if walk.refused else walk.finished()), walk.refused


def _drop_dead(program: FunctionalProgram, live: set[Node]) -> None:
    for node in reversed(list(program.graph.nodes)):
        if node.op == "call_function" and node not in live:
            program.graph.erase_node(node)


def _reads_complex(node: Node) -> bool:
    literal = any(isinstance(leaf, complex) for leaf in tree_flatten((list(node.args), dict(node.kwargs)))[0])
    return literal or any(map(is_complex_node, node.all_input_nodes))


class _Walk:
    """The nodes with complex values, in order, each replaced by calls on parts."""

    def __init__(self, program: FunctionalProgram) -> None:
        self._program, self._writer = program, PartWriter(program.graph)
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
            self._refuse(node, "complex numbers of a shape that depends on the data have no form", REAL)
        elif is_kept(node):
            self._refuse(node, COMPLEX_INSIDE, REAL)
        elif node.op == "placeholder":
            self._placeholder(node)
        elif node.target is operator.getitem:
            source, number = cast("tuple[Node, int]", node.args)
            self._set(node, self._pairs[source][number])
        else:
            self._writer.move(node)
            self._call(node)

    def _placeholder(self, node: Node) -> None:
        form: torch.Tensor = node.meta["val"].resolve_conj()
        graph = self._program.graph
        with graph.inserting_before(node):
            made = graph.create_node("placeholder", cast(Any, node.target))
        made.meta = node.meta | {"val": torch.view_as_real(form)}
        self._inputs.add(node.name)
        self._set(node, ComplexPair(form, whole=made))

    def _call(self, node: Node) -> None:
        given = {name: self._paired(argument.value) for name, argument in bind(node).items()}
        result = self._result(node, given)
        form = node.meta["val"]
        if result is None:
            self._refuse(node, f"it has no form for complex numbers ({_complex_dtype(node)})", REAL)
        elif isinstance(result, Node):
            self._replace(node, result)
        elif isinstance(result, list):
            self._set(node, [self._pair(parts, one) for parts, one in zip(result, form, strict=True)])
        else:
            self._set(node, result if isinstance(result, ComplexPair) else self._pair(result, form))

    def _refuse(self, node: Node, reason: str, hint: str) -> None:
        self.refused.append(UnsupportedNode(op_name(node), reason, place_of(node), hint))
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

    def finished(self) -> FunctionalProgram:
        """Return the program with real arguments and results."""
        graph, signature = self._program.graph, self._program.graph_signature
        output = graph.output_node()
        self._writer.move(output)
        values, interleaved = list[Any](), set[int]()
        for number, value in enumerate(cast("Any", output.args[0])):
            if isinstance(value, Node) and (pair := self._pairs.get(value)) is not None:
                interleaved.add(number)
                value = self._writer.whole(pair)  # noqa: PLW2901
            values.append(value)
        output.args = (tuple(values),)
        for node in reversed(self._replaced):
            graph.erase_node(node)
        for node in self._replaced:
            if node.op == "placeholder":
                self._pairs[node].whole.name = node.name
        signature.output_specs[:] = [
            OutputSpec(spec.kind, TensorArgument(value.name), spec.target) if isinstance(value, Node) else spec
            for value, spec in zip(values, signature.output_specs, strict=True)
        ]
        return replace(self._program, complex_inputs=frozenset(self._inputs), complex_outputs=frozenset(interleaved))


def _values(node: Node) -> list[Any]:
    """What torch has noted of a node and of what it reads."""
    return tree_flatten([node.meta.get("val"), *(read.meta.get("val") for read in node.all_input_nodes)])[0]


def _complex_dtype(node: Node) -> torch.dtype:
    values = _values(node)
    return next((v.dtype for v in values if isinstance(v, torch.Tensor) and v.dtype.is_complex), torch.complex64)
