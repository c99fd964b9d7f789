"""Lowering of the live nodes of a functional graph to the ops of one aten function."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import cast

import torch
from torch.fx import Node
from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr, TensorType, UnknownLoc
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.transforms.dead_code_elimination import is_trivially_dead
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten import AtenOp, CallOp, callee_of, make_op
from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.aten_sizes import GuardOp
from spyre_mlir.dialects.aten_types import result_type
from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.dialects.spyre.hints import Hint
from spyre_mlir.frontend.arguments import (
    BoundArgument,
    NotInTableError,
    Spelled,
    bind,
    named_as_in,
    overload_name,
    spell_by_entry,
    spell_by_schema,
)
from spyre_mlir.frontend.capture.control_flow.kept import calls_graphs
from spyre_mlir.frontend.capture.folding.constant_folding import Folded, is_causal_mask
from spyre_mlir.frontend.element_types import ELEMENT_TYPES, tensor_type
from spyre_mlir.frontend.hints import hint_at
from spyre_mlir.frontend.locations import location_of
from spyre_mlir.frontend.lowering.collectives import ranks_at
from spyre_mlir.frontend.lowering.control_flow import GraphFunctions
from spyre_mlir.frontend.lowering.plugin_conversion import ImportBuild, converted
from spyre_mlir.frontend.lowering.promotion import (
    AS_THEY_ARE,
    LIMITS,
    NUMBERS,
    as_limit,
    computes_in,
    held,
    in_float32,
    operand_dtype,
    without_result_dtype,
)
from spyre_mlir.frontend.lowering.rewriting import rewrite
from spyre_mlir.frontend.lowering.signature import Signature
from spyre_mlir.frontend.program.program import Argument, ArgumentKind
from spyre_mlir.frontend.program.recipe import Recipe
from spyre_mlir.frontend.symbolic.sizes import Sizes, gives_number, is_symbolic_node, same_shape
from spyre_mlir.frontend.torch_private import OpOverload
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family, OpEntry

_ATTENTION = torch.ops.aten.scaled_dot_product_attention.default


class NodeLowering:
    """Builder of the function body, node by node; constants become arguments when first used."""

    def __init__(
        self,
        signature: Signature,
        aliases: Mapping[Node, Node],
        folded: Folded,
        sizes: Sizes,
        graphs: GraphFunctions | None = None,
    ) -> None:
        """Starts a function with one block argument per placeholder; `graphs` makes the functions that it calls."""
        self.graphs = graphs or GraphFunctions(NodeLowering, sizes)
        self._sizes = sizes
        self._aliases = aliases
        self._folded = folded
        self.block = Block(arg_types=[sizes.type_of(s.node.meta["val"]) for s in signature.slots])
        self.arguments = [s.argument for s in signature.slots]
        self._given = frozenset(a.name for a in self.arguments if a.kind == "input")
        self.values = {s.argument.name: s.value for s in signature.slots if s.value is not None}
        self.recipes: dict[str, Recipe] = {}
        self._location: LocationAttr = UnknownLoc()
        self._hint: Hint | None = None
        self._ssa: dict[Node, SSAValue] = {}
        self._several: dict[Node, dict[int, SSAValue]] = {}
        self._casts: dict[tuple[SSAValue, torch.dtype], SSAValue] = {}
        self._constants: dict[object, tuple[str, SSAValue]] = {}
        self._right: set[object] = set()
        self._masks: dict[Node, dict[str, BoundArgument]] = {}
        for slot, value in zip(signature.slots, self.block.args, strict=True):
            value.name_hint = slot.node.name
            self._ssa[slot.node] = value
        for tied, first in signature.ties.items():
            self._ssa[tied] = self._ssa[first]

    def guard(self, conditions: Iterable[str]) -> None:
        """Add the conditions on symbols that the program takes for granted."""
        self.block.add_ops([GuardOp(condition) for condition in conditions])

    def lower(self, node: Node) -> None:
        """Add the op of one node that calls an operator, or selects one of several results."""
        if node.target is operator.getitem:
            source, index = cast("tuple[Node, int]", node.args)
            self._ssa[node] = self._several[self._root(source)][index]
            return
        self._location, self._hint = location_of(node), hint_at(node)
        if calls_graphs(node):
            control = self.graphs.op(node, self)
            control.location = self._location
            self.block.add_op(control)
            self._several[node] = {i: _named(v, node) for i, v in enumerate(control.outputs)}
            return
        plain = not is_symbolic_node(node)  # other ops stand for a call once its sizes are numbers
        if plain and (results := converted(node, self.ssa, ImportBuild(self._add))) is not None:
            if isinstance(node.meta["val"], torch.Tensor):
                self._ssa[node] = _named(results[0], node)
            else:
                self._several[node] = {i: _named(v, node) for i, v in enumerate(results)}
            return
        rewritten = rewrite(node, self) if plain else None
        if isinstance(rewritten, SSAValue):
            self._ssa[node] = _named(rewritten, node)
            return
        if rewritten is not None:
            self._several[node] = {i: _named(v, node) for i, v in rewritten.items()}
            return
        op = self._add(self._op(node))
        results = iter(op.results)
        if isinstance(node.meta["val"], torch.Tensor):
            self._ssa[node] = _named(next(results), node)
        else:
            self._several[node] = {
                i: _named(next(results), node) for i, v in enumerate(node.meta["val"]) if isinstance(v, torch.Tensor)
            }

    def finish(self, results: list[Node], read: Collection[str] = ()) -> None:
        """Return the results and drop unread ops and arguments, except inputs and mutated arguments.

        Args:
            results: the nodes of the results.
            read: names of arguments that notes read.
        """
        stay = self._given | set(read)
        self.block.add_op(func.ReturnOp(*[self.ssa(node) for node in results]))
        for op in reversed(list(self.block.ops)):  # what led to a tensor without elements is read by nobody
            if isinstance(op, AtenOp) and op.entry is not None and is_trivially_dead(op):
                self.block.erase_op(op)
        for argument, value in reversed(list(zip(self.arguments, self.block.args, strict=True))):
            if argument.name not in stay and not argument.mutated and not value.uses:
                self.block.erase_arg(value)
                self.arguments.remove(argument)
                self.values.pop(argument.name, None)
                self.recipes.pop(argument.name, None)

    def ssa(self, node: Node) -> SSAValue:
        """Return the value of a node; a folded one becomes an argument."""
        root = self._root(node)
        if root not in self._folded:
            return self._ssa[root]
        if self._folded.by_recipe(root):
            return self._computed(root, self._folded.recipe(root))
        return self._constant(self._folded.value(root))

    def constant(self, value: torch.Tensor) -> SSAValue:
        """Return the value of a constant, an argument."""
        return self._constant(value)

    def known_value(self, node: Node) -> torch.Tensor | None:
        """Return the tensor value of a node, if it is the same whatever the model's tensors are."""
        root = self._root(node)
        return self._folded.value(root) if self._folded.known(root) else None

    def from_host(self, node: Node) -> bool:
        """Return whether the host provides the value of a node unchanged."""
        root = self._root(node)
        return root.op == "placeholder" or root in self._folded

    def emit(
        self, overload: str, *operands: SSAValue, result: Attribute | None = None, **attributes: object
    ) -> SSAValue:
        """Add an op of the table and return its result; the table infers its type unless it is given."""
        spelled = {name: to_attribute(value) for name, value in attributes.items()}
        if result is not None:
            return self._add(make_op(overload, operands, spelled, [result])).results[0]
        shapeless = make_op(overload, operands, spelled, [operands[0].type])
        entry = ATEN.find(overload)
        if entry is None:
            raise KeyError(f"the op table lacks aten.{overload}")
        inferred = result_type(entry, shapeless.arguments())
        take_apart(shapeless)  # or it would count as a reader of its operands
        return self._add(make_op(overload, operands, spelled, [inferred])).results[0]

    def _add(self, op: AtenOp) -> AtenOp:
        """Appends an op, made for the node at hand."""
        op.location = self._location
        if self._hint is not None:
            self._hint.put(op)
        self.block.add_op(op)
        return op

    def _root(self, node: Node) -> Node:
        while node in self._aliases:
            node = self._aliases[node]
        return node

    def _op(self, node: Node) -> AtenOp:
        """The op of a node: its class if the table's entry can say everything, else `aten.call`."""
        overload = overload_name(cast(OpOverload, node.target))
        bound = self._with_causal_fact(node, bind(node)) | ranks_at(node)
        if self._sizes.names:
            bound = {n: BoundArgument(self._sizes.spelled(b.value), b.is_default) for n, b in bound.items()}
        value = node.meta["val"]
        values = cast("list[object]", [value] if isinstance(value, torch.Tensor) else value)
        types = [self._sizes.type_of(v) for v in values if isinstance(v, torch.Tensor)]
        entry = ATEN.find(overload)
        if entry is not None and (entry.composed or isinstance(value, torch.Tensor)):
            try:
                spelled = self._by_entry(entry, node, bound)
                op = make_op(overload, spelled.operands, spelled.attributes, types)
            except NotInTableError:
                op = None  # the table knows a narrower op; the call keeps every argument
            if op is not None and self._is_right(op):
                return op
        spelled = spell_by_schema(bound, lambda _, n: self.ssa(n))
        callee = callee_of(overload)
        return CallOp(callee, spelled.operands, spelled.attributes, types)

    def _is_right(self, op: AtenOp) -> bool:
        """Whether an op keeps the rules of its entry, verified once for equal ones; one that does not is erased."""
        operands = tuple(o.type for o in op.operands)
        form = (op.name, operands, tuple(op.properties.items()), tuple(r.type for r in op.results))
        if form not in self._right:
            try:
                op.verify_()
            except VerifyException:
                op.erase()
                return False
            self._right.add(form)
        return True

    def _by_entry(self, entry: OpEntry, node: Node, bound: dict[str, BoundArgument]) -> Spelled:
        bound = named_as_in(entry, bound)
        wanted = operand_dtype(entry, node, bound)
        tensors = {p.name for p in entry.params if p.is_tensor} - AS_THEY_ARE
        bound = {n: BoundArgument(held(b.value, wanted), b.is_default) if n in tensors else b for n, b in bound.items()}
        bound = {
            n: BoundArgument(as_limit(b.value, wanted), b.is_default) if n in LIMITS else b for n, b in bound.items()
        }
        numbers, kind = {p.name for p in entry.params if p.kind in NUMBERS}, computes_in(entry, node, wanted)
        bound = {
            n: BoundArgument(in_float32(b.value, kind), b.is_default) if n in numbers else b for n, b in bound.items()
        }

        def resolve(name: str, operand: Node) -> SSAValue | int | float | bool:
            if (number := self._number(entry, node, name, operand)) is not None:
                return in_float32(held(number, wanted), kind)
            if wanted is None or name in AS_THEY_ARE:
                return self.ssa(operand)
            return self._cast(operand, wanted)

        return spell_by_entry(entry, bound if wanted is None else without_result_dtype(bound), resolve)

    def _number(self, entry: OpEntry, node: Node, name: str, operand: Node) -> int | float | bool | None:
        """The number that stands for a known tensor whose elements are all equal, if the result keeps its shape."""
        root = self._root(operand)
        if entry.family is not Family.POINTWISE or name in AS_THEY_ARE or not self._folded.known(root):
            return None
        others = [n for n in node.all_input_nodes if not self._folded.known(self._root(n))]
        choosing = bind(node).get("condition")
        shaping = [n for n in others if choosing is None or n is not choosing.value]
        if not any(same_shape(n.meta["val"], node.meta["val"]) for n in shaping if not gives_number(n)):
            return None
        value = self._folded.value(root)
        if value.numel() == 0 or not bool((value == value.reshape(-1)[0]).all()):
            return None
        return value.reshape(-1)[0].item()

    def _cast(self, operand: Node, wanted: torch.dtype) -> SSAValue:
        """The operand in another element type; constants are converted here, others by a `_to_copy`."""
        root = self._root(operand)
        if root.meta["val"].dtype is wanted:
            return self.ssa(root)
        if self._folded.known(root):
            return self._constant(self._folded.value(root).to(wanted))
        if self._folded.by_recipe(root):
            return self._computed(root, self._folded.recipe(root).of_type(wanted))
        source = self.ssa(root)
        if (source, wanted) not in self._casts:
            held_in = cast("TensorType[Attribute]", source.type)
            result = TensorType(ELEMENT_TYPES[wanted], held_in.get_shape(), held_in.encoding)
            op = make_op("_to_copy", [source], {"dtype": ELEMENT_TYPES[wanted]}, [result])
            self._casts[source, wanted] = self._add(op).results[0]
        return self._casts[source, wanted]

    def _constant(self, value: torch.Tensor) -> SSAValue:
        """The argument that holds a value known at import; a repeated value is kept once and expanded."""
        repeated = _repeated(value)
        if any(repeated):
            return self._expanded(self._constant(_without_repetitions(value, repeated)), value)
        # One element counts as dense under any stride, but bytes can be read under stride 1 only.
        dense = value.contiguous() if value.numel() != 1 else value.clone(memory_format=torch.contiguous_format)
        raw = dense.reshape(-1).view(torch.uint8).numpy().data if dense.numel() else b""
        name, argument = self._argument((dense.dtype, tuple(dense.shape), sha256(raw).digest()), dense)
        self.values.setdefault(name, dense)
        return argument

    def _computed(self, node: Node, recipe: Recipe) -> SSAValue:
        """The argument whose value follows from buffers and weights of the model or of a call; see `_constant`."""
        form: torch.Tensor = node.meta["val"]
        repeated = _repeated(form)
        form = form if recipe.dtype is None else form.to(recipe.dtype)
        recipe = replace(recipe, repeated=repeated)
        given = not self._given.isdisjoint(recipe.leaves)
        name, argument = self._argument(recipe.key, _without_repetitions(form, repeated), given=given)
        self.recipes.setdefault(name, recipe)
        return self._expanded(argument, form) if any(repeated) else argument

    def _argument(self, key: object, form: torch.Tensor, *, given: bool = False) -> tuple[str, SSAValue]:
        """The argument of a constant, and its name; constants with equal keys are one.

        Args:
            key: of its value.
            form: an example without elements.
            given: whether it is computed from what a call gives.
        """
        if key not in self._constants:
            name = self._fresh_name()
            kind: ArgumentKind = "input" if given else "constant"
            self.arguments.append(Argument(name, kind, tuple(form.shape), form.dtype, is_weight=given))
            self._constants[key] = name, self.block.insert_arg(tensor_type(form), len(self.block.args))
            self._constants[key][1].name_hint = name
        return self._constants[key]

    def _expanded(self, compact: SSAValue, form: torch.Tensor) -> SSAValue:
        op = make_op("expand", [compact], {"size": to_attribute(tuple(form.shape))}, [tensor_type(form)])
        return self._add(op).results[0]

    def _fresh_name(self) -> str:
        taken = {a.name for a in self.arguments}
        number = len(self._constants)
        while f"constant_{number}" in taken:
            number += 1
        return f"constant_{number}"

    def _with_causal_fact(self, node: Node, bound: dict[str, BoundArgument]) -> dict[str, BoundArgument]:
        """Attention under a known causal mask says so instead of carrying the mask; one that hides nothing goes."""
        mask = bound["attn_mask"].value if node.target is _ATTENTION else None
        if not isinstance(mask, Node) or not self._folded.known(self._root(mask)):
            return bound
        root = self._root(mask)
        if root not in self._masks:  # every layer has the same mask
            self._masks[root] = _causal_fact(self._folded.value(root))
        return bound | self._masks[root]


def _causal_fact(mask: torch.Tensor) -> dict[str, BoundArgument]:
    """The arguments of attention that stand for a known mask; none if it has to be carried."""
    if mask.dtype is torch.bool and bool(mask.all()):
        return {"attn_mask": BoundArgument(None, True)}
    if is_causal_mask(mask):
        return {"attn_mask": BoundArgument(None, True), "is_causal": BoundArgument(True, False)}
    return {}


def _repeated(value: torch.Tensor) -> tuple[bool, ...]:
    """Per dimension, whether its elements are one in memory."""
    return tuple(step == 0 and extent > 1 for step, extent in zip(value.stride(), value.shape, strict=True))


def _without_repetitions(value: torch.Tensor, repeated: tuple[bool, ...]) -> torch.Tensor:
    return value[tuple(slice(0, 1) if one else slice(None) for one in repeated)]


def _named(value: SSAValue, node: Node) -> SSAValue:
    value.name_hint = node.name
    return value
