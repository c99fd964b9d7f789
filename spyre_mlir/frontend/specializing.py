"""Static programs from a program with symbols, once a pass has given the symbols of its module values.

What the import computes ahead of time (position numbers, masks, rotary tables) depends on sizes. So the module becomes
a graph of torch's again, and is lowered like a graph that was exported with these sizes: the result is what importing
such an export gives. No operator of the model is traced or decomposed again.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, SSAValue

from spyre_mlir.dialects.argument_notes import PLACES, note_of
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import said_arguments
from spyre_mlir.dialects.aten_sizes import number_at
from spyre_mlir.dialects.ir.control import CondOp, ControlOp, ForLoopOp, WhileLoopOp
from spyre_mlir.dialects.ir.functions import first_function, returned_by
from spyre_mlir.frontend.calling.current_values import with_current_values
from spyre_mlir.frontend.calling.output_memory import output_memory
from spyre_mlir.frontend.capture.folding.constant_folding import Earlier
from spyre_mlir.frontend.capture.liveness import live_nodes
from spyre_mlir.frontend.element_types import DTYPES
from spyre_mlir.frontend.hints import note_hint
from spyre_mlir.frontend.locations import LOCATION
from spyre_mlir.frontend.lowering.assembly import assemble
from spyre_mlir.frontend.lowering.control_flow import SAYS_NUMBER, slice_given, slice_taken
from spyre_mlir.frontend.lowering.signature import PlaceholderSlot, ProgramResult, Signature
from spyre_mlir.frontend.program.program import Argument, Origin, Program, TreeConstant
from spyre_mlir.frontend.reference.op_runner import in_torch, operator_of, torch_name
from spyre_mlir.frontend.symbolic.sizes import Sizes

# Key in the notes on a placeholder: the name of the argument.
_NAME = "spyre_argument"
_SCAN, _COND, _WHILE = (getattr(torch.ops.higher_order, name) for name in ("scan", "cond", "while_loop"))
_EXPAND = torch.ops.aten.expand.default


def static_program(symbolic: Program, module: ModuleOp, sizes: Mapping[str, int]) -> Program:
    """Return the program of a specialised module; it shares the tensors of the one with symbols.

    Args:
        symbolic: the program with symbols.
        module: its module, once ``specialize-shapes`` gave these sizes to the symbols.
        sizes: values by symbol.

    Raises:
        ValueError: the program has no symbols.
    """
    if symbolic.origin is None:
        raise ValueError(f"{symbolic.name} has no symbols")
    main = first_function(module)
    graph = _Graph(torch.nn.Module())
    pairs = zip(main.body.block.args, symbolic.arguments, strict=True)
    nodes = [graph.placeholder(value, argument.name) for value, argument in pairs]
    results = graph.write(main.body.block, cast(func.ReturnOp, main.body.block.last_op).arguments)
    earlier = _earlier(symbolic, symbolic.origin, nodes)
    signature = _signature(symbolic, symbolic.origin.foldable, [n for n in nodes if n not in earlier], results, sizes)
    made = assemble(
        symbolic.name,
        live_nodes(list(graph.graph.nodes)),
        signature,
        Sizes(),
        earlier=earlier,
        places=_places(main, symbolic),
        reference=symbolic.reference,
        memory=output_memory(symbolic.origin.exported, signature),
    )
    if made.in_calls is None:  # it would be made of them
        _forget(graph.graph, made)
    return with_current_values(replace(made, stored=symbolic.stored, changes=symbolic.changes))


def _forget(graph: Graph, made: Program) -> None:
    """Take from a graph what no recipe computes: its nodes refer to each other, and stay until garbage is collected."""
    read = {node for recipe in made.recipes.values() for node in recipe.nodes}
    for node in reversed(graph.nodes):
        if node not in read:
            graph.erase_node(node)
            node.meta.clear()  # the graph knows its name still


def _places(main: func.FuncOp, symbolic: Program) -> dict[str, Attribute]:
    """The notes on what integers have to name: the operators of the model that asked for it may be others by now."""
    notes = ((a.name, note_of(main, number, PLACES)) for number, a in enumerate(symbolic.arguments))
    return {name: note for name, note in notes if note is not None}


def _earlier(symbolic: Program, origin: Origin, nodes: Sequence[Node]) -> Earlier:
    """The arguments that the import has made, which the model knows nothing of."""
    own = {spec.target for spec in origin.exported.graph_signature.input_specs}
    pairs = zip(nodes, symbolic.arguments, strict=True)
    made = {
        node: a.name for node, a in pairs if a.name in symbolic.recipes or (a.kind == "constant" and a.name not in own)
    }
    recipes = {node: symbolic.recipes[name] for node, name in made.items() if name in symbolic.recipes}
    fixed = [node for node, recipe in recipes.items() if not recipe.weight_leaves]  # weights change between imports
    return Earlier(
        {node: symbolic.values[name] for node, name in made.items() if node not in recipes},
        recipes,
        {node: symbolic.values[made[node]] for node in fixed if made[node] in symbolic.values},
        symbolic.read_ahead,
    )


def _signature(
    symbolic: Program,
    foldable: frozenset[str],
    nodes: Sequence[Node],
    results: Sequence[Node],
    sizes: Mapping[str, int],
) -> Signature:
    slots: list[PlaceholderSlot] = []
    arguments = {argument.name: argument for argument in symbolic.arguments}
    for node in nodes:
        argument = replace(arguments[node.meta[_NAME]], shape=tuple(node.meta["val"].shape))
        value = symbolic.values.get(argument.name)
        slots.append(PlaceholderSlot(node, argument, value, argument.name in foldable))
    by_name = {slot.argument.name: slot.argument for slot in slots}
    made = [
        ProgramResult(node, name, symbolic.mutations.get(number), number in symbolic.complex_results)
        for number, (node, name) in enumerate(zip(results, symbolic.results, strict=True))
    ]
    inputs = [
        by_name[leaf.name] if isinstance(leaf, Argument) else _leaf(leaf, sizes) for leaf in symbolic.input_leaves
    ]
    outputs = [_leaf(leaf, sizes) if isinstance(leaf, TreeConstant) else leaf for leaf in symbolic.output_leaves]
    return Signature(
        tuple(slots),
        {},
        symbolic.ties,
        symbolic.names,
        tuple(inputs),
        tuple(made),
        tuple(outputs),
        symbolic.input_tree,
        symbolic.output_tree,
    )


def _leaf(leaf: TreeConstant, sizes: Mapping[str, int]) -> TreeConstant:
    """A number of the call in the place of a symbolic one."""
    return replace(leaf, value=number_at(leaf.value, sizes))


@dataclass
class _Graph:
    """A graph of torch's that grows by the ops of a module.

    Attributes:
        owner: holds the graphs that its control flow calls.
        nodes: of the values.
    """

    owner: torch.nn.Module
    graph: Graph = field(default_factory=Graph)
    nodes: dict[SSAValue, Node] = field(default_factory=dict[SSAValue, Node])

    def __post_init__(self) -> None:
        """Makes the module the one that the graph takes its graphs from."""
        cast(Any, self.graph).owning_module = self.owner

    def placeholder(self, value: SSAValue, argument: str | None = None) -> Node:
        """Add an argument of the function, with its name in the program."""
        name = value.name_hint or "argument"
        node = self.graph.create_node("placeholder", name, name=name)
        node.target = node.name  # names are unique, and torch writes a function with these parameters
        node.meta[_NAME] = argument
        return self._noted(value, node)

    def write(self, block: Block, returned: Sequence[SSAValue]) -> list[Node]:
        """Add the ops of a function whose arguments are there, and return its results."""
        self.ops(block)
        results = [self.nodes[value] for value in returned]
        self.graph.output(tuple(results))
        return results

    def ops(self, block: Block) -> None:
        """Add the ops of a block whose arguments are there."""
        for op in block.ops:
            match op:
                case ForLoopOp():
                    self.loop(op)
                case CondOp() if (truth := _said(op.predicate)) is not None:
                    self.branch(op, op.functions()[0 if truth else 1])
                case CondOp() | WhileLoopOp():
                    self.decided(op)
                case AtenOp() if not any(result in self.nodes for result in op.results):
                    self.call(op)
                case _:
                    pass

    def branch(self, op: CondOp, taken: func.FuncOp) -> None:
        """Add the ops of a branch that sizes decide for."""
        block = taken.body.block
        self.nodes |= {value: self.nodes[given] for value, given in zip(block.args, op.inputs, strict=True)}
        self.ops(block)
        returned = returned_by(taken)
        self.nodes |= {value: self.nodes[made] for value, made in zip(op.outputs, returned, strict=True)}

    def decided(self, op: CondOp | WhileLoopOp) -> None:
        """Add branches, or a loop as long as a condition holds, as torch has them."""
        graphs = [self.called(f, f.body.block.args, returned_by(f)) for f in op.functions()]
        given = [self.nodes[value] for value in op.inputs]
        if isinstance(op, CondOp):
            self.control(op, _COND, (self.nodes[op.predicate], *graphs, tuple(given)))
        else:
            carried = op.carried_inputs
            self.control(op, _WHILE, (*graphs, tuple(given[:carried]), tuple(given[carried:])))

    def loop(self, op: ForLoopOp) -> None:
        """Add a loop over slices, as torch has one: its body is a graph that takes and gives slices, not entries."""
        (function,), (_, carried, sliced) = op.functions(), op.numbers
        taken = [
            slice_taken(value) if carried <= number < carried + sliced else value
            for number, value in enumerate(function.body.block.args)
        ]
        returned = [v if n < carried else slice_given(v) for n, v in enumerate(returned_by(function))]
        given = [self.nodes[value] for value in op.inputs]
        lists = given[:carried], given[carried : carried + sliced], given[carried + sliced :]
        self.control(op, _SCAN, (self.called(function, taken, returned), *lists))

    def called(self, function: func.FuncOp, arguments: Sequence[SSAValue], returned: Sequence[SSAValue]) -> Node:
        """Add a graph for control flow to call, of a function from these values to those."""
        graph = _Graph(torch.nn.Module())
        for value in arguments:
            graph.placeholder(value)
        graph.write(function.body.block, returned)
        self.owner.add_module(name := function.sym_name.data, GraphModule(graph.owner, graph.graph))
        return self.graph.get_attr(name)

    def control(self, op: ControlOp, target: Any, args: tuple[Any, ...]) -> None:
        """Add the call of an operation on graphs."""
        name_hint = op.results[0].name_hint if op.results else None
        node = self.graph.create_node("call_function", target, args, name=name_hint)
        node.meta[LOCATION] = op.location
        self._several(op, node)

    def call(self, op: AtenOp) -> None:
        """Add the call that an op stands for."""
        target = operator_of(op.overload)
        name = (op.results[0].name_hint if op.results else None) or str(target.overloadpacket.__name__)
        args, kwargs = self._arguments(op, target)
        node = self.graph.create_node("call_function", target, args, kwargs, name)
        node.meta[LOCATION] = op.location
        note_hint(node, op)
        if len(op.results) == 1 and not _gives_several(target):
            self._noted(op.results[0], node)
            node.meta["val"] = _with_repetitions(node)
            return
        self._several(op, node)

    def _several(self, op: AtenOp | ControlOp, node: Node) -> None:
        """Note the results of a node that gives several values."""
        node.meta["val"] = [_example(value.type) for value in op.results]
        for number, value in enumerate(op.results):
            part = self.graph.create_node("call_function", operator.getitem, (node, number), {}, value.name_hint)
            self._noted(value, part).meta[LOCATION] = op.location

    def _noted(self, value: SSAValue, node: Node) -> Node:
        node.meta["val"] = _example(value.type)
        self.nodes[value] = node
        return node

    def _arguments(self, op: AtenOp, target: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of an op by torch's schema, by position as far as there is no gap, as torch writes them."""
        said = said_arguments(op.given)
        given = {name: value for name, value in op.arguments().items() if name in said or _holds_value(value)}
        args, kwargs = list[Any](), dict[str, Any]()
        for number, parameter in enumerate(target._schema.arguments):
            name = torch_name(parameter.name, given)
            if name is None:
                continue
            argument = self._argument(parameter, given[name])
            if number == len(args) and not parameter.kwarg_only:
                args.append(argument)
            else:
                kwargs[parameter.name] = argument
        return tuple(args), kwargs

    def _argument(self, parameter: Any, value: object) -> Any:
        if isinstance(value, SSAValue):
            return self.nodes[cast("SSAValue[Attribute]", value)]
        if isinstance(value, (list, tuple)):
            return [self._argument(parameter, item) for item in cast("Sequence[object]", value)]
        return in_torch(parameter, value)


