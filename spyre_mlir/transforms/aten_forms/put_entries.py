"""Pass `put-entries`: stores a few entries in a tensor that the program overwrites one by one, each in its block.

```mlir
%new = aten.index_copy(%rows, %at, %entries) {dim = 0} : (tensor<2048x8xf16>, tensor<2xi64>, tensor<2x8xf16>) -> …
```
with `%rows` a view of pages `%cache: tensor<32x64x8xf16>`, becomes
```mlir
%0 = aten.call "spyre::put_entry"(%cache, %first, %at, %place0) {dim = 0, number = 0, per = 64} …
%1 = aten.call "spyre::put_entry"(%0, %second, %at, %place1) {dim = 0, number = 1, per = 64} …
```
The host has the positions and says where the blocks start. Else a product places all entries, and a selection copies
the whole tensor. A position outside of the tensor, which makes entries NaN otherwise, is an error then.

Decision: docs/decisions/0218-entries-are-stored-in-place.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import PLACED
from spyre_mlir.dialects.spyre.loop_blocks import BLOCK
from spyre_mlir.dialects.tensors import element_of, integer_bits, shape_of
from spyre_mlir.hw.formats import EXACT_INTEGERS, FP32
from spyre_mlir.ops.native.entries import PUT_ENTRY
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, unshaped
from spyre_mlir.transforms.utils.host_stores import StoreWriter, host_stores, rewrite_stores
from spyre_mlir.transforms.utils.stored_entries import StoredEntries

# Each entry has kernels of its own: more would take seconds to plan.
MOST_ENTRIES = 64
# A block is read and written, as all of the tensor is otherwise; more of them than half of it do not pay.
_LEAST_BLOCKS = 2


@dataclass(frozen=True)
class PutEntriesPass(ModulePass):
    """Lets kernels write blocks of overwritten arguments in place of new tensors, where entries have several positions.

    Where there is one position along one dimension, `update-in-place` finds it.
    """

    name = "put-entries"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the functions that take tensors of the host."""
        for found in host_stores(op):
            rewrite_stores([one for one in found if _is_few(one)], _one_by_one)


def _is_few(found: StoredEntries) -> bool:
    """Whether blocks are whole sticks, and much less than the tensor."""
    if found.count == 1 and found.per == 1:
        return False
    extent, unit = shape_of(found.old)[found.dim], found.per if found.per > 1 else shape_of(found.old)[found.dim]
    blocks = extent if found.per > 1 else extent // BLOCK
    counted = found.places <= EXACT_INTEGERS[FP32.name] and unit % BLOCK == 0
    is_float = integer_bits(element_of(found.old)) == 0  # integers are computed in another format
    return counted and is_float and found.count <= MOST_ENTRIES and _LEAST_BLOCKS * found.count <= blocks


def _one_by_one(writer: AtenWriter, first: StoredEntries) -> StoreWriter:
    """Entries of both tensors of an operator are stored at the same places."""
    places = _places(writer, first)
    return lambda one: _stored(writer, one, places)


def _places(writer: AtenWriter, found: StoredEntries) -> Sequence[SSAValue]:
    """The places as floats, each a vector of one, negative ones counted from the end."""
    line = writer.call("view", self=found.positions, size=(found.count,))
    below = writer.call("lt.Scalar", self=line, other=0)
    counted = writer.call("add.Scalar", self=line, other=found.places)
    inside = writer.call("where.self", condition=below, self=counted, other=line)
    numbers = writer.call("_to_copy", self=inside, dtype="f32")
    return [writer.call("slice.Tensor", self=numbers, dim=0, start=n, end=n + 1, step=1) for n in range(found.count)]


def _stored(writer: AtenWriter, found: StoredEntries, places: Sequence[SSAValue]) -> SSAValue:
    made, positions = found.old, unshaped(found.positions)
    for number, (entry, place) in enumerate(zip(found.entries(writer), places, strict=True)):
        where = {"positions": positions, "place": place, "dim": found.dim, "number": number, "per": found.per}
        made = writer.call(PUT_ENTRY, self=made, entry=entry, **where)
        assert isinstance(made.owner, AtenOp)
        made.owner.attributes[PLACED] = UnitAttr()
    return made


__all__ = ["MOST_ENTRIES", "PutEntriesPass"]
