"""Descriptors of SuperDSC ops; ops that differ in number and start addresses only are described once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from xdsl.dialects.builtin import IntegerAttr

from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, SdscOp
from spyre_mlir.dialects.superdsc.dialect.skeleton import by_skeleton
from spyre_mlir.dialects.superdsc.model.certainty import Certainty, certainty_of
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.dialects.superdsc.model.json_value import natural
from spyre_mlir.hw.spec import STICK_BYTES


def described(op: SdscOp) -> Descriptor:
    """Return the descriptor of an op, as `describe` does, from an op of the same skeleton if one was described before.

    Raises:
        ReadError: fields are missing, of the wrong type, or contradict each other.
        UnsupportedError: the op uses a feature that descriptors have no meaning for.
    """
    first = _first(op)
    return (first and _with_places(first, op)) or describe(op)


@by_skeleton
def certainty(op: SdscOp) -> Certainty:
    """Return how sure it is that the real consumer takes what the file of an op relies on.

    Raises:
        ReadError: fields are missing, of the wrong type, or contradict each other.
        UnsupportedError: the op uses a feature that descriptors have no meaning for.
    """
    return certainty_of(described(op))


@by_skeleton
def _first(op: SdscOp) -> Descriptor | None:
    """The descriptor of the first op of a skeleton; None unless its places in the op are those in the descriptor."""
    view = describe(op)
    return view if _with_places(view, op) == view else None


def _with_places(view: Descriptor, op: SdscOp) -> Descriptor | None:
    """A descriptor with the number and the start addresses of an op; None if these are not what they should be."""
    operands = list(view.operands)
    for node in _nodes(op):
        number = node.index.value.data if isinstance(node.index, IntegerAttr) else -1
        if node.start is None or not 0 <= number < len(operands):
            return None
        starts, symbolic = node.start.get_values(), operands[number].symbolic
        if len(starts) != view.cores or any(
            start >= 0 if symbolic else start < 0 or start % STICK_BYTES for start in starts
        ):
            return None
        operands[number] = replace(operands[number], start=tuple(map(str, starts)))
    return replace(view, index=natural(op.root_key.partition("_")[0]) or 0, operands=tuple(operands))


def _nodes(op: SdscOp) -> Iterator[AllocateOp]:
    return (node for dsc in op.dscs() for node in dsc.body.block.ops if isinstance(node, AllocateOp))
