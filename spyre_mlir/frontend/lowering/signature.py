"""The calling convention of an exported program: the argument of each placeholder, the node of each result."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Node

from spyre_mlir.frontend.capture.as_strided import placed
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram
from spyre_mlir.frontend.capture.unsupported import HIGHER, UnsupportedNode
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.program.complex_tensors import as_real
from spyre_mlir.frontend.program.program import ARGUMENT_KINDS, Argument, ArgumentKind, TreeConstant
from spyre_mlir.frontend.symbolic.sizes import Sizes, open_shape
from spyre_mlir.frontend.torch_private import TreeSpec, is_real, storage_identity, tree_flatten, tree_flatten_with_path

_KINDS: dict[InputKind, ArgumentKind] = {
    InputKind.USER_INPUT: "input",
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
}


@dataclass(frozen=True)
class PlaceholderSlot:
    """A placeholder that holds a tensor.

    Attributes:
        value: the tensor, if the model owns one that has elements.
        foldable: whether the value belongs to the program, not to the weights, and no call changes it.
        memory: what two placeholders share if they read the same memory the same way; None to stay apart.
        example: the tensor that an input that is a weight had when the program was imported, if its sizes are numbers.
    """

    node: Node
    argument: Argument
    value: torch.Tensor | None = None
    foldable: bool = False
    memory: tuple[object, ...] | None = None
    example: torch.Tensor | None = None


@dataclass(frozen=True)
class ProgramResult:
    """A result of the function: the node that makes it, its name, and the argument it updates, if any.

    Attributes:
        is_complex: whether its last dimension of two stands for complex numbers.
    """

    node: Node
    name: str
    mutates: str | None = None
    is_complex: bool = False


@dataclass(frozen=True)
class Signature:
    """Arguments in order, placeholders that share a tensor, and both trees.

    Attributes:
        slots: the arguments: inputs, parameters, buffers, constants.
        ties: placeholders of weights that share storage with an earlier one, to that one.
        tied_names: the same by the names of the weights.
        names: names of all weights.
    """

    slots: tuple[PlaceholderSlot, ...]
    ties: Mapping[Node, Node]
    tied_names: Mapping[str, str]
    names: frozenset[str]
    input_leaves: tuple[Argument | TreeConstant, ...]
    results: tuple[ProgramResult, ...]
    output_leaves: tuple[int | TreeConstant, ...]
    input_tree: TreeSpec
    output_tree: TreeSpec


def strange_inputs(exported: FunctionalProgram) -> list[UnsupportedNode]:
    """Return inputs that are neither tensors nor plain constants, such as script objects."""
    return [
        UnsupportedNode(
            f"input {spec.arg.name}", f"an input of kind {spec.kind.name} has no form", spec.arg.name, HIGHER
        )
        for spec in exported.graph_signature.input_specs
        if spec.kind not in _KINDS or not isinstance(spec.arg, (TensorArgument, ConstantArgument, SymIntArgument))
    ]


def reshaped_inputs(exported: FunctionalProgram) -> list[UnsupportedNode]:
    """Return inputs and buffers that the model gives another shape in place, as `x.t_()` does."""
    nodes = {n.name: n for n in exported.graph.nodes}
    held = {spec.target: spec.arg.name for spec in exported.graph_signature.input_specs if spec.target is not None}
    found: list[UnsupportedNode] = []
    for spec in exported.graph_signature.output_specs:
        if spec.kind is OutputKind.USER_OUTPUT or spec.target is None:
            continue
        name = spec.target if _of_input(spec) else held.get(spec.target, spec.target)
        before, after = (str(list(nodes[n].meta["val"].shape)) for n in (name, spec.arg.name))
        if before != after:
            reason, hint = f"its shape changes in place, from {before} to {after}", "return the tensor in its new shape"
            found.append(UnsupportedNode(f"input {name}", reason, place_of(nodes[spec.arg.name]), hint))
    return found


def weights_among(exported: ExportedProgram) -> dict[str, torch.nn.Parameter]:
    """Return the inputs that are parameters in the example, by placeholder: as `torch.compile` hands them over."""
    specs = [spec for spec in exported.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    leaves, _ = tree_flatten(exported.example_inputs)
    if len(leaves) != len(specs):  # a program without an example
        return {}
    pairs = zip(specs, leaves, strict=True)
    return {spec.arg.name: leaf for spec, leaf in pairs if isinstance(leaf, torch.nn.Parameter)}


def read_signature(
    exported: FunctionalProgram, sizes: Sizes, weights: Mapping[str, torch.nn.Parameter] | None = None
) -> Signature:
    """Name and order the arguments and results of a functional program without strange inputs.

    Args:
        exported: the program.
        sizes: its symbols.
        weights: see `weights_among`.
    """
    weights = weights or {}
    nodes = {n.name: n for n in exported.graph.nodes}
    places = placed(exported.graph)
    mutated = _mutated(exported)
    rename = _input_namer(exported.graph_signature.input_specs)
    slots: list[PlaceholderSlot] = []
    leaves: list[Argument | TreeConstant] = []
    for spec in exported.graph_signature.input_specs:
        if isinstance(spec.arg, ConstantArgument):
            leaves.append(TreeConstant(spec.arg.name, spec.arg.value))
            continue
        if isinstance(spec.arg, SymIntArgument):
            leaves.append(TreeConstant(spec.arg.name, sizes.leaf(nodes[spec.arg.name].meta["val"])))
            continue
        slot = _slot(exported, spec, nodes[spec.arg.name], rename, spec.arg.name in mutated)
        if slot.argument.kind == "input":
            weight = weights.get(spec.arg.name)
            lasts = weight is not None and not weight.requires_grad and spec.arg.name not in mutated
            argument = replace(
                slot.argument, placement=places.get(slot.node), is_weight=weight is not None, lasts=lasts
            )
            slot = replace(slot, argument=argument, example=None if sizes.names else weight)
            leaves.append(slot.argument)
        slots.append(slot)
    slots.sort(key=lambda slot: ARGUMENT_KINDS.index(slot.argument.kind))
    ties = _ties(slots)
    names = {slot.node: slot.argument.name for slot in slots}
    results, output_leaves = _results(exported, nodes, {node.name: name for node, name in names.items()}, sizes)
    return Signature(
        tuple(s for s in slots if s.node not in ties),
        ties,
        {names[tied]: names[first] for tied, first in ties.items()},
        frozenset(slot.argument.name for slot in slots if slot.argument.kind != "input"),
        tuple(leaves),
        results,
        output_leaves,
        cast(TreeSpec, exported.call_spec.in_spec),
        cast(TreeSpec, exported.call_spec.out_spec),
    )


def _mutated(exported: FunctionalProgram) -> set[str]:
    """Names of the placeholders whose new value is among the results."""
    specs = exported.graph_signature.input_specs
    by_target = {spec.target: spec.arg.name for spec in specs if spec.target is not None}
    written = [s for s in exported.graph_signature.output_specs if s.kind is not OutputKind.USER_OUTPUT]
    return {s.target if _of_input(s) else by_target.get(s.target, s.target) for s in written if s.target}


def _of_input(spec: OutputSpec) -> bool:
    """Return whether an updated value belongs to an input, whose target names the placeholder, and not to a weight."""
    return spec.kind is OutputKind.USER_INPUT_MUTATION


def _input_namer(specs: list[InputSpec]) -> Callable[[str], str]:
    """Keeps an input's name apart from those of the weights, which must stay as they are."""
    taken = {spec.target for spec in specs if spec.target is not None}

    def rename(name: str) -> str:
        while name in taken:
            name += "_in"
        return name

    return rename


