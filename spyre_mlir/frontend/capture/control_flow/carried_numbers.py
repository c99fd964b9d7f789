"""Numbers of Python that `while_loop` carries and branches are given: integer tensors without dimensions instead.

Torch writes such a number as a symbol that data decides, and what is computed from it with functions of Python.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.call_writer import CallWriter, replace_node, value_of
from spyre_mlir.frontend.capture.control_flow.kept import graphs_of, is_kept, operands_of, predicate_of, set_operands
from spyre_mlir.frontend.capture.control_flow.numbered_places import explicit_writes, put, selected
from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.torch_private import (
    FakeTensorMode,
    Operator,
    OpOverload,
    expression_of,
    free_unbacked_symbols,
    schema_of,
    tree_flatten,
)

_ATEN = torch.ops.aten
_OPERATOR, _TORCH = cast(Any, operator), cast(Any, torch)
_READS = (_ATEN.item.default, _ATEN._local_scalar_dense.default)
_FUNCTIONS: dict[Any, Operator] = {
    operator.add: _ATEN.add.Tensor,
    operator.sub: _ATEN.sub.Tensor,
    operator.mul: _ATEN.mul.Tensor,
    operator.mod: _ATEN.remainder.Tensor,
    operator.neg: _ATEN.neg.default,
    operator.lt: _ATEN.lt.Tensor,
    operator.le: _ATEN.le.Tensor,
    operator.gt: _ATEN.gt.Tensor,
    operator.ge: _ATEN.ge.Tensor,
    operator.eq: _ATEN.eq.Tensor,
    operator.ne: _ATEN.ne.Tensor,
    _OPERATOR.floordiv: _ATEN.floor_divide.default,
    _OPERATOR.and_: _ATEN.bitwise_and.Tensor,  # of truth values, too
    _OPERATOR.or_: _ATEN.bitwise_or.Tensor,
    _TORCH.sym_not: _ATEN.logical_not.default,
    _TORCH.sym_max: _ATEN.maximum.default,
    _TORCH.sym_min: _ATEN.minimum.default,
}


def with_numbers_as_tensors(exported: ExportedProgram) -> ExportedProgram:
    """Return a program whose control flow takes and carries tensors alone; the program given stays as it is.

    Control flow that uses a number as a size, or in a call that takes no tensor there, is left.
    """
    modes = (getattr(node.meta.get("val"), "fake_mode", None) for node in exported.graph.nodes)
    mode = next((m for m in modes if m is not None), None)
    if mode is None or not any(_is_wanted(node) for _, node in _control_flow(exported.graph_module)):
        return exported
    changed = with_own_graph(exported)
    for module, node in list(_control_flow(changed.graph_module)):
        if _is_wanted(node):
            _Rewrite(node, mode).run()
        module.recompile()
    return changed


def _control_flow(module: GraphModule) -> Iterator[tuple[GraphModule, Node]]:
    """The control flow of a graph and of its graphs, the innermost first."""
    for node in filter(is_kept, module.graph.nodes):
        for _, inner in graphs_of(node):
            yield from _control_flow(inner)
        yield module, node


def _places(node: Node) -> list[int]:
    """Which operands of control flow are numbers of Python that no size of the program decides.

    A loop may begin with a size: its body is given a number that no size decides.
    """
    operands, (_, (_, inner)) = cast("Sequence[Any]", operands_of(node)[1]), graphs_of(node)
    pairs = enumerate(zip(operands, inner.graph.find_nodes(op="placeholder"), strict=True))
    return [place for place, (operand, value) in pairs if _is_number(operand) or _is_number(value)]


def _is_number(operand: Any) -> bool:
    if not isinstance(operand, Node):
        return type(operand) is int
    value = operand.meta.get("val")
    return isinstance(value, torch.SymInt) and bool(free_unbacked_symbols(value))


def _is_wanted(node: Node) -> bool:
    places = _places(node)
    return bool(places) and all(_can_convert(inner, places) for _, inner in graphs_of(node))


def _can_convert(module: GraphModule, places: Sequence[int]) -> bool:
    return _numbers(module, places) is not None


def _numbers(module: GraphModule, places: Sequence[int]) -> set[Node] | None:
    """The numbers that a graph is given, and what is computed from them; None if a call takes no tensor for one."""
    numbers = _given(module, places)
    for node in module.graph.nodes:
        read = [n for n in node.all_input_nodes if n in numbers]
        if node.target in _READS:
            numbers.add(node)
        elif read and node.op == "call_function":
            if not (_is_of_integers(node) or is_kept(node) or _form_of(node, read) is not None):
                return None
            if _is_integer(node):
                numbers.add(node)
    return numbers


def _is_of_integers(node: Node) -> bool:
    """Whether a function of Python gives an integer or truth value for integers: others are in double precision."""
    given = (n for n in node.args if not isinstance(n, Node))
    return node.target in _FUNCTIONS and _is_integer(node) and all(isinstance(n, int) for n in given)


def _is_integer(node: Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymBool))


def _given(module: GraphModule, places: Sequence[int]) -> set[Node]:
    placeholders = module.graph.find_nodes(op="placeholder")
    return {placeholders[place] for place in places}


Written = Callable[[CallWriter, Node], Node]


def _form_of(node: Node, numbers: Sequence[Node]) -> Written | None:
    """What writes a call anew with tensors for numbers; None if nothing can."""
    target = cast(object, node.target)
    if not isinstance(target, OpOverload):
        return None
    read = [leaf for leaf in tree_flatten((node.args, dict(node.kwargs)))[0] if leaf in numbers]
    if target in _FORMS:
        return _FORMS[target] if len(read) == 1 and node.args[-1] is read[0] else None
    names = {name for name, argument in bind(node).items() if argument.value in numbers}
    if len(names) < len(read):
        return None  # one is a size, in a list of them
    overload = _overload(cast(Operator, target), names)
    return None if overload is None else lambda write, node: write(overload, *node.args, **node.kwargs)


def _overload(target: Operator, names: set[str]) -> Operator | None:
    """The overload of an operator that takes tensors in these places, and in all others what this one takes."""
    wanted = {a.name: "Tensor" if a.name in names else str(a.type) for a in schema_of(target).arguments}
    packet = cast(Any, target).overloadpacket
    for overload in (target, *(getattr(packet, name) for name in packet.overloads())):
        if {a.name: str(a.type) for a in schema_of(overload).arguments} == wanted:
            return overload
    return None


def _filled(write: CallWriter, node: Node) -> Node:
    size, number = cast("tuple[list[int], Node]", node.args)
    typed = write(_ATEN._to_copy.default, number, dtype=value_of(node).dtype)
    return write(_ATEN.clone.default, write(_ATEN.expand.default, typed, size))


def _typed(write: CallWriter, node: Node) -> Node:
    return write(_ATEN._to_copy.default, node.args[0], dtype=value_of(node).dtype)


_FORMS: dict[Any, Written] = {
    _ATEN.select.int: selected,
    _ATEN.select_scatter.default: put,
    _ATEN.full.default: _filled,
    _ATEN.scalar_tensor.default: _typed,
}


class _Rewrite:
    """Control flow whose numbers become tensors.

    Args:
        node: the control flow.
        mode: of the tensors that torch has noted in the program.
    """

    def __init__(self, node: Node, mode: FakeTensorMode) -> None:
        self._node, self._mode, self._places = node, mode, _places(node)

    def run(self) -> None:
        """Rewrite the graphs, what they are given, and what becomes of the results."""
        for _, inner in graphs_of(self._node):
            self._graph(inner)
            inner.recompile()
        write, operands = CallWriter(self._node), operands_of(self._node)[1]
        set_operands(
            self._node, [self._tensor(write, n) if place in self._places else n for place, n in enumerate(operands)]
        )
        if predicate_of(self._node) is None:
            carried = len(cast("Sequence[Any]", self._node.args[2]))
            self._results([place for place in self._places if place < carried])

    def _tensor(self, write: CallWriter, number: Any) -> Node:
        made = write(_ATEN.scalar_tensor.default, 0, dtype=torch.bool if isinstance(number, bool) else torch.int64)
        made.meta["val"] = self._form(made.kwargs["dtype"])
        made.args = (number,)
        return made

    def _form(self, dtype: Any = torch.int64) -> torch.Tensor:
        with self._mode:
            return torch.empty((), dtype=dtype)

    def _graph(self, module: GraphModule) -> None:
        explicit_writes(module.graph, _numbers(module, self._places) or ())
        numbers = _given(module, self._places)
        for node in numbers:
            node.meta["val"] = self._form()
        for node in list(module.graph.nodes):
            write = CallWriter(node)
            if node.target in _READS:
                read = cast(Node, node.args[0])
                numbers.add(read)
                node.replace_all_uses_with(read)
                module.graph.erase_node(node)
            elif node.op == "output":
                self._output(write, node)
            elif (read := [n for n in node.all_input_nodes if n in numbers]) and not is_kept(node):
                is_number = _is_integer(node)
                made = self._function(write, node) if node.target in _FUNCTIONS else self._call(write, node, read)
                replace_node(node, made)
                if is_number:
                    numbers.add(made)

    def _function(self, write: CallWriter, node: Node) -> Node:
        is_tensor = (isinstance(n, Node) and isinstance(n.meta.get("val"), torch.Tensor) for n in node.args)
        given = (n if ready else self._tensor(write, n) for n, ready in zip(node.args, is_tensor, strict=True))
        return write(_FUNCTIONS[node.target], *given)

    def _call(self, write: CallWriter, node: Node, numbers: Sequence[Node]) -> Node:
        form = _form_of(node, numbers)
        assert form is not None, "asked before anything was changed"
        return form(write, node)

    def _output(self, write: CallWriter, output: Node) -> None:
        """Give tensors of their own, as torch asks of bodies."""
        (values,) = output.args
        if isinstance(values, Node):
            return
        given = list(cast("Sequence[Any]", values))
        for place in self._places if predicate_of(self._node) is None else ():
            value = given[place] if place < len(given) else None
            if type(value) is int:
                given[place] = self._tensor(write, value)
            elif isinstance(value, Node) and (value.op == "placeholder" or value in given[:place]):
                given[place] = write(_ATEN.clone.default, value)
        output.args = (tuple(given),)

    def _results(self, places: Sequence[int]) -> None:
        """Read the numbers that a loop ends with from its results."""
        values = list(cast("tuple[Any, ...]", self._node.meta["val"]))
        for user in list(self._node.users):
            place = cast(int, user.args[1])
            if place in places:
                self._read(user, values[place])
        for place in places:
            values[place] = self._form()
        self._node.meta["val"] = tuple(values)
        self._node.meta.pop("unbacked_bindings", None)

    def _read(self, item: Node, number: Any) -> None:
        name, users = item.name, list(item.users)
        with item.graph.inserting_after(item):
            made = item.graph.call_function(_ATEN.item.default, (item,))
        made.meta = item.meta | {"unbacked_bindings": {expression_of(number): ()}}
        item.meta = item.meta | {"val": self._form()}
        for user in users:
            user.replace_input_with(item, made)
        item.name, made.name = f"{name}_tensor", name
        if not users:
            item.graph.erase_node(made)


__all__ = ["with_numbers_as_tensors"]
