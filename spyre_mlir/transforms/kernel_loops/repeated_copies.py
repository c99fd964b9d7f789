"""Copies of one tensor for every row of a group: in a loop that goes row by row, readers take the tensor itself.

A product of one matrix with several others needs the matrix once for each of them, as the hardware has no product whose
columns are two loops. Where a trip has one of the others, their loop is gone, and so is the reason for the copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, IndexMapAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.kernel_facts import fact
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup
from spyre_mlir.transforms.utils.hints import hinted_place

Dims = tuple[int | None, ...]  # per dimension of the source, that of the copy; None for one without a loop


@dataclass(frozen=True)
class Repeated:
    """A copy that a loop over rows repeats.

    Attributes:
        op: the copy.
        dims: where it has the dimensions of its source.
    """

    op: kernel.KernelOp
    dims: Dims

    @property
    def source(self) -> SSAValue:
        """The tensor that is copied."""
        return self.op.inputs[0]

    def index(self, index: IndexMap) -> IndexMapAttr:
        """Return how a reader takes from the source what it takes from the copy through a map."""
        return IndexMapAttr(tuple(LinearExpr() if dim is None else index[dim] for dim in self.dims))


def repeated_copies(group: RowGroup, trips: int) -> dict[SSAValue, Repeated]:
    """Return the copies of a group, by what they write, whose readers take the source if a trip has one row of them."""
    found, internal = dict[SSAValue, Repeated](), set(group.internal())
    loops = dict(zip(group.ops, group.loops, strict=True))
    for op, loop in loops.items():
        dims = repeats(op).get(loop)
        if dims is None or op.output not in internal:
            continue
        if hint_of(op) is not None or hinted_place(op.output):
            continue
        readers = [(u.operation, u.index) for u in op.output.uses if u.operation is not op]
        row = op.maps.data[-1].data.index(LinearExpr.of(loop))
        if all(isinstance(r, kernel.KernelOp) and _reads(r, n, loops[r], row, trips) for r, n in readers):
            found[op.output] = Repeated(op, dims)
    return found


@fact
def repeats(op: kernel.KernelOp) -> Mapping[str, Dims]:
    """Return the loop along which a copy repeats its source, with the places of the source's dimensions; or none."""
    if not isinstance(op, kernel.ComputeOp) or op.function_name != COPY or op.is_watched or op.element is not None:
        return MappingProxyType({})
    (source, copy), (read, written), extents = op.tensors, (m.data for m in op.maps.data), op.space.extents
    places = {name: dim for dim, expr in enumerate(written) for name, _ in expr.terms}
    used = [name for expr in read for name, _ in expr.terms]
    more = [name for name in extents if name not in used]
    if len(more) != 1 or len(set(used)) != len(used) or set(places) != set(extents):
        return MappingProxyType({})
    if not _is_plain(written) or not _is_plain(read) or any(extents[n] != copy.shape[d] for n, d in places.items()):
        return MappingProxyType({})
    dims = tuple(places[expr.terms[0][0]] if expr.terms else None for expr in read)
    return MappingProxyType({more[0]: dims} if _lie_alike(source, copy, dims) else {})


def _is_plain(index: IndexMap) -> bool:
    """Return whether every dimension is walked by one loop, or by none at its first element."""
    return all(expr == (LinearExpr.of(expr.terms[0][0]) if expr.terms else LinearExpr()) for expr in index)


def _lie_alike(source: DeviceTensor, copy: DeviceTensor, dims: Dims) -> bool:
    """Return whether a source has the elements in the lanes that the copy has there, and room for as many."""
    stick = source.layout.stick
    if (source.format, source.arrangement) != (copy.format, copy.arrangement) or len(dims) != len(source.shape):
        return False
    if max(source.layout.unit_extent, copy.layout.unit_extent) > 1:
        return False
    if (UNIT if stick == UNIT else dims[stick]) != copy.layout.stick:
        return False
    room = zip(source.layout.extents, dims, strict=True)
    return all(dim is None or have >= copy.layout.extents[dim] for have, dim in room)


def _reads(op: kernel.KernelOp, number: int, loop: str, row: int, trips: int) -> bool:
    """Return whether a kernel only reads a copy, one row of it in each trip, and every other dimension by one loop."""
    if number == len(op.inputs) or op.space.extents[loop] != trips or hint_of(op) is not None:
        return False
    index = op.maps.data[number].data
    return _is_plain(index) and index[row] == LinearExpr.of(loop)


__all__ = ["Repeated", "repeated_copies", "repeats"]