def _slot(
    exported: FunctionalProgram, spec: InputSpec, node: Node, rename: Callable[[str], str], mutated: bool
) -> PlaceholderSlot:
    example = cast(torch.Tensor, node.meta["val"])
    name = rename(node.name) if spec.target is None else spec.target
    shape = open_shape(example)
    kept = spec.kind is InputKind.PARAMETER or (spec.kind is InputKind.BUFFER and bool(spec.persistent))
    is_complex = node.name in exported.complex_inputs
    argument = Argument(name, _KINDS[spec.kind], shape, example.dtype, mutated, persistent=kept, is_complex=is_complex)
    if spec.target is None:
        return PlaceholderSlot(node, argument)
    value = exported.state_dict.get(spec.target, exported.constants.get(spec.target))
    foldable = not kept and not mutated
    if not isinstance(value, torch.Tensor):
        return PlaceholderSlot(node, argument, foldable=foldable)
    memory = (
        None
        if mutated or value.numel() == 0
        else (storage_identity(value), value.dtype, tuple(value.shape), value.stride(), value.storage_offset())
    )
    if not is_real(value):
        return PlaceholderSlot(node, argument, None, foldable, memory)
    return PlaceholderSlot(node, argument, as_real(value.detach()), foldable, memory)


def _ties(slots: list[PlaceholderSlot]) -> dict[Node, Node]:
    """Weights that are the same memory read the same way become one argument, named as the first.

    Programs that were saved without values come back with one storage for all weights, of any shape: that says nothing.
    """
    shapes: dict[object, set[object]] = {}
    for slot in slots:
        if slot.memory is not None and slot.value is None:
            shapes.setdefault(slot.memory[0], set()).add(slot.memory[2])
    first: dict[object, Node] = {}
    ties: dict[Node, Node] = {}
    for slot in slots:
        if slot.memory is None or (slot.value is None and len(shapes[slot.memory[0]]) > 1):
            continue
        if first.setdefault(slot.memory, slot.node) is not slot.node:
            ties[slot.node] = first[slot.memory]
    return ties


