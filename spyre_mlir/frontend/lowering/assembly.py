"""From the nodes of a functional graph and its signature to a `Program`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch.fx import Node
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Region

from spyre_mlir.dialects.argument_notes import BITS, COUNTS, PLACES, WEIGHT, ZERO, read_together
from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.ir.handed_notes import hand_down_notes
from spyre_mlir.frontend.capture.folding.constant_folding import Earlier, Folded
from spyre_mlir.frontend.capture.liveness import find_aliases
from spyre_mlir.frontend.lowering.named_places import check_known_places, named_places
from spyre_mlir.frontend.lowering.nodes import NodeLowering
from spyre_mlir.frontend.lowering.signature import Signature
from spyre_mlir.frontend.lowering.weight_facts import few_bits
from spyre_mlir.frontend.lowering.zero_points import drop_zero_points, is_zero
from spyre_mlir.frontend.program.plain_trees import text_of_tree
from spyre_mlir.frontend.program.program import Origin, OutputMemory, Program, TreeConstant
from spyre_mlir.frontend.reference.half_precision import has_halves, keep_wide
from spyre_mlir.frontend.symbolic.sizes import Sizes, gives_number

# float32 has every whole number up to here; what is larger does not count anything.
_MOST_COUNTED = 2**24
_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
# Of arguments and results: the last dimension of two has the parts of complex numbers.
INTERLEAVED = {"aten.complex": "interleaved"}


def assemble(
    name: str,
    live: Sequence[Node],
    signature: Signature,
    sizes: Sizes,
    *,
    guards: Sequence[str] = (),
    earlier: Earlier | None = None,
    origin: Origin | None = None,
    places: Mapping[str, Attribute] | None = None,
    reference: Callable[..., object],
    memory: OutputMemory,
) -> Program:
    """Lower live nodes to a program, which also knows how it would be if calls computed what follows from their inputs.

    Args:
        name: of the program.
        live: the nodes that make the results, in order.
        signature: its arguments and results.
        sizes: its symbols.
        guards: conditions on them.
        earlier: nodes that stand for constants of the program that it is made from.
        origin: of a program with symbols.
        places: by argument, the note on what its integers have to name; found in the nodes if it is not given.
        reference: the model itself.
        memory: where its outputs lie.
    """
    make = partial(
        _assembled,
        name,
        live,
        sizes=sizes,
        guards=guards,
        earlier=earlier or Earlier(),
        origin=origin,
        places=places,
        reference=reference,
        memory=memory,
    )
    made = make(signature)
    if not made.given_recipes:
        return made
    slots = tuple(replace(slot, argument=replace(slot.argument, lasts=False)) for slot in signature.slots)
    return replace(made, in_calls=lambda: make(replace(signature, slots=slots)))


def _assembled(
    name: str,
    live: Sequence[Node],
    signature: Signature,
    *,
    sizes: Sizes,
    guards: Sequence[str],
    earlier: Earlier,
    origin: Origin | None,
    places: Mapping[str, Attribute] | None,
    reference: Callable[..., object],
    memory: OutputMemory,
) -> Program:
    aliases = find_aliases(live)
    known = _folded(live, signature, earlier)
    tensors = {s.argument.name: s.value for s in signature.slots if s.value is not None} | dict(earlier.leaves)
    needed = check_known_places(
        live, sizes, lambda node: _known(node, known, earlier, tensors), is_again=places is not None
    )
    lowering = NodeLowering(signature, aliases, known, sizes)
    lowering.guard([*guards, *needed])
    for node in live:
        if node.op == "call_function" and node not in aliases and node not in known and not gives_number(node):
            lowering.lower(node)
    places = named_places(live, signature, sizes) if places is None else places
    lowering.finish([r.node for r in signature.results], read_together(places))
    # Constants of a program with symbols may meet weights in those that are made from it.
    ahead = {leaf for r in lowering.recipes.values() if r.weight_leaves or origin is not None for leaf in r.leaves}
    return Program(
        module=_module(name, signature, lowering, sizes, places),
        name=name,
        arguments=tuple(lowering.arguments),
        values=lowering.values | _by_recipe(lowering, earlier, tensors),
        results=tuple(r.name for r in signature.results),
        mutations={i: r.mutates for i, r in enumerate(signature.results) if r.mutates is not None},
        input_leaves=signature.input_leaves,
        output_leaves=signature.output_leaves,
        input_tree=signature.input_tree,
        output_tree=signature.output_tree,
        reference=reference,
        memory=memory,
        complex_results=frozenset(i for i, r in enumerate(signature.results) if r.is_complex),
        recipes=lowering.recipes,
        read_ahead={leaf: tensor for leaf, tensor in tensors.items() if leaf in ahead},
        ties=signature.tied_names,
        names=signature.names,
        origin=origin,
    )


def _folded(live: Sequence[Node], signature: Signature, earlier: Earlier) -> Folded:
    """What no call can change: known, or computed from the buffers of the model once they have values."""
    foldable = {s.node: s for s in signature.slots if s.foldable}
    known = {n: s.value for n, s in foldable.items() if s.argument.kind == "constant" and s.value is not None}
    buffers = {n: s.argument.name for n, s in foldable.items() if n not in known}
    weights = {s.node: s.argument.name for s in signature.slots if s.argument.persistent and not s.argument.mutated}
    weights |= {s.node: s.argument.name for s in signature.slots if s.argument.lasts and _has_sizes(s.node)}
    for named in (buffers, weights):
        named |= {node: named[first] for node, first in signature.ties.items() if first in named}
    return Folded(live, known, buffers, earlier, weights)


def _known(node: Node, folded: Folded, earlier: Earlier, tensors: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
    """The value of a node that no call changes, as far as the model has the buffers that it is made of."""
    if folded.known(node):
        return folded.value(node)
    if node.op == "placeholder" or not folded.by_recipe(node):
        return None
    recipe = folded.recipe(node)
    if not recipe.needs(earlier.computed) <= tensors.keys():
        return None
    return recipe.value(tensors, earlier.computed)


def _has_sizes(node: Node) -> bool:
    """Whether all sizes of a tensor are numbers."""
    sizes: list[object] = [*cast(torch.Tensor, node.meta["val"]).shape]
    return all(isinstance(size, int) for size in sizes)


def _by_recipe(
    lowering: NodeLowering, earlier: Earlier, tensors: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The constants that follow from buffers alone, as far as these have values."""
    return {
        name: recipe.value(tensors, earlier.computed)
        for name, recipe in lowering.recipes.items()
        if not recipe.weight_leaves and recipe.needs(earlier.computed) <= set(tensors)
    }


