"""Pointwise kernels, copies and reductions in tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from math import prod

from xdsl.dialects.builtin import AnyFloat, FloatAttr, IntegerAttr, f32
from xdsl.ir import SSAValue
from xdsl.utils.hints import isa

from spyre_mlir.dialects.spyre.kernel import ComputeOp, KernelConstantOp, device_tensor
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Span, element_type
from spyre_mlir.transforms.kernel_to_ktdp.hardware_functions import adds, apply, combined, fold, neutral
from spyre_mlir.transforms.kernel_to_ktdp.operands import Operands
from spyre_mlir.transforms.kernel_to_ktdp.slices import ONE
from spyre_mlir.transforms.kernel_to_ktdp.tiles import LoopPart, LoopPiece, OperandWalk, TiledKernel, fit

# Tiles that live at one time in the widest function, each of four bytes an element (from `ktdp_functions`).
LIVE_TILES = 8


def tile_limit(free_bytes: int) -> int:
    """Return the elements a tile may have with so much of the scratchpad free."""
    return max(free_bytes // (4 * LIVE_TILES), 1)


class Tiling:
    """The loops of one core around the tiles of a kernel."""

    def __init__(self, operands: Operands, chunks: Mapping[str, int], result: Sequence[LoopPart]) -> None:
        """Starts outside of all loops; `result` are the axes of the result, as its tiles have them."""
        self.operands = operands
        self.code = operands.code
        self.kernel = operands.kernel
        self.chunks = chunks
        self.result = result
        self.spans: dict[LoopPart, Span] = {}

    def inner(self, name: str, lanes: int | None = None) -> None:
        """Cover the inner parts of a loop, the first `lanes` of the innermost if given."""
        zero = self.code.index(0)
        parts = self.kernel.cuts[name].parts[1:]
        for weight, steps in parts:
            count = steps if lanes is None or (name, weight) != (name, parts[-1][0]) else lanes
            self.spans[name, weight] = Span(zero, zero, count)

    def enter(self, stack: ExitStack, name: str) -> None:
        """Traverse a loop of the result on this core in chunks: in one tile, or in a loop of tiles."""
        steps, chunk = self.kernel.cuts[name].steps, self.chunks[name]
        self.cover(name, None if chunk == steps else self._loop(stack, steps, chunk))

    def _loop(self, stack: ExitStack, steps: int, chunk: int) -> SSAValue:
        held = self.operands.carried(self.result)
        return stack.enter_context(self.code.loop(steps, chunk, held=held)).step

    def read(self, reading: OperandWalk, axes: Sequence[LoopPart]) -> SSAValue:
        """Read the elements of an operand that the tiles cover now."""
        return self.operands.read(reading, axes, self.spans)

    def write(self, value: SSAValue) -> None:
        """Write a tile of the result at the current tiles."""
        self.operands.write(value, self.result, self.spans)

    def cover(self, name: str, step: SSAValue | None) -> None:
        """Cover one chunk of a loop: the only one, or the one at `step` of this core's steps."""
        cut, code = self.kernel.cuts[name], self.code
        at, first = code.index(0) if step is None else step, code.first_step(self.kernel, name)
        self.spans[cut.outer] = Span(code.plus(first, at), at, self.chunks[name])
        self.inner(name)

    def enter_piece(self, stack: ExitStack, name: str, piece: LoopPiece) -> None:
        """Traverse a piece of a loop in chunks."""
        chunk = divisor(piece.steps, self.chunks[name])
        step = None if chunk == piece.steps else self._loop(stack, piece.steps, chunk)
        self.piece(name, piece, step, chunk)

    def piece(self, name: str, piece: LoopPiece, step: SSAValue | None, steps: int) -> None:
        """Cover `steps` steps of a piece of a loop that is not divided, from `step` on."""
        cut = self.kernel.cuts[name]
        at = self.code.index(piece.first) if step is None else self.code.plus(self.code.index(piece.first), step)
        self.spans[cut.outer] = Span(at, at, steps)
        self.inner(name, piece.lanes)


def divisor(steps: int, most: int) -> int:
    """Return the largest divisor of `steps` that is at most `most`."""
    return max(d for d in range(1, min(steps, most) + 1) if steps % d == 0)


def folded_number(buffer: SSAValue) -> float | None:
    """Return the number of a buffer that holds a single number known when the program is written."""
    op = buffer.owner
    if not isinstance(op, KernelConstantOp) or prod(device_tensor(buffer).shape) != 1:
        return None
    if isa(op.value, FloatAttr):
        return op.value.value.data
    return float(op.value.value.data) if isa(op.value, IntegerAttr) else None


def read(tiling: Tiling, reading: OperandWalk, axes: Sequence[LoopPart], shape: Sequence[int]) -> SSAValue:
    """Read an operand in the shape of the result: loaded, repeated along the axes it lacks."""
    code = tiling.code
    number = folded_number(tiling.kernel.op.operands[reading.number])
    if number is not None:
        return code.full(number, float_type(reading), shape)
    own = [a for a in axes if a in reading.strides] or [ONE]
    value = tiling.read(reading, own)
    return value if list(axes) == own else code.broadcast(value, [axes.index(a) for a in own if a != ONE], shape)


