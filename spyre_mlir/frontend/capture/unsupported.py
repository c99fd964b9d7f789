"""Graph contents that no aten program can express: collected at once, reported with the user's own lines.

Decision: docs/decisions/0255-operands-that-eager-refuses-are-refused.md
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import cast

import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.arguments import draws_on_host, exchanges, is_random, overload_name, walks
from spyre_mlir.frontend.capture.as_strided import walked
from spyre_mlir.frontend.capture.control_flow.kept import calls_graphs, is_kept, nodes_within, operands_of
from spyre_mlir.frontend.element_types import ELEMENT_TYPES
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.symbolic.sizes import STATIC, is_symbolic_node, torch_symbols
from spyre_mlir.frontend.torch_private import HigherOrderOperator, Operator, OpOverload, free_unbacked_symbols
from spyre_mlir.ops.native.collectives import NAMES, NAMESPACE, WAIT

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
# Operators of process groups; a host step would neither wait for them nor call them on all ranks.
_OF_GROUPS = ("_c10d_functional", "_c10d_functional_autograd", "c10d", "_dtensor", "symm_mem")
_SPELLED = (bool, int, float, str, type(None), torch.dtype, torch.layout, torch.device, torch.memory_format)
PLACES_SHOWN = 4

DATA = "sizes and branches must not depend on the values of tensors: use masks or torch.where"
SIZES = "compile(model, example inputs) divides a model where data decides a size; else use masks or torch.where"
EVAL = "call model.eval(), or pass the random numbers as an input"
_PLAIN_TYPE = "use a plain float or integer type"
HIGHER = "write the operation with plain tensor operations"
DENSE = "use dense tensors"
PADDED = "use tensors of one length, as torch.nested.to_padded_tensor gives them, and masks"
OTHER_MEMORY = "the model gives a tensor other memory: it assigns to its `data`"
WRITE = "write to the tensor: x.copy_(y)"
MEMORY = "walk a tensor without gaps: make it contiguous, or walk the tensor it is a view of"
REAL = "compute with real and imaginary parts as two real tensors"
COLLECTIVES = f"call one of torch.distributed._functional_collectives per tensor: {', '.join(NAMES)}"
STRANGE = "it is a collective without a form", COLLECTIVES
POWER = (
    "it is a power of truth values, which torch traces as int64 where eager gives bool, or refuses it",
    "raise a number to the power: mask.long() ** exponent",
)
ALIKE = "bring them to one type: x.to(weight.dtype), or model.half() for inputs of half precision"
# Of these the shape functions of torch, which a trace runs, miss operands of several types; the kernels refuse them.
_OF_ONE_TYPE = frozenset({"linear", "matmul", "mm", "addmm", "index_copy"})
TRUTH = "compare, and reduce to one element: (x > 0).any()"


@dataclass(frozen=True)
class UnsupportedNode:
    """One construct that cannot be imported: the op, the reason, the location, and a remedy."""

    op: str
    reason: str
    place: str
    hint: str


def op_name(node: torch.fx.Node) -> str:
    """Return the op of a node as users know it, e.g. ``aten.topk``."""
    return str(node.target).removesuffix(".default") if node.op == "call_function" else f"input {node.name}"


def refuse(findings: list[UnsupportedNode]) -> None:
    """Raise one error for all findings, grouped by op.

    Raises:
        UnsupportedError: there is at least one finding.
    """
    if not findings:
        return
    groups: dict[tuple[str, str], list[UnsupportedNode]] = {}
    for finding in findings:
        groups.setdefault((finding.op, finding.reason), []).append(finding)
    lines = [
        f"{len(findings)} parts of this model cannot be expressed"
        if len(findings) > 1
        else "a part of this model cannot be expressed"
    ]
    for (op, reason), members in groups.items():
        places = list(dict.fromkeys(m.place for m in members))
        more = f", and {len(places) - PLACES_SHOWN} more" if len(places) > PLACES_SHOWN else ""
        lines += [f"  {len(members)} x {op}: {reason}", f"      {', '.join(places[:PLACES_SHOWN])}{more}"]
    raise UnsupportedError(
        "\n".join(lines), where=findings[0].place, hint="; ".join(dict.fromkeys(f.hint for f in findings))
    )


def survey(nodes: Iterable[torch.fx.Node], symbols: Collection[str] = ()) -> list[UnsupportedNode]:
    """Return everything in the nodes that cannot be imported.

    Args:
        nodes: the calls of a graph.
        symbols: torch's names of the symbols that inputs of the program say.
    """
    findings: list[UnsupportedNode] = []
    for node in nodes:
        reason = _reason(node, symbols)
        if reason is not None:
            findings.append(UnsupportedNode(op_name(node), reason[0], place_of(node), reason[1]))
        elif calls_graphs(node):
            findings += survey(nodes_within(node), symbols)
    return findings


def _reason(node: torch.fx.Node, symbols: Collection[str]) -> tuple[str, str] | None:
    """Return why a node cannot be imported, with a remedy."""
    values = _leaves(node.meta.get("val"))
    if node.op == "call_function":
        reason = _control_reason(node, symbols) if calls_graphs(node) else _call_reason(node)
        if reason is not None:
            return reason
    if node.op == "call_function" and any(isinstance(v, _SYMBOLS) and free_unbacked_symbols(v) for v in values):
        return "its result is a number that depends on the data", DATA
    return next((r for v in values if isinstance(v, torch.Tensor) and (r := _tensor_reason(v)) is not None), None)


def _call_reason(node: torch.fx.Node) -> tuple[str, str] | None:
    """Return why a call cannot be imported, whatever its result is."""
    if isinstance(node.target, HigherOrderOperator):
        return "higher-order operations have no form", HIGHER
    if node.meta.get("unbacked_bindings"):
        return "a number or a shape in it depends on the data", SIZES
    if isinstance(node.target, OpOverload):
        if walks(node) and is_symbolic_node(node):
            return "it walks memory in steps that depend on symbols", STATIC
        if walks(node) and walked(node) is None:
            return "it walks memory that its tensor has gaps in", MEMORY
        if is_strange_collective(node):
            return STRANGE
        if is_random(node) and not draws_on_host(node):
            return "it draws random numbers that the host cannot draw for it", EVAL
        if _is_power_of_truth_values(node):
            return POWER
        return _mixed_operands(node) or _odd_argument(node)
    known = node.target is operator.getitem or any(isinstance(v, _SYMBOLS) for v in _leaves(node.meta.get("val")))
    return None if known else ("this is not a tensor operation", HIGHER)


def is_strange_collective(node: torch.fx.Node) -> bool:
    """Return whether a call of an operator is one of several ranks, and none that the op table has."""
    target = cast(Operator, node.target)
    waits = overload_name(target) == f"{NAMESPACE}::{WAIT}"
    return target.namespace in _OF_GROUPS and not exchanges(node) and not waits


def _is_power_of_truth_values(node: torch.fx.Node) -> bool:
    """Return whether a call raises truth values to the power of truth values."""
    if getattr(node.target, "overloadpacket", None) is not torch.ops.aten.pow:
        return False
    values = [v.meta.get("val") if isinstance(v, torch.fx.Node) else v for v in node.args]
    return all(v.dtype is torch.bool if isinstance(v, torch.Tensor) else isinstance(v, bool) for v in values)


def _control_reason(node: torch.fx.Node, symbols: Collection[str]) -> tuple[str, str] | None:
    """Return why control flow cannot be imported; loops over slices that cannot have been unrolled."""
    if not is_kept(node):
        return None
    predicate, operands = operands_of(node)
    given: list[object] = [*operands] if predicate is None else [predicate, *operands]
    if not all(isinstance(n, torch.fx.Node) and _is_handed(n.meta.get("val"), symbols) for n in given):
        return "it takes numbers or sizes of Python", "pass tensors to the branches and bodies: torch.tensor(n)"
    if not all(torch_symbols(n.meta.get("val")) <= {*symbols} for n in (node, *nodes_within(node))):
        return "data decides sizes in it", STATIC
    value = None if predicate is None else predicate.meta["val"]
    if isinstance(value, torch.Tensor) and (value.dtype is not torch.bool or value.dim()):
        return f"its predicate is {value.dtype} of shape {list(value.shape)}, expected one truth value", TRUTH
    return None


def _is_handed(value: object, symbols: Collection[str]) -> bool:
    """Return whether control flow may be given a value: a tensor, or a number that sizes of inputs say."""
    return isinstance(value, torch.Tensor) or (isinstance(value, _SYMBOLS) and torch_symbols(value) <= {*symbols})


def is_complex_node(node: torch.fx.Node) -> bool:
    """Return whether a node gives complex numbers."""
    return any(isinstance(v, torch.Tensor) and v.is_complex() for v in _leaves(node.meta.get("val")))


def _tensor_reason(value: torch.Tensor) -> tuple[str, str] | None:
    if value.is_complex():
        return None  # left only beside what has no form on pairs of real tensors, which is said by its operator
    if value.dtype not in ELEMENT_TYPES:
        return f"element type {value.dtype} has no form", _PLAIN_TYPE
    if value.layout is not torch.strided:
        return f"layout {value.layout} has no form", DENSE
    return None


def _mixed_operands(node: torch.fx.Node) -> tuple[str, str] | None:
    name = overload_name(cast(Operator, node.target))
    if name not in _OF_ONE_TYPE:
        return None
    values = [leaf.meta.get("val") for leaf in _leaves(node.args) if isinstance(leaf, torch.fx.Node)]
    numbers = values[::2] if name == "index_copy" else values  # between tensor and source are indices
    types = dict.fromkeys(str(value.dtype) for value in numbers if isinstance(value, torch.Tensor))
    if len(types) <= 1:
        return None
    return f"its operands are {' and '.join(types)}, and torch takes one type alone", ALIKE


def _odd_argument(node: torch.fx.Node) -> tuple[str, str] | None:
    for leaf in _leaves([*node.args, *node.kwargs.values()]):
        if not isinstance(leaf, (*_SPELLED, *_SYMBOLS, complex, torch.fx.Node)):
            return f"an argument of type {type(leaf).__name__} has no form", HIGHER
        if isinstance(leaf, torch.dtype) and leaf not in ELEMENT_TYPES and not leaf.is_complex:
            return f"element type {leaf} has no form", _PLAIN_TYPE
    return None


def _leaves(value: object) -> list[object]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in cast("list[object]", value) for leaf in _leaves(item)]
    return [value]
