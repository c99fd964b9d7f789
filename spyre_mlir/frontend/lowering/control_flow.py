"""`torch.cond`, `while_loop` and loops: their graphs become functions of the module, which control flow calls.

A function takes what the call hands to its graph, and behind it the constants that its own nodes fold to; these become
constants of the program, so that no function holds any.

Decision: docs/decisions/0143-the-host-decides-between-launches.md
Decision: docs/decisions/0208-control-flow-has-symbols.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import torch
from torch.fx import GraphModule, Node
from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr, TensorType, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.aten import make_op
from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.ir.control import CondOp, ControlOp, ForLoopOp, WhileLoopOp, entry_type
from spyre_mlir.dialects.tensors import tensor_type_of
from spyre_mlir.frontend.capture.control_flow.kept import body_of, given_to_loop, graphs_of, is_loop, operands_of
from spyre_mlir.frontend.capture.folding.constant_folding import Folded
from spyre_mlir.frontend.capture.liveness import find_aliases, live_nodes
from spyre_mlir.frontend.locations import LOCATION, location_of, of_model, source_of
from spyre_mlir.frontend.lowering.signature import PlaceholderSlot, Signature
from spyre_mlir.frontend.program.program import Argument
from spyre_mlir.frontend.symbolic.sizes import Sizes, gives_number, open_shape
from spyre_mlir.frontend.torch_private import tree_flatten

SAYS_NUMBER = "scalar_tensor"  # an op without operands, of a number that sizes may decide


class GraphLowering(Protocol):
    """Lowering of a graph to the body of a function; see `NodeLowering`."""

    block: Block
    arguments: list[Argument]
    values: dict[str, torch.Tensor]

    def lower(self, node: Node) -> None:
        """Add the op of one node."""

    def finish(self, results: list[Node]) -> None:
        """Return the results."""

    def ssa(self, node: Node) -> SSAValue:
        """Return the value of a node."""
        ...

    def constant(self, value: torch.Tensor) -> SSAValue:
        """Return the value of a constant, an argument."""
        ...


Lower = Callable[[Signature, Mapping[Node, Node], Folded, Sizes, "GraphFunctions"], GraphLowering]


class GraphFunctions:
    """The functions that the control flow of a program calls, made at its calls.

    Attributes:
        made: the functions, the innermost first.
    """

    def __init__(self, start: Lower, sizes: Sizes) -> None:
        """Starts without functions; `start` begins the lowering of a graph, `sizes` are the program's symbols."""
        self.made: list[func.FuncOp] = []
        self._start, self._sizes = start, sizes
        self._names: set[str] = {"main"}

    def op(self, node: Node, caller: GraphLowering) -> ControlOp:
        """Make the op of a call and the functions that it calls; what they share is read from the caller."""
        if is_loop(node):
            return self._for_loop(node, caller)
        graphs = graphs_of(node)
        predicate, operands = operands_of(node)
        given = [n for n in operands if not gives_number(n)]
        first, second = (self._lowered(module, location_of(node)) for _, module in graphs)
        before, behind = (
            [caller.constant(body.values[a.name]) for a in body.arguments[len(given) :]] for body in (first, second)
        )
        for number, value in enumerate(before):
            second.block.insert_arg(value.type, len(given) + number)
        for value in behind:
            first.block.insert_arg(value.type, len(first.block.args))
        functions = [self._function(n, b) for (n, _), b in zip(graphs, (first, second), strict=True)]
        called = [f.sym_name.data for f in functions]
        inputs = [*map(caller.ssa, given), *before, *behind]
        types = list(functions[-1].function_type.outputs.data)
        if predicate is None:
            return WhileLoopOp(called[0], called[1], inputs, types)
        return CondOp(self._truth(predicate, caller), called[0], called[1], inputs, types)

    def _truth(self, predicate: Node, caller: GraphLowering) -> SSAValue:
        """The value that decides between branches; where sizes decide, they are in the argument of an op."""
        if not gives_number(predicate):
            return caller.ssa(predicate)
        said = {"s": to_attribute(self._sizes.spelled(predicate)), "dtype": to_attribute(i1)}
        made = make_op(SAYS_NUMBER, [], said, [TensorType(i1, ())])
        caller.block.add_op(made)
        return made.results[0]

    def _for_loop(self, node: Node, caller: GraphLowering) -> ForLoopOp:
        """Make the op of a loop over slices, whose body takes and gives tensors of one entry."""
        carried, sliced, others = given_to_loop(node)
        name, module = body_of(node)
        body = self._lowered(module, location_of(node))
        inputs = [caller.ssa(n) for n in (*carried, *sliced, *others) if not gives_number(n)]
        inputs += [caller.constant(body.values[a.name]) for a in body.arguments[len(inputs) :]]
        trips = int(sliced[0].meta["val"].shape[0])
        for number in range(len(carried), len(carried) + len(sliced)):
            whole, old = inputs[number], body.block.args[number]
            entry = body.block.insert_arg(entry_type(whole.type, trips), number)
            entry.name_hint = old.name_hint
            only = make_op("squeeze.dims", [entry], {"dim": to_attribute([0])}, [old.type])
            Rewriter.insert_op(only, InsertPoint.at_start(body.block))
            old.replace_all_uses_with(only.results[0])
            body.block.erase_arg(old)
        returned = cast(func.ReturnOp, body.block.last_op)
        types: list[Attribute] = [v.type for v in returned.operands[: len(carried)]]
        for number in range(len(carried), len(returned.operands)):
            row = returned.operands[number]
            made = make_op("unsqueeze", [row], {"dim": to_attribute(0)}, [_entries_type(row, 1)])
            body.block.insert_op_before(made, returned)
            returned.operands[number] = made.results[0]
            types.append(_entries_type(row, trips))
        function = self._function(name, body).sym_name.data
        return ForLoopOp(function, trips, len(carried), len(sliced), inputs, types)

    def _lowered(self, module: GraphModule, place: LocationAttr) -> GraphLowering:
        """The lowering of a graph; what torch knows no line of the model of is where the call is."""
        live = live_nodes(list(module.graph.nodes))
        for node in live:
            source = source_of(node)
            if LOCATION not in node.meta and (source is None or not of_model(source[0])):
                node.meta[LOCATION] = place
        slots = tuple(
            PlaceholderSlot(n, Argument(n.name, "input", open_shape(n.meta["val"]), n.meta["val"].dtype))
            for n in live
            if n.op == "placeholder" and not gives_number(n)
        )
        aliases, known = find_aliases(live), Folded(live, {})
        signature = Signature(slots, {}, {}, frozenset(), (), (), (), cast(Any, None), cast(Any, None))
        lowering = self._start(signature, aliases, known, self._sizes, self)
        for node in live:
            if node.op == "call_function" and node not in aliases and node not in known and not gives_number(node):
                lowering.lower(node)
        (output,) = module.graph.find_nodes(op="output")
        lowering.finish([n for n in tree_flatten(output.args[0])[0] if isinstance(n, Node)])
        return lowering

    def _function(self, name: str, lowering: GraphLowering) -> func.FuncOp:
        returned = cast(func.ReturnOp, lowering.block.last_op)
        types = [v.type for v in lowering.block.args], [v.type for v in returned.arguments]
        self.made.append(func.FuncOp(self._fresh(name), types, Region(lowering.block), "private"))
        self._sizes.declare(self.made[-1])
        return self.made[-1]

    def _fresh(self, name: str) -> str:
        number, fresh = 1, name
        while fresh in self._names:
            fresh, number = f"{name}_{number}", number + 1
        self._names.add(fresh)
        return fresh


def slice_taken(entry: SSAValue) -> SSAValue:
    """Return the slice that the body of an imported loop takes from an argument, one entry of a tensor."""
    (use,) = entry.uses
    return use.operation.results[0]


def slice_given(entry: SSAValue) -> SSAValue:
    """Return the slice that the body of an imported loop gives as a result, one entry of a tensor."""
    assert isinstance(entry.owner, Operation)
    return entry.owner.operands[0]


def _entries_type(entry: SSAValue, number: int) -> TensorType[Attribute]:
    """Return the type of so many entries, each like a value."""
    tensor = tensor_type_of(entry)
    return TensorType(tensor.get_element_type(), (number, *tensor.get_shape()), tensor.encoding)


__all__ = ["SAYS_NUMBER", "GraphFunctions", "slice_given", "slice_taken"]
