"""Operators that store entries in a tensor at positions of the host: what they keep, where they store, and what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, integer_bits, shape_of
from spyre_mlir.ops.composed.nn.paged_attention import STORE
from spyre_mlir.transforms.utils.aten_ops import SAME_ORDER, AtenWriter, arguments_of, is_open, unshaped

_LEAST_BITS = 32  # of integers that number places


@dataclass(frozen=True)
class StoredEntries:
    """The new value of a tensor in which an operator has stored entries.

    Attributes:
        op: the operator.
        result: the new value: of the tensor, or with two of its dimensions counted as one.
        old: the tensor.
        dim: the dimension of the entries.
        per: places in each entry that positions count; 1 if they count the entries.
        positions: of the places, in the order in which they are stored.
        source: what is stored, in the shape [before dim, positions, behind the places].
    """

    op: AtenOp
    result: SSAValue
    old: SSAValue
    dim: int
    per: int
    positions: SSAValue
    source: SSAValue

    @property
    def count(self) -> int:
        """How many entries are stored."""
        return prod(shape_of(self.positions))

    @property
    def places(self) -> int:
        """How many places there are."""
        return shape_of(self.old)[self.dim] * self.per

    def entries(self, writer: AtenWriter) -> Sequence[SSAValue]:
        """Write the stored entries one by one, in the shape of the tensor with 1 for the dimensions of places."""
        shape, before, each = shape_of(self.old), self.dim, 1 if self.per == 1 else 2
        behind = shape[before + each :]
        source = writer.viewed(self.source, (*shape[:before], self.count, *behind))
        made = list[SSAValue]()
        for n in range(self.count):
            one = writer.call("slice.Tensor", self=source, dim=before, start=n, end=n + 1, step=1)
            made.append(writer.viewed(one, (*shape[:before], *(1,) * each, *behind)))
        return made


def stored_entries(value: SSAValue) -> StoredEntries | None:
    """Return how a tensor is made of another one by storing entries in it; None if it is not."""
    op = value.owner
    if not isinstance(op, AtenOp) or not is_open(op):
        return None
    args = arguments_of(op)
    if op.overload == STORE:
        cache, source = (("key_cache", "key"), ("value_cache", "value"))[op.results.index(value)]
        old = args[cache]
        return StoredEntries(op, value, old, 0, shape_of(old)[1], args["slot_mapping"], args[source])
    if op.overload == "index_copy":
        place = args["dim"] % max(len(shape_of(value)), 1), args["index"], args["source"]
    elif op.overload == "index_put" and not args["accumulate"]:
        used = [(d, index) for d, index in enumerate(args["indices"]) if index is not None]
        place = (*used[0], args["values"]) if len(used) == 1 else None
    else:
        return None
    return None if place is None else _along(op, args["self"], *place)


def _along(op: AtenOp, kept: SSAValue, dim: int, positions: SSAValue, source: SSAValue) -> StoredEntries | None:
    """Entries of one dimension, or places in two dimensions of a tensor of which a view counts them as one."""
    shape, old = shape_of(kept), unshaped(kept)
    if not shape or element_of(kept) != element_of(source):
        return None
    if prod(shape_of(source)) != prod(shape[:dim]) * prod(shape_of(positions)) * prod(shape[dim + 1 :]):
        return None  # one entry for several places
    outer = shape_of(old)
    if outer == shape:
        return StoredEntries(op, op.results[0], old, dim, 1, positions, source)
    merged = (*outer[:dim], prod(outer[dim : dim + 2]), *outer[dim + 2 :])
    if merged != shape or outer[dim + 1] == 1:
        return None
    return StoredEntries(op, op.results[0], old, dim, outer[dim + 1], positions, source)


def host_positions(found: StoredEntries) -> BlockArgument | None:
    """Return the argument of a function that the positions are; None for others."""
    base = unshaped(found.positions)
    return base if isinstance(base, BlockArgument) and integer_bits(element_of(base)) >= _LEAST_BITS else None


def only_reader(value: SSAValue) -> bool:
    """Return whether a tensor has one reader, and so has each view that it is read through."""
    while value.has_one_use():
        (use,) = value.uses
        op = use.operation
        if not isinstance(op, AtenOp) or op.overload not in SAME_ORDER:
            return True
        value = op.results[0]
    return False


__all__ = ["StoredEntries", "host_positions", "only_reader", "stored_entries"]
