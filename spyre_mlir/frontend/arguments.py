"""Arguments of one node, read by the schema of its operator without loss or guess.

Dropped on purpose, because a program here has one device and value semantics: `device`, `layout`,
`pin_memory` and `generator`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch.fx import Node
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten_arguments import NoneAttr, OperandsAttr, to_attribute
from spyre_mlir.frontend.element_types import ELEMENT_TYPES
from spyre_mlir.frontend.torch_private import Operator, OpOverload, schema_of
from spyre_mlir.ops.checks import is_check
from spyre_mlir.ops.draws import draws
from spyre_mlir.ops.native.collectives import is_collective
from spyre_mlir.ops.parameters import ArgKind, Param
from spyre_mlir.ops.table import OpEntry

DROPPED = frozenset({"device", "layout", "pin_memory", "generator"})


class NotInTableError(Exception):
    """The arguments of a node exceed what the table entry of its overload accepts."""


@dataclass(frozen=True)
class BoundArgument:
    """One argument: its value (nodes included), and whether it equals the schema's default."""

    value: object
    is_default: bool


@dataclass(frozen=True)
class Spelled:
    """Operands and attributes of the op to create."""

    operands: list[SSAValue]
    attributes: dict[str, Attribute]


Resolve = Callable[[str, Node], "SSAValue | int | float | bool"]


def overload_name(target: OpOverload) -> str:
    """Return the overload in the aten dialect's spelling: ``add.Tensor``, ``mm``, ``mylib::foo``."""
    name = str(target).removesuffix(".default")
    namespace, rest = name.split(".", 1)
    return rest if namespace == "aten" else f"{namespace}::{rest}"


def bind(node: Node) -> dict[str, BoundArgument]:
    """Return every argument of the node's schema by name, defaults filled in."""
    target = cast(OpOverload, node.target)
    bound: dict[str, BoundArgument] = {}
    for position, argument in enumerate(schema_of(target).arguments):
        default = argument.default_value if argument.has_default_value() else None
        if position < len(node.args):
            value = node.args[position]
        elif argument.name in node.kwargs:
            value = node.kwargs[argument.name]
        else:
            bound[argument.name] = BoundArgument(default, True)
            continue
        bound[argument.name] = BoundArgument(value, argument.has_default_value() and _same(value, default))
    return {name: b for name, b in bound.items() if name not in DROPPED}


def walks(node: Node) -> bool:
    """Return whether a node traverses the memory behind its tensor by strides."""
    aten = torch.ops.aten
    return node.target in (aten.as_strided.default, aten.as_strided_copy.default, aten.as_strided_scatter.default)


def is_random(node: Node) -> bool:
    """Return whether a call of an operator draws random numbers: dropout of 0 or outside training draws none.

    Fillings with chance 0 do.
    """
    target = cast(OpOverload, node.target)
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    bound = bind(node)
    quiet = {"dropout_p": 0, "dropout": 0, "train": False, "training": False}
    if "train" in bound:
        quiet["p"] = 0
    return not any(name in bound and bound[name].value == value for name, value in quiet.items())


def draws_on_host(node: Node) -> bool:
    """Return whether a node draws random numbers in a way that the host can."""
    target: object = node.target
    if not isinstance(target, OpOverload) or not draws(name := overload_name(cast(Operator, target))):
        return False
    training = bind(node).get("training")
    return draws(name, training=training is not None and bool(training.value))


def exchanges(node: Node) -> bool:
    """Return whether a node is a collective, which all ranks of a group call."""
    target: object = node.target
    return isinstance(target, OpOverload) and is_collective(overload_name(cast(Operator, target)))


def checks(node: Node) -> bool:
    """Return whether a node only checks a condition."""
    target = cast(object, node.target)
    return isinstance(target, OpOverload) and is_check(overload_name(cast(Operator, target)))


def runs_unread(node: Node) -> bool:
    """Return whether a node runs although nothing reads its result: what comes behind it would be something else."""
    return draws_on_host(node) or exchanges(node) or checks(node)


def _same(a: object, b: object) -> bool:
    if isinstance(a, Node) or isinstance(b, Node):
        return a is b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        first, second = cast("list[object]", a), cast("list[object]", b)
        return len(first) == len(second) and all(_same(x, y) for x, y in zip(first, second, strict=True))
    return isinstance(a, bool) is isinstance(b, bool) and a == b  # True == 1, but says something else