def _results(
    exported: FunctionalProgram, nodes: Mapping[str, Node], arguments: Mapping[str, str], sizes: Sizes
) -> tuple[tuple[ProgramResult, ...], tuple[int | TreeConstant, ...]]:
    """The user's outputs, then the new values of mutated arguments."""
    specs = exported.graph_signature.output_specs
    user = [(n, s) for n, s in enumerate(specs) if s.kind is OutputKind.USER_OUTPUT]
    names = output_names(cast(TreeSpec, exported.call_spec.out_spec), len(user))
    results: list[ProgramResult] = []
    leaves: list[int | TreeConstant] = []
    for name, (number, spec) in zip(names, user, strict=True):
        if isinstance(spec.arg, ConstantArgument):
            leaves.append(TreeConstant(name, spec.arg.value))
        elif isinstance(spec.arg, SymIntArgument):
            leaves.append(TreeConstant(name, sizes.leaf(nodes[spec.arg.name].meta["val"])))
        else:
            leaves.append(len(results))
            is_complex = number in exported.complex_outputs
            results.append(ProgramResult(nodes[spec.arg.name], name, is_complex=is_complex))
    for spec in specs:
        if spec.kind is not OutputKind.USER_OUTPUT and spec.target is not None:
            target = arguments[spec.target] if _of_input(spec) else spec.target
            results.append(ProgramResult(nodes[spec.arg.name], f"new.{target}", mutates=target))
    return tuple(results), tuple(leaves)


def output_names(tree: TreeSpec, count: int) -> list[str]:
    """Names of the leaves by their path, e.g. ``logits``, ``states.0``; ``output`` for a lone tensor."""
    try:
        # Functions of some classes take tensors for leaves, and nothing else.
        paths, _ = tree_flatten_with_path(tree.unflatten([torch.empty(0)] * count))
        names = ["".join(str(key) for key in path) for path, _ in paths]
    except (TypeError, ValueError, AttributeError):  # an output class without named fields
        names = [f"[{i}]" for i in range(count)]
    plain = [re.sub(r"\[['\"]?([^'\"\]]+)['\"]?\]", r".\1", name).strip(".") for name in names]
    return [f"output.{n}" if n[:1].isdigit() else n or "output" for n in plain]
