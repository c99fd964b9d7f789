"""Elements of scratchpad buffers that a kernel reads and none writes: the padding of sticks, which copies carry along.

The machine reads what happens to be there, and nobody looks at the result. Readers of KTIR refuse a load of what was
never written, so such a buffer is filled with zeros before its first kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_memory import shared_view
from spyre_mlir.transforms.ktdp_code import ONE, Code, Span, element_type
from spyre_mlir.transforms.ktdp_kernels import divisor
from spyre_mlir.transforms.ktdp_tiles import Kernel, Reading, kernel_in_tiles

Pattern = tuple[int, tuple[tuple[int, int], ...]]  # the first element, and (stride, count) from the outermost


class Gaps:
    """The buffers of a function that want zeros first."""

    def __init__(self, kernels: Sequence[KernelOp]) -> None:
        """Compares what is read of every buffer with what is written."""
        self._done = set[SSAValue]()
        self._read = dict[SSAValue, set[Pattern]]()
        self._written = dict[SSAValue, set[Pattern]]()
        for op in kernels:
            if any(t.space == "lx" for t in op.tensors):
                self._note(kernel_in_tiles(op))

    def _note(self, kernel: Kernel) -> None:
        for reading in kernel.readings:
            if reading.local:
                out = reading.number == len(kernel.op.inputs)
                found = self._written if out else self._read
                found.setdefault(kernel.op.operands[reading.number], set()).add(_pattern(kernel, reading))

    def fill(self, code: Code, op: KernelOp, limit: int) -> None:
        """Writes zeros into the result's buffer if this is its first kernel and others read more than is written."""
        buffer = op.output
        if device_tensor(buffer).space != "lx" or buffer in self._done:
            return
        self._done.add(buffer)
        count = elements(buffer)
        if any(prod(n for _, n in steps) == count for _, steps in self._written[buffer]):
            return
        if self._read.get(buffer, set()) <= self._written[buffer] or _takes_over(op):
            return
        zeros(code, buffer, count, limit)


def elements(buffer: SSAValue) -> int:
    """Elements of one core's slice of a buffer, padding included."""
    tensor = device_tensor(buffer)
    return shared_view(buffer).layout(tensor.layout).sticks(tensor.lanes) * tensor.lanes


def zeros(code: Code, buffer: SSAValue, count: int, limit: int) -> None:
    """Fills the core's slice of a buffer."""
    tensor = device_tensor(buffer)
    element = element_type(tensor.format)
    assert isinstance(element, AnyFloat)  # integers index, and stay in device memory
    reading, chunk = Reading(0, tensor, 0, {ONE: 1}), divisor(count, limit)
    start = code.index(0)
    view = code.raw_view(buffer, reading, [count], [1])
    if chunk == count:
        code.store(code.full(0.0, element, [chunk]), code.tile_of(view, [Span(start, start, chunk)]))
        return
    with code.loop(count, chunk) as loop:
        span = Span(loop.step, loop.step, chunk)
        code.store(code.full(0.0, element, [chunk]), code.tile_of(view, [span]))


def _pattern(kernel: Kernel, reading: Reading) -> Pattern:
    steps = [(reading.strides[a], kernel.count(a, local=True)) for a in reading.device_order]
    merged = list[tuple[int, int]]()
    for stride, count in steps:
        if merged and merged[-1][0] == stride * count:
            merged[-1] = (stride, merged[-1][1] * count)
        else:
            merged.append((stride, count))
    return reading.offset, tuple(merged)


def _takes_over(op: KernelOp) -> bool:
    """Whether the result lies where an operand of the same kernel lies: that one was there before, gaps and all."""
    low, high = _span(op.output)
    inputs = [_span(v) for v in op.inputs if device_tensor(v).space == "lx"]
    return any(first < high and low < end for first, end in inputs)


def _span(buffer: SSAValue) -> tuple[int, int]:
    owner = buffer.owner
    assert isinstance(owner, AllocOp)
    return owner.start, owner.end