def float_type(reading: OperandWalk) -> AnyFloat:
    """Return the element type of an operand that arithmetic reads.

    Raises:
        UnsupportedError: it holds integers.
    """
    element = element_type(reading.tensor.format)
    if not isinstance(element, AnyFloat):
        raise UnsupportedError(f"arithmetic on elements of format {reading.tensor.format}")
    return element


def pointwise(operands: Operands, limit: int) -> None:
    """Write an elementwise kernel, tile by tile: tiles follow the result's order in memory."""
    code, kernel = operands.code, operands.kernel
    op = kernel.op
    called, constants = (op.function_name, op.constants) if isinstance(op, ComputeOp) else (COPY, dict[str, float]())
    *inputs, out = kernel.readings
    axes = list(out.device_order) or [ONE]
    names = list(dict.fromkeys(a[0] for a in axes if a != ONE))
    tiling = Tiling(operands, chunked(kernel, names, [axes], limit), axes)
    with ExitStack() as stack:
        for name in names:
            tiling.enter(stack, name)
        shape = [1 if a == ONE else tiling.spans[a].count for a in axes]
        tiling.write(apply(code, called, [read(tiling, r, axes, shape) for r in inputs], constants))


def chunked(
    kernel: TiledKernel, names: Sequence[str], tiles: Sequence[Sequence[LoopPart]], limit: int
) -> dict[str, int]:
    """Return steps per tile of the outermost part of some loops, so that each of the tiles fits."""

    def volume(steps: Mapping[str, int]) -> int:
        def extent(axis: LoopPart) -> int:
            cut = kernel.cuts[axis[0]]
            return steps[axis[0]] if axis == cut.outer else kernel.count(axis)

        return max(prod(extent(a) for a in axes if a != ONE) for axes in tiles)

    return fit({n: kernel.cuts[n].steps for n in names}, volume, limit)


def reduction(operands: Operands, limit: int) -> None:
    """Reduce the loops the result lacks over their logical extents; the sum is kept in single precision."""
    code, kernel = operands.code, operands.kernel
    source, out = kernel.readings
    axes = list(source.device_order)
    names = list(dict.fromkeys(a[0] for a in axes))
    kept = [n for n in names if any(a[0] == n for a in out.strides)]
    folded = [n for n in names if n not in kept]
    own = [a for a in axes if a[0] in kept] or [ONE]
    tiling = Tiling(operands, chunked(kernel, names, [axes], limit), own)
    axes = axes if kept else [ONE, *axes]
    with ExitStack() as stack:
        for name in kept:
            tiling.enter(stack, name)
        result = Folding(tiling, source, axes, folded, kernel.op.function_name).run()
        tiling.write(code.narrowed(result, element_type(out.tensor.format)))


class Folding:
    """The loops of a reduction: every piece and every chunk of the reduced loops is added to the accumulator."""

    def __init__(
        self, tiling: Tiling, source: OperandWalk, axes: Sequence[LoopPart], folded: Sequence[str], function: str
    ) -> None:
        """Keeps what the loops need."""
        self.tiling = tiling
        self.source = source
        self.axes = axes
        self.folded = folded
        self.function = function

    def run(self) -> SSAValue:
        """Return the reduction over everything, in the accumulator's element type."""
        found = self._over(list(self.folded), None)
        assert found is not None
        return found

    def _over(self, names: list[str], total: SSAValue | None) -> SSAValue:
        if not names:
            return self._tile(total)
        name, rest = names[0], names[1:]
        for piece in self.tiling.kernel.pieces(name):
            chunk = divisor(piece.steps, self.tiling.chunks[name])
            if chunk == piece.steps:
                self.tiling.piece(name, piece, None, chunk)
                total = self._over(rest, total)
                continue
            start = self._neutral() if total is None else total
            with self.tiling.code.loop(piece.steps, chunk, [start]) as loop:
                self.tiling.piece(name, piece, loop.step, chunk)
                loop.results = [self._over(rest, loop.carried[0])]
            total = loop.results[0]
        assert total is not None  # every loop has a piece
        return total

    def _tile(self, total: SSAValue | None) -> SSAValue:
        """One tile folded, and added to what is there."""
        tiling, code = self.tiling, self.tiling.code
        value = tiling.read(self.source, self.axes)
        if adds(self.function):
            value = code.widened(value)
        dims = [d for d, a in enumerate(self.axes) if a[0] in self.folded]
        if dims:
            value = fold(code, self.function, value, dims)
        return value if total is None else combined(code, self.function, total, value)

    def _neutral(self) -> SSAValue:
        code, kept = self.tiling.code, [a for a in self.axes if a[0] not in self.folded]
        element = f32 if adds(self.function) else float_type(self.source)
        return code.full(neutral(self.function), element, [1 if a == ONE else self.tiling.spans[a].count for a in kept])
