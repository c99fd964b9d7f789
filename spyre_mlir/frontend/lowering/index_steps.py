"""Arithmetic that makes indices of one argument, as steps of a note that the host repeats at every call.

Decision: docs/decisions/0063-positions-are-compared.md
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import torch
from torch.fx import Node
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.ir.index_steps import STEPS, takes
from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.element_types import ELEMENT_TYPES
from spyre_mlir.frontend.symbolic.sizes import Sizes
from spyre_mlir.frontend.torch_private import free_unbacked_symbols

# Longer arithmetic is no index of an argument any more, and would make the note longer than the program.
MOST_STEPS = 64
_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
_NO_ARGUMENTS = ("dtype", "memory_format", "non_blocking", "copy", "implicit", "pin_memory")


def steps_to(index: Node, sizes: Sizes) -> tuple[Node, ArrayAttr[Attribute]] | None:
    """Return the argument that indices are made of, and the steps from it; None if they are made of more, or of floats.

    Args:
        index: what is made.
        sizes: the symbols of the program.
    """
    order = _calls(index)
    if order is None:
        return None
    sources = [n for n in order if n.op == "placeholder"]
    if len(sources) != 1 or len(order) > MOST_STEPS:
        return None
    steps: list[Attribute] = []
    numbers = {sources[0]: "%0"}
    for call in order:
        if call is not sources[0]:
            if (step := _step(call, numbers, sizes)) is None:
                return None
            steps.append(step)
            numbers[call] = f"%{len(steps)}"
    return sources[0], ArrayAttr(steps)


def _calls(index: Node) -> list[Node] | None:
    """What an index is made of, operands first; None if not all of it are whole numbers and known operators."""
    order: dict[Node, None] = {}
    left = [index]
    while left:
        node = left[-1]
        if node in order:
            left.pop()
            continue
        if not _is_step(node) or len(left) + len(order) > 4 * MOST_STEPS:
            return None
        missing = [n for n in node.all_input_nodes if n not in order and isinstance(n.meta.get("val"), torch.Tensor)]
        if not missing:
            order[left.pop()] = None
        left += missing
    return list(order)


def _is_step(node: Node) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dtype not in _WHOLE:
        return False
    if any(isinstance(extent, torch.SymInt) and free_unbacked_symbols(extent) for extent in cast(Any, value).shape):
        return False
    return node.op == "placeholder" or (node.op == "call_function" and _name(node) in STEPS)


def _name(node: Node) -> str:
    packet: Any = getattr(node.target, "overloadpacket", None)
    name = str(getattr(packet, "__name__", ""))
    return name if packet is not None and getattr(torch.ops.aten, name, None) is packet else ""


def _step(call: Node, numbers: dict[Node, str], sizes: Sizes) -> Attribute | None:
    given = {
        n: b.value for n, b in bind(call).items() if n not in _NO_ARGUMENTS and not (b.is_default and b.value is None)
    }
    if not takes(_name(call), given):  # as `view` of another type
        return None
    try:
        spelled = {name: _spelled(value, numbers, sizes) for name, value in given.items()}
    except TypeError:  # a kind of argument that no step has
        return None
    kind = ELEMENT_TYPES[call.meta["val"].dtype]
    return DictionaryAttr({"call": StringAttr(f"aten.{_name(call)}"), "as": kind, **spelled})


def _spelled(value: object, numbers: dict[Node, str], sizes: Sizes) -> Attribute:
    if isinstance(value, Node) and value in numbers:
        return StringAttr(numbers[value])
    items: Collection[object] = cast("Collection[object]", value) if isinstance(value, (list, tuple)) else ()
    if any(isinstance(item, Node) for item in items):
        return ArrayAttr([_spelled(item, numbers, sizes) for item in items])
    return to_attribute(sizes.spelled(cast(object, value)))


__all__ = ["MOST_STEPS", "steps_to"]
