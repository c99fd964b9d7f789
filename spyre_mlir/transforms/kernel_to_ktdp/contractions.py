"""Matmuls in tiles: batches one by one, sums in single precision, a divided sum combined over cores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AffineSetAttr, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineSet

from spyre_mlir.dialects.ktdp.affine import box_set
from spyre_mlir.dialects.ktdp.cores import InterTileProduceOp, InterTileReduceOp, YieldPartialOp, YieldReducedOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.kernel_to_ktdp.elementwise import Tiling
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Code, element_type, shape_of
from spyre_mlir.transforms.kernel_to_ktdp.operands import Operands
from spyre_mlir.transforms.kernel_to_ktdp.slices import ONE
from spyre_mlir.transforms.kernel_to_ktdp.tensor_ops import reshaped
from spyre_mlir.transforms.kernel_to_ktdp.tiles import LoopPart, OperandWalk, TiledKernel, fit


@dataclass(frozen=True)
class Roles:
    """The role of every loop of a contraction.

    Attributes:
        batch: walked by both operands and the result.
        rows: by the first operand and the result.
        columns: by the result and not by the first operand.
        summed: by the operands only.
    """

    batch: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    summed: tuple[str, ...]

    @staticmethod
    def of(kernel: TiledKernel) -> Roles:
        """Derive the roles of a contraction's loops from its operands' accesses."""
        a, b, out = ({axis[0] for axis in r.strides} for r in kernel.readings)
        names = [n for n in kernel.cuts if n in a | b | out]
        return Roles(
            tuple(n for n in names if n in a & b & out),
            tuple(n for n in names if n in (a & out) - b),
            tuple(n for n in names if n in out - a),
            tuple(n for n in names if n not in out),
        )


class TiledMatmul:
    """One matmul: the loops around its tiles, and the tiles as matrices."""

    def __init__(self, operands: Operands, limit: int) -> None:
        """Chooses the tiles."""
        self.code = operands.code
        self.kernel = operands.kernel
        self.roles = Roles.of(self.kernel)
        self.a, self.b, self.out = self.kernel.readings
        self.axes, self.groups = self._axes(self.out, self.roles.rows, self.roles.columns)
        self.tiling = Tiling(operands, self._chunks(limit), self.axes)

    def _chunks(self, limit: int) -> dict[str, int]:
        roles, cuts = self.roles, self.kernel.cuts
        sides = ((*roles.rows, *roles.summed), (*roles.summed, *roles.columns), (*roles.rows, *roles.columns))

        def volume(steps: Mapping[str, int]) -> int:
            return max(prod(steps[n] * cuts[n].inner for n in names) for names in sides)

        free = dict.fromkeys(n for names in sides for n in names)
        return dict.fromkeys(roles.batch, 1) | fit({n: cuts[n].steps for n in free}, volume, limit)

    def write(self) -> None:
        """Write the whole matmul."""
        code, tiling, roles = self.code, self.tiling, self.roles
        with ExitStack() as stack:
            for name in (*roles.batch, *roles.rows, *roles.columns):
                tiling.enter(stack, name)
            shape = [1 if a == ONE else tiling.spans[a].count for a in self.axes]
            total = self._sum(code.full(0.0, f32, [prod(shape[d] for d in group) for group in self.groups]))
            divided = [n for n in roles.summed if self.kernel.cuts[n].split > 1]
            for name in divided:
                total = combined(code, self.kernel, name, total)
            result = code.narrowed(total, element_type(self.out.tensor.format))
            self._store(reshaped(code, result, shape), divided)

    def _axes(
        self, reading: OperandWalk, left: Sequence[str], right: Sequence[str]
    ) -> tuple[list[LoopPart], list[list[int]]]:
        """Axes of an operand as a matrix, and which of them make its rows and its columns; batches are of one."""
        axes, groups = list[LoopPart](), list[list[int]]()
        for names in ((*self.roles.batch, *left), right):
            cuts = [self.kernel.cuts[n] for n in names]
            own = [(c.name, w) for c in cuts for w, _ in c.parts if (c.name, w) in reading.strides] or [ONE]
            groups.append(list(range(len(axes), len(axes) + len(own))))
            axes += own
        return axes, groups

    def _sum(self, start: SSAValue) -> SSAValue:
        """The product over this core's part of the summed loop."""
        (name,) = self.roles.summed
        chunk, steps = self.tiling.chunks[name], self.kernel.cuts[name].steps
        if chunk == steps:
            self.tiling.cover(name, None)
            return self._multiply(start)
        with self.code.loop(steps, chunk, [start]) as loop:
            self.tiling.cover(name, loop.step)
            loop.results = [self._multiply(loop.carried[0])]
        return loop.results[0]

    def _multiply(self, total: SSAValue) -> SSAValue:
        left = self._matrix(self.a, self.roles.rows, self.roles.summed)
        right = self._matrix(self.b, self.roles.summed, self.roles.columns)
        return self.code.add(linalg.MatmulOp([left, right], [total]))

    def _matrix(self, reading: OperandWalk, left: Sequence[str], right: Sequence[str]) -> SSAValue:
        """A tile of an operand as a matrix in single precision."""
        axes, groups = self._axes(reading, left, right)
        value = self.code.widened(self.tiling.read(reading, axes))
        extents = shape_of(value)
        return reshaped(self.code, value, [prod(extents[d] for d in group) for group in groups])

    def _store(self, result: SSAValue, divided: Sequence[str]) -> None:
        code = self.code
        if not divided or self.out.local:  # every core of a team knows the sum
            self.tiling.write(result)
            return
        first, zero = code.slice_of(self.kernel, divided[0]), code.index(0)
        writer = code.head(("writer", first), lambda: arith.CmpiOp(first, zero, "eq"), "writer")
        with code.branch(writer):
            self.tiling.write(result)


def combined(code: Code, kernel: TiledKernel, name: str, partial: SSAValue) -> SSAValue:
    """Return the sum of the partial results of the cores that share a result; these are neighbours.

    Raises:
        LoweringError: they are not.
    """
    cores, slices = kernel.places[name]
    if cores != 1:
        raise LoweringError(f"the cores that share the sum over {name} are {cores} apart, expected neighbours")
    team, groups = _team(slices), box_set([kernel.cores // slices])
    produce = InterTileProduceOp(team, partial.type, groups)
    produce.body.block.add_op(YieldPartialOp(partial))
    future = code.add(produce, "partials")
    reduce = InterTileReduceOp(future, code.full(0.0, f32, shape_of(partial)), team)
    left, right = reduce.combiner.block.args
    total = arith.AddfOp(left, right)
    reduce.combiner.block.add_ops([total, YieldReducedOp(total)])
    return code.add(reduce, "total")


def _team(size: int) -> AffineSetAttr:
    """Cores `size` g to `size` g + `size` - 1 of group g."""
    core, group = AffineExpr.dimension(0), AffineExpr.symbol(0) * size
    zero, ge = AffineExpr.constant(0), AffineConstraintKind.ge
    rules = (
        AffineConstraintExpr(ge, core + group * -1, zero),
        AffineConstraintExpr(ge, core * -1 + group + (size - 1), zero),
    )
    return AffineSetAttr(AffineSet(1, 1, rules))


__all__ = ["Roles", "TiledMatmul", "combined"]
