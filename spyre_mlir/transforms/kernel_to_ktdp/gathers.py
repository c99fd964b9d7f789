"""Table rows selected by an index tensor: one indirect access tile per tile of the result."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from spyre_mlir.dialects.ktdp.affine import box_set, order_map
from spyre_mlir.dialects.ktdp.indirect import ConstructIndirectAccessTileOp
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.transforms.kernel_to_ktdp.elementwise import Tiling, chunked
from spyre_mlir.transforms.kernel_to_ktdp.operands import Operands
from spyre_mlir.transforms.kernel_to_ktdp.slices import ONE
from spyre_mlir.transforms.kernel_to_ktdp.tiles import LoopPart


class Gather:
    """One gather: the loops around its tiles, and the subscripts of the table."""

    def __init__(self, operands: Operands, limit: int) -> None:
        """Chooses the tiles."""
        self.code = operands.code
        self.kernel = kernel = operands.kernel
        self.index, self.table, self.out = kernel.readings
        self.axes = list(self.out.device_order) or [ONE]
        self.names = list(dict.fromkeys(a[0] for a in self.axes if a != ONE))
        self.tiling = Tiling(operands, chunked(kernel, self.names, [self.axes], limit), self.axes)

    def write(self) -> None:
        """Write the whole gather; loops that end inside a stick of indices are traversed piece by piece."""
        self._over(list(self.names))

    def _over(self, names: list[str]) -> None:
        if not names:
            self._tile()
            return
        name, rest = names[0], names[1:]
        cut = self.kernel.cuts[name]
        indexed = any(a[0] == name for a in self.index.strides)
        if indexed and len(cut.parts) > 1 and cut.extent % cut.inner:
            for piece in self.kernel.pieces(name):
                with ExitStack() as stack:
                    self.tiling.enter_piece(stack, name, piece)
                    self._over(rest)
            return
        with ExitStack() as stack:
            self.tiling.enter(stack, name)
            self._over(rest)

    def _tile(self) -> None:
        code, op = self.code, self.kernel.op
        spans = [self.tiling.spans[a] for a in self.axes if a != ONE]
        shape = [s.count for s in spans] or [1]
        captured = list(dict.fromkeys(s.whole for s in spans if s.whole is not code.index(0)))
        indices = [a for a in self.axes if a in self.index.strides] or [ONE]
        found = code.view(self.index, op.operands[0], indices, self.kernel)
        columns = [a for a in self.axes if a in self.table.strides]
        subscripts: list[AffineMap | tuple[SSAValue, AffineMap]] = [(found, self._map(indices, captured))]
        subscripts += [self._map([a], captured) for a in columns]
        source = ConstructIndirectAccessTileOp(
            self._table(columns), subscripts, captured, box_set(shape), order_map(range(len(shape))), shape
        )
        value = code.load(code.add(source), self.table.tensor.format)
        self.tiling.write(value)

    def _map(self, axes: Sequence[LoopPart], captured: Sequence[SSAValue]) -> AffineMap:
        """Return the position of an axis: its place in the tile plus the start of the tile."""
        exprs = [self._expr(a, captured) for a in axes]
        return AffineMap(len(self.axes), len(captured), tuple(exprs))

    def _expr(self, axis: LoopPart, captured: Sequence[SSAValue]) -> AffineExpr:
        if axis == ONE:
            return AffineExpr.constant(0)
        place, start = AffineExpr.dimension(self.axes.index(axis)), self.tiling.spans[axis].whole
        return place + AffineExpr.symbol(captured.index(start)) if start in captured else place

    def _table(self, columns: Sequence[LoopPart]) -> SSAValue:
        op, table = self.kernel.op, self.table
        axis = op.axis.value.data if isinstance(op, GatherOp) else 0
        lanes = table.tensor.lanes
        sizes = [table.tensor.shape[axis], *(self.kernel.count(a) for a in columns)]
        strides = [table.tensor.layout.strides(lanes)[axis] * lanes, *(table.strides[a] for a in columns)]
        return self.code.raw_view(op.operands[1], table, sizes, strides)


__all__ = ["Gather"]
