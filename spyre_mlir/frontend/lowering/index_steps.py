"""Arithmetic that makes indices of arguments, as steps of a note that the host repeats at every call.

Decision: docs/decisions/0244-the-host-repeats-how-indices-are-made.md
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import torch
from torch.fx import Node
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from spyre_mlir.dialects.argument_notes import OF_ANOTHER
from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.element_types import ELEMENT_TYPES
from spyre_mlir.frontend.symbolic.sizes import Sizes
from spyre_mlir.frontend.torch_private import free_unbacked_symbols
from spyre_mlir.ops.helpers.index_steps import FLOAT_STEPS, STEPS, takes

# Longer arithmetic is no index of an argument any more, and would make the note longer than the program.
MOST_STEPS = 64
# So are steps with more numbers, which would take the host longer than the call.
MOST_ELEMENTS = 1 << 24
_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
_FLOATS = (torch.float32, torch.float64)
_HALVES = (torch.float16, torch.bfloat16)  # of these, conversions alone
_OF_FLOATS = (torch.int64, torch.int32, torch.bool)  # others do not say what they make of a float that is too large
# Arguments that say nothing of the numbers.
_NO_ARGUMENTS = (
    *("dtype", "layout", "device", "memory_format", "non_blocking", "copy", "implicit", "pin_memory", "out_int32"),
    *("stable", "sparse", "sparse_grad", "padding_idx", "scale_grad_by_freq"),
)
_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")
_CONVERTING = ("to", "_to_copy")
# The result of a number of operators with two, as steps.
_OF_TWO: Mapping[str, tuple[str, str]] = {
    "sort": ("sort", "argsort"),
    "max": ("amax", "argmax"),
    "min": ("amin", "argmin"),
}
_IN_PARTS = ("split", "chunk", "split_with_sizes", "tensor_split")


@dataclass(frozen=True)
class Made:
    """How indices are made.

    Attributes:
        carrier: the argument that has the note; the first input, if there is one.
        by: the steps.
    """

    carrier: Node
    by: ArrayAttr[Attribute]


def steps_to(index: Node, sizes: Sizes, names: Mapping[Node, str], inputs: Collection[Node]) -> Made | None:
    """Return how indices are made of arguments; None if not all of it are steps.

    Args:
        index: what is made.
        sizes: the symbols of the program.
        names: of the arguments.
        inputs: those among them that calls give.
    """
    order = _calls(index)
    if order is None or len(order) > MOST_STEPS:
        return None
    read = [n for n in order if n.op == "placeholder"]
    sources = [n for n in names if n in read]
    if not sources or len(sources) < len(read):
        return None
    carrier = next((s for s in sources if s in inputs), sources[0])
    numbers = {s: "%0" if names[s] == names[carrier] else OF_ANOTHER + names[s] for s in sources}
    steps: list[Attribute] = []
    for call in order:
        if call.op != "placeholder":
            if (step := _step(call, numbers, sizes)) is None:
                return None
            steps.append(step)
            numbers[call] = f"%{len(steps)}"
    return Made(carrier, ArrayAttr(steps))


def _calls(index: Node) -> list[Node] | None:
    """What an index is made of, operands first; None if not all of it are numbers and known operators."""
    order: dict[Node, None] = {}
    left = [index]
    while left:
        node = left[-1]
        if node in order:
            left.pop()
            continue
        if not _is_step(node) or len(left) + len(order) > 4 * MOST_STEPS:
            return None
        missing = [n for n in _operands(node) if n not in order]
        if not missing:
            order[left.pop()] = None
        left += missing
    return list(order)


def _operands(node: Node) -> list[Node]:
    """The tensors that a node is made of; of one of several results, those of the call."""
    call = cast(Node, node.args[0]) if node.target is operator.getitem else node
    return [n for n in call.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]


def _is_step(node: Node) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dtype not in (*_WHOLE, *_FLOATS, *_HALVES):
        return False
    extents = list(cast("Iterable[Any]", value.shape))
    if any(isinstance(extent, torch.SymInt) and free_unbacked_symbols(extent) for extent in extents):
        return False
    if node.op == "placeholder":  # runs in device numerics have no more than 32 bits
        return value.dtype is not torch.float64
    if node.op != "call_function" or prod(e for e in extents if isinstance(e, int)) > MOST_ELEMENTS:
        return False
    if node.target is operator.getitem:
        name = _name(cast(Node, node.args[0]))
        return name in _IN_PARTS or name in _OF_TWO
    return _name(node) in STEPS and _is_exact(node)


def _is_exact(node: Node) -> bool:
    """Whether the host computes what eager computes."""
    name = _name(node)
    dtypes = [n.meta["val"].dtype for n in _operands(node)]
    made = node.meta["val"].dtype
    if name == "index" and any(d in (torch.bool, torch.uint8) for d in dtypes[1:]):
        return False  # masks
    if all(d in _WHOLE for d in (made, *dtypes)):
        return True
    if name not in FLOAT_STEPS or made not in (*_FLOATS, *_HALVES, *_OF_FLOATS):
        return False
    if any(d in _HALVES for d in (made, *dtypes)):
        return name in _CONVERTING
    # Types that are compared with each other are converted first; a sum of multiples is rounded once.
    same = name not in _COMPARING or len(set(dtypes)) == 1
    return same and node.kwargs.get("alpha", 1) in (1,)


def _name(node: Node) -> str:
    packet: Any = getattr(node.target, "overloadpacket", None)
    name = str(getattr(packet, "__name__", ""))
    return name if packet is not None and getattr(torch.ops.aten, name, None) is packet else ""


def _step(call: Node, numbers: dict[Node, str], sizes: Sizes) -> Attribute | None:
    kind = ELEMENT_TYPES[call.meta["val"].dtype]
    made = _part(call) if call.target is operator.getitem else (_name(call), _given(call))
    if made is None or not takes(*made):  # as `view` of another type
        return None
    name, given = made
    if name == "pow" and not (type(given["exponent"]) is int and given["exponent"] >= 0):
        return None
    try:
        spelled = {key: _spelled(value, numbers, sizes) for key, value in given.items()}
    except TypeError:  # a kind of argument that no step has
        return None
    return DictionaryAttr({"call": StringAttr(f"aten.{name}"), "as": kind, **spelled})


def _given(call: Node) -> dict[str, Any]:
    bound = {n: b for n, b in bind(call).items() if n not in _NO_ARGUMENTS}
    return {n: b.value for n, b in bound.items() if not (b.is_default and b.value is None)}


def _part(node: Node) -> tuple[str, dict[str, Any]] | None:
    """One of several results, as a step of its own; None if it is none."""
    call, number = cast("tuple[Node, int]", node.args)
    name, given = _name(call), _given(call)
    if name in _OF_TWO:
        if "dim" not in given:
            return None
        order = {"descending": given["descending"]} if name == "sort" else {"keepdim": given["keepdim"]}
        return _OF_TWO[name][number], {"self": given["self"], "dim": given["dim"], **order}
    dim = given.get("dim", 0)
    if type(dim) is not int:
        return None
    extents = [part.shape[dim] for part in call.meta["val"][: number + 1]]
    if not all(type(extent) is int for extent in extents):
        return None
    return "slice", {"self": given["self"], "dim": dim, "start": sum(extents[:-1]), "end": sum(extents), "step": 1}


def _spelled(value: object, numbers: dict[Node, str], sizes: Sizes) -> Attribute:
    if isinstance(value, Node) and value in numbers:
        return StringAttr(numbers[value])
    items: Collection[object] = cast("Collection[object]", value) if isinstance(value, (list, tuple)) else ()
    if any(isinstance(item, Node) for item in items):
        return ArrayAttr([_spelled(item, numbers, sizes) for item in items])
    return to_attribute(sizes.spelled(cast(object, value)))


__all__ = ["MOST_STEPS", "Made", "steps_to"]