def named_as_in(entry: OpEntry, bound: Mapping[str, BoundArgument]) -> dict[str, BoundArgument]:
    """Rename arguments to the names of the table: `mm` has ``mat2`` where its entry, `matmul`, has ``other``."""
    names = {p.name for p in entry.params}
    foreign = [name for name, argument in bound.items() if name not in names and not argument.is_default]
    unfilled = [p for p in entry.params if p.required and p.name not in bound]
    if len(foreign) != len(unfilled) or any(
        isinstance(bound[name].value, Node) != p.is_tensor for name, p in zip(foreign, unfilled, strict=True)
    ):
        return dict(bound)
    rename = {name: p.name for name, p in zip(foreign, unfilled, strict=True)}
    return {rename.get(name, name): argument for name, argument in bound.items()}


def spell_by_entry(entry: OpEntry, bound: Mapping[str, BoundArgument], resolve: Resolve) -> Spelled:
    """Return operands and attributes for an op with a table entry.

    Raises:
        NotInTableError: an argument has no place in the entry.
    """
    params = {p.name for p in entry.params}
    for name, argument in bound.items():
        if name not in params and not argument.is_default:
            raise NotInTableError(name)
    operands: list[SSAValue] = []
    attributes: dict[str, Attribute] = {}
    skipped: list[str] = []  # absent tensors, to be said if another tensor follows
    for param in entry.params:
        argument = bound.get(param.name)
        if argument is None:
            continue
        if param.kind is ArgKind.TENSORS:
            items = cast("list[object]", argument.value)
            operands += _whole_list(param.name, [i for i in items if i is not None], resolve)
            attributes |= _list_form(entry, param, items)
        elif isinstance(argument.value, Node):
            value = resolve(param.name, argument.value)
            if isinstance(value, SSAValue):
                attributes |= {name: NoneAttr() for name in skipped}
                skipped.clear()
                operands.append(value)
            else:
                attributes[param.name] = to_attribute(value)
        elif param.kind is ArgKind.TENSOR and argument.value is None:
            skipped.append(param.name)
        elif not (argument.is_default and not param.required and _same(_plain(argument.value), param.default)):
            attributes[param.name] = spell(argument.value)
    return Spelled(operands, attributes)


def _list_form(entry: OpEntry, param: Param, items: list[object]) -> dict[str, Attribute]:
    """Return the attribute that assigns operands to a list; nothing if it takes all remaining ones."""
    if any(i is None for i in items):
        return {param.name: ArrayAttr([NoneAttr() if i is None else OperandsAttr(1) for i in items])}
    return {} if param is [p for p in entry.params if p.is_tensor][-1] else {param.name: OperandsAttr(len(items))}


def _whole_list(name: str, value: object, resolve: Resolve) -> list[SSAValue]:
    items = [resolve(name, v) if isinstance(v, Node) else v for v in cast("list[object]", value)]
    if not all(isinstance(i, SSAValue) for i in items):
        raise NotInTableError(name)
    return cast("list[SSAValue]", items)


def spell_by_schema(bound: Mapping[str, BoundArgument], resolve: Resolve) -> Spelled:
    """Return operands and attributes for `aten.call`: attributes in schema order assign operands to arguments."""
    operands: list[SSAValue] = []

    def take(name: str, value: object) -> Attribute:
        if isinstance(value, Node):
            resolved = resolve(name, value)
            if not isinstance(resolved, SSAValue):
                return to_attribute(resolved)
            operands.append(resolved)
            return OperandsAttr(1)
        items = cast("list[object]", value)
        if len(items) != 1 and all(isinstance(i, Node) for i in items):
            operands.extend(_whole_list(name, value, resolve))
            return OperandsAttr(len(items))
        return ArrayAttr([take(name, i) if isinstance(i, Node) else spell(i) for i in items])

    attributes = {
        name: take(name, b.value) if _holds_node(b.value) else spell(b.value)
        for name, b in bound.items()
        if not b.is_default
    }
    return Spelled(operands, attributes)


def _holds_node(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(i, Node) for i in cast("list[object]", value))
    return isinstance(value, Node)


def _plain(value: object) -> object:
    """Lists as tuples and torch's enumerations as strings, the way table defaults are written."""
    if isinstance(value, (list, tuple)):
        return tuple(_plain(v) for v in cast("list[object]", value))
    if isinstance(value, (torch.memory_format, torch.layout)):
        return str(value).removeprefix("torch.")
    return value


def spell(value: object) -> Attribute:
    """Return the attribute for a value without tensors; dtypes become element types."""
    if isinstance(value, torch.dtype):
        return ELEMENT_TYPES[value]
    if isinstance(value, torch.device):
        return to_attribute(str(value))
    return to_attribute(_plain(value))
