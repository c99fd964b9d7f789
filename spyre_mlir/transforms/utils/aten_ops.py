"""Aten ops that a pass writes in place of ops of a model, with their locations and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.aten import AtenOp, make_op
from spyre_mlir.dialects.aten_arguments import WIDENED
from spyre_mlir.dialects.aten_build import result_types, spelled
from spyre_mlir.dialects.ir.call_effects import keeps_order
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.ops import ATEN

# Overloads whose result has the elements of their tensor in the same order.
SAME_ORDER = ("view", "reshape", "flatten.using_ints", "unsqueeze", "squeeze.dim")


def is_open(op: AtenOp) -> bool:
    """Return whether a pass may give an op another form: the device computes it, and no hint says how."""
    return not op.on_host and hint_of(op) is None


class AtenWriter:
    """Inserts ops before an op of a model; each takes the location and notes of the op that it stands for."""

    def __init__(self, before: AtenOp) -> None:
        """Starts to write before an op."""
        self._before = before

    def call(self, overload: str, of: AtenOp | None = None, /, **given: Any) -> SSAValue:
        """Insert an op and return its first result.

        Args:
            overload: in the op table.
            of: the op that the new one stands for, if it is not the one behind it.
            given: arguments by name, tensors as values; those left out have their defaults.

        Raises:
            ValueError: the table has no such overload.
        """
        op = aten_op(overload, given, self._before if of is None else of)
        Rewriter.insert_op(op, InsertPoint.before(self._before))
        return op.results[0]

    def viewed(self, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
        """Return a tensor in another shape of as many elements: itself if it has this one, else a view."""
        return value if shape_of(value) == shape else self.call("view", self=value, size=shape)

    def moved(self, overload: str, weight: SSAValue, **given: Any) -> SSAValue:
        """Insert a move of a weight that the host makes at load, whatever room it takes, and return its result.

        Args:
            overload: in the op table.
            weight: what is moved.
            given: the other arguments by name.
        """
        made = self.call(overload, self=weight, **given)
        if isinstance(made.owner, AtenOp):
            made.owner.attributes[WIDENED] = UnitAttr()
        return made


def unshaped(value: SSAValue) -> SSAValue:
    """Return the tensor of which another one has all elements, in the same order."""
    while isinstance(op := value.owner, AtenOp) and op.overload in SAME_ORDER and not op.on_host:
        value = op.operands[0]
    return value


def arguments_of(op: AtenOp) -> dict[str, Any]:
    """Return all arguments of an op by name: tensors as values, the rest as Python values, defaults included.

    They are not typed: a pass that asks has seen the overload, and with it the schema.
    """
    return op.arguments()


def replace(op: AtenOp, overload: str, bound: Mapping[str, Any]) -> AtenOp:
    """Replace an op, whose notes, place in the model and name the new one takes over.

    Args:
        op: is erased.
        overload: in the op table.
        bound: arguments of the new op by name, tensors as values.

    Returns:
        The new op.

    Raises:
        ValueError: the table has no such overload.
    """
    made = aten_op(overload, bound, op, [result.type for result in op.results])
    Rewriter.replace_op(op, made)
    return made


def aten_op(
    overload: str, bound: Mapping[str, Any], source: AtenOp, types: Sequence[Attribute] | None = None
) -> AtenOp:
    """Return an op that stands for another one of the model, with its notes and place; it is in no block.

    Args:
        overload: in the op table.
        bound: arguments by name, tensors as values.
        source: the op that it stands for.
        types: of the results; None to infer them, which takes all arguments.

    Raises:
        ValueError: the table has no such overload.
    """
    entry = ATEN.find(overload)
    if entry is None:
        raise ValueError(f"{overload} is not in the op table")
    if types is None:
        bound = {p.name: p.default for p in entry.params} | dict(bound)
    operands, attributes = spelled(entry, bound)
    made = make_op(overload, operands, attributes, result_types(entry, bound) if types is None else types)
    made.attributes |= source.attributes
    made.location, made.wide = source.location, source.wide
    return made


def erase_unread(op: Operation) -> None:
    """Erase an op whose results nothing reads, and the ops that lose their last reader with it."""
    waiting = [op]
    while waiting:
        unread = waiting.pop()
        if unread.parent is None or not isinstance(unread, AtenOp) or keeps_order(unread):
            continue
        if any(result.uses for result in unread.results):
            continue
        waiting += [v.owner for v in unread.operands if isinstance(v.owner, Operation)]
        Rewriter.erase_op(unread)


__all__ = ["SAME_ORDER", "AtenWriter", "arguments_of", "aten_op", "erase_unread", "is_open", "replace", "unshaped"]
