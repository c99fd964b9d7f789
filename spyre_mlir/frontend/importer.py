"""`import_program`: from a model, in any torch form, to a `Program`.

Decision: docs/decisions/0064-nothing-is-computed-at-import.md
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Region

from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.errors import InputError
from spyre_mlir.frontend.calling.call import is_complete
from spyre_mlir.frontend.calling.output_memory import output_memory
from spyre_mlir.frontend.capture.constant_folding import Folded
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.effects import drop_checks
from spyre_mlir.frontend.capture.export import export_model, load_pt2
from spyre_mlir.frontend.capture.unsupported import refuse, survey
from spyre_mlir.frontend.lowering.liveness import find_aliases, live_nodes
from spyre_mlir.frontend.lowering.nodes import NodeLowering
from spyre_mlir.frontend.lowering.signature import Signature, read_signature, strange_inputs
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.program.program import Program, TreeConstant
from spyre_mlir.frontend.reference.half_precision import has_halves, keep_wide
from spyre_mlir.frontend.torch_private import TreeSpec, treespec_dumps
from spyre_mlir.plugins import registry

Model = torch.nn.Module | ExportedProgram | str | Path

# float32 has every whole number up to here; what is larger does not count anything.
_MOST_COUNTED = 2**24


def import_program(
    model: Model, args: tuple[Any, ...] | None = None, kwargs: Mapping[str, Any] | None = None
) -> Program:
    """Import a module, a graph module, an exported program or a ``.pt2`` file as one aten function.

    Args:
        model: the model; a module needs example arguments.
        args: positional example arguments.
        kwargs: keyword example arguments.

    Raises:
        InputError: no model, a module without example arguments, or an exported program with some.
        ImportProgramError: the model or file cannot be read.
        UnsupportedError: parts of the model have no form; all of them are named.
    """
    registry.load_plugins()
    if not isinstance(model, torch.nn.Module) and not is_complete(model):
        raise InputError(
            f"a model is a module, an exported program or a .pt2 file, got {type(model).__name__}",
            hint="call a function from the forward of a torch.nn.Module",
        )
    given = args is not None or kwargs is not None
    if isinstance(model, torch.nn.Module):
        if not given:
            raise InputError(
                f"a module needs example arguments, and {type(model).__name__} got none",
                hint="import_program(model, args, kwargs); () if it takes none",
            )
        with flat_dataclasses(args, kwargs) as see:
            exported = export_model(model, tuple(args or ()), dict(kwargs or {}), see)
            return _import(exported, _identifier(type(model).__name__), model)
    if given:
        raise InputError("an exported program knows its example arguments", hint="pass the program alone")
    exported = model if isinstance(model, ExportedProgram) else load_pt2(model)
    return _import(exported, _root_class(exported), None)


def _import(exported: ExportedProgram, name: str, reference: Callable[..., object] | None) -> Program:
    functional = decompose(exported)
    drop_checks(functional)
    nodes = list(functional.graph.nodes)
    aliases = find_aliases(nodes)
    live = live_nodes(nodes)
    refuse([*strange_inputs(functional), *survey(live)])
    signature = read_signature(functional)
    folded = _folded(live, signature)
    lowering = NodeLowering(signature, aliases, folded)
    for node in live:
        if node.op == "call_function" and node not in aliases and node not in folded:
            lowering.lower(node)
    lowering.finish([r.node for r in signature.results])
    return Program(
        module=_module(name, signature, lowering),
        name=name,
        arguments=tuple(lowering.arguments),
        values=lowering.values | _by_recipe(signature, lowering),
        results=tuple(r.name for r in signature.results),
        mutations={i: r.mutates for i, r in enumerate(signature.results) if r.mutates is not None},
        input_leaves=signature.input_leaves,
        output_leaves=signature.output_leaves,
        input_tree=signature.input_tree,
        output_tree=signature.output_tree,
        reference=exported if reference is None else reference,
        memory=output_memory(exported, signature),
        recipes=lowering.recipes,
        ties=signature.tied_names,
        names=signature.names,
    )


def _folded(live: Sequence[Node], signature: Signature) -> Folded:
    """What no call can change: known, or computed from the buffers of the model once they have values."""
    foldable = {s.node: s for s in signature.slots if s.foldable}
    known = {n: s.value for n, s in foldable.items() if s.argument.kind == "constant" and s.value is not None}
    buffers = {n: s.argument.name for n, s in foldable.items() if n not in known}
    tied = {node: buffers[first] for node, first in signature.ties.items() if first in buffers}
    return Folded(live, known, buffers | tied)


def _by_recipe(signature: Signature, lowering: NodeLowering) -> dict[str, torch.Tensor]:
    """The constants that follow from buffers which have values."""
    buffers = {s.argument.name: s.value for s in signature.slots if s.value is not None}
    recipes = lowering.recipes.items()
    return {name: recipe.value(buffers) for name, recipe in recipes if set(recipe.leaves) <= set(buffers)}


def _module(name: str, signature: Signature, lowering: NodeLowering) -> ModuleOp:
    arguments = [
        {"aten.name": a.name, "aten.kind": a.kind}
        | _bounds(lowering.values.get(a.name) if a.kind == "constant" else None)
        for a in lowering.arguments
    ]
    results = [
        {"aten.name": r.name} | ({} if r.mutates is None else {"aten.mutates": r.mutates}) for r in signature.results
    ]
    returned = cast(func.ReturnOp, lowering.block.last_op)
    function = func.FuncOp(
        "main",
        ([v.type for v in lowering.block.args], [v.type for v in returned.arguments]),
        Region(lowering.block),
        arg_attrs=_dictionaries(arguments),
        res_attrs=_dictionaries(results),
    )
    attributes: dict[str, Attribute] = {
        "aten.input_leaves": _leaves(
            [leaf if isinstance(leaf, TreeConstant) else leaf.name for leaf in signature.input_leaves]
        ),
        "aten.output_leaves": _leaves(signature.output_leaves),
    }
    for key, tree in (("aten.input_tree", signature.input_tree), ("aten.output_tree", signature.output_tree)):
        if (text := _tree_text(tree)) is not None:
            attributes[key] = StringAttr(text)
    module = ModuleOp([function], attributes, StringAttr(name))
    if has_halves(module):
        keep_wide(module)
    return module


def _bounds(value: torch.Tensor | None) -> dict[str, tuple[int, int]]:
    """The least and the largest integer of a constant, which decide the format it has on the device.

    Floats have them if they count, as positions do: whole numbers, and more of them than a mask has.
    """
    if value is None or value.dtype is torch.bool or value.is_complex() or not value.numel():
        return {}
    low, high = value.min().item(), value.max().item()
    if value.is_floating_point() and not (1 < high - low <= _MOST_COUNTED and bool((value == value.floor()).all())):
        return {}
    return {"aten.bounds": (int(low), int(high))}


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


def _tree_text(tree: TreeSpec) -> str | None:
    """The tree as torch serialises it; None for classes that torch cannot serialise."""
    try:
        return treespec_dumps(tree)
    except (NotImplementedError, TypeError, ValueError):
        return None


def _root_class(exported: ExportedProgram) -> str:
    """The name of the class that was exported, which torch notes at every node."""
    for node in exported.graph.nodes:
        stack = cast("dict[str, tuple[str, object]]", node.meta.get("nn_module_stack") or {})
        for _, kind in stack.values():
            text = kind if isinstance(kind, str) else getattr(kind, "__name__", "program")
            return _identifier(text.rsplit(".", 1)[-1])
    return "program"


def _identifier(class_name: str) -> str:
    """A class name in lower case with underscores: ``LlamaForCausalLM`` gives ``llama_for_causal_lm``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()
    return re.sub(r"\W", "_", words).strip("_") or "program"