def _module(
    name: str, signature: Signature, lowering: NodeLowering, sizes: Sizes, places: Mapping[str, Attribute]
) -> ModuleOp:
    weights = {s.argument.name: s.value for s in signature.slots if s.argument.kind in ("parameter", "buffer")}
    weights |= {s.argument.name: s.example for s in signature.slots if s.argument.is_weight}
    written = {r.mutates for r in signature.results}
    kept = [n for n, a in enumerate(lowering.arguments) if a.name not in written]
    dropped = drop_zero_points(lowering.block, kept, lambda n: is_zero(weights.get(lowering.arguments[n].name)))
    arguments = [
        {"aten.name": a.name, "aten.kind": a.kind}
        | (INTERLEAVED if a.is_complex else {})
        | ({WEIGHT: True} if a.is_weight else {})
        | _bounds(lowering.values.get(a.name) if a.kind == "constant" else None)
        | _counts(lowering.values.get(a.name) if a.kind == "constant" else None)
        | ({} if (bits := few_bits(weights.get(a.name))) is None else {BITS: bits})
        | ({PLACES: places[a.name]} if a.name in places else {})
        | ({ZERO: dropped[number]} if number in dropped else {})
        for number, a in enumerate(lowering.arguments)
    ]
    results = [
        {"aten.name": r.name}
        | ({} if r.mutates is None else {"aten.mutates": r.mutates})
        | (INTERLEAVED if r.is_complex else {})
        for r in signature.results
    ]
    returned = cast(func.ReturnOp, lowering.block.last_op)
    function = func.FuncOp(
        "main",
        ([v.type for v in lowering.block.args], [v.type for v in returned.arguments]),
        Region(lowering.block),
        arg_attrs=_dictionaries(arguments),
        res_attrs=_dictionaries(results),
    )
    sizes.declare(function)
    attributes: dict[str, Attribute] = {
        "aten.input_leaves": _leaves(
            [leaf if isinstance(leaf, TreeConstant) else leaf.name for leaf in signature.input_leaves]
        ),
        "aten.output_leaves": _leaves(signature.output_leaves),
    }
    for key, tree in (("aten.input_tree", signature.input_tree), ("aten.output_tree", signature.output_tree)):
        if (text := text_of_tree(tree)) is not None:
            attributes[key] = StringAttr(text)
    module = ModuleOp([function, *reversed(lowering.graphs.made)], attributes, StringAttr(name))
    hand_down_notes(module)
    if has_halves(module):
        keep_wide(module)
    return module


def _bounds(value: torch.Tensor | None) -> dict[str, tuple[int, int]]:
    """The least and the largest integer of a constant, which decide the format it has on the device.

    Floats have them if they count, as positions do: whole numbers, and more of them than a mask has. No 8-bit ones do.
    """
    if value is None or value.dtype is torch.bool or value.is_complex() or not value.numel():
        return {}
    if value.is_floating_point() and value.itemsize == 1:
        return {}
    numbers: Any = value.numpy() if value.dtype in _UNSIGNED else value  # torch has no least one of these types
    low, high = numbers.min().item(), numbers.max().item()
    if value.is_floating_point() and not (1 < high - low <= _MOST_COUNTED and bool((value == value.floor()).all())):
        return {}
    return {"aten.bounds": (int(low), int(high))}


def _counts(value: torch.Tensor | None) -> dict[str, bool]:
    """Whether a constant is a vector of integers that count from 0."""
    if value is None or value.dim() != 1 or value.numel() < 2 or value.dtype not in (torch.int32, torch.int64):
        return {}
    return {COUNTS: True} if torch.equal(value, torch.arange(value.numel(), dtype=value.dtype)) else {}


def _dictionaries(entries: list[dict[str, Any]]) -> ArrayAttr[DictionaryAttr]:
    return ArrayAttr([DictionaryAttr({k: to_attribute(v) for k, v in entry.items()}) for entry in entries])


def _leaves(leaves: Any) -> ArrayAttr[Attribute]:
    """Leaves of a tree: a name or a number of a tensor, or the constant in its place as ``{value = …}``."""
    return ArrayAttr(
        [
            DictionaryAttr({"value": to_attribute(leaf.value)})
            if isinstance(leaf, TreeConstant)
            else to_attribute(leaf)
            for leaf in leaves
        ]
    )