def _said(predicate: SSAValue) -> bool | None:
    """The truth value that sizes gave a predicate; None if the program computes it."""
    if not isinstance(op := predicate.owner, AtenOp) or op.overload != SAYS_NUMBER:
        return None
    return bool(op.arguments()["s"])


def _with_repetitions(node: Node) -> torch.Tensor:
    """The example of a node, its repeated elements one in memory as torch has them: constants keep these once."""
    example = cast(torch.Tensor, node.meta["val"])
    repeats = node.target is _EXPAND or any(_is_repeated(i.meta["val"]) for i in node.all_input_nodes)
    if not repeats or not _gives_view(node.target):
        return example
    args, kwargs = map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    try:
        return cast(Any, node.target)(*args, **kwargs)
    except RuntimeError:  # the memory of an input is laid out otherwise in the model
        return example


def _is_repeated(value: object) -> bool:
    return isinstance(value, torch.Tensor) and 0 in value.stride()


def _gives_view(target: Any) -> bool:
    (result,) = target._schema.returns
    return result.alias_info is not None and not result.alias_info.is_write


def _holds_value(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_holds_value, cast("list[object]", value)))
    return isinstance(value, SSAValue)


def _gives_several(target: Any) -> bool:
    returns = target._schema.returns
    return len(returns) != 1 or "List" in str(returns[0].real_type)


def _example(type_: Attribute) -> torch.Tensor:
    """A tensor of a type, without elements."""
    tensor = cast("TensorType[Attribute]", type_)
    return torch.empty(tensor.get_shape(), dtype=DTYPES[tensor.get_element_type()], device="meta")
