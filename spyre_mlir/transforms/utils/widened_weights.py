"""Weights of few bits that were widened: they are not stored wide in device memory, where a plan can avoid it.

What a weight of eight bits saves is its way through device memory; as DL16 it would take that way twice more.

Decision: docs/decisions/0156-narrow-weights-stay-narrow.md
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import SpaceAttr
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, buffer_behind
from spyre_mlir.hw.formats import FP8, INT32

# Eight-bit floats, and words of integers of few bits: the model's own integers are floats on the device.
_NARROW = (FP8.name, INT32.name)
# Kernels from a weight to its product: a conversion, a scale, a zero point, and those that take a digit out of words.
# A longer chain computes something else.
_MOST_KERNELS = 24


def widens_any(module: ModuleOp) -> bool:
    """Return whether a kernel widens a weight of few bits; if none does, no buffer is `is_widened`."""
    return any(isinstance(op, kernel.KernelOp) and _widens_given(op) for op in ops_in(module))


def is_widened(value: SSAValue) -> bool:
    """Return whether a buffer has a weight of few bits in a wider format, or what few kernels made of its elements."""
    return _kernels_before(value, {}, _MOST_KERNELS) is not None


def _kernels_before(value: SSAValue, known: dict[SSAValue, int | None], most: int) -> int | None:
    """How many kernels made a buffer of a weight of few bits, one after the other; None if it is no such buffer."""
    if most == 0:
        return None
    if value not in known:
        known[value] = None
        users = [use.operation for use in value.uses] if isinstance(value.owner, kernel.AllocOp) else []
        writers = [op for op in users if isinstance(op, kernel.KernelOp) and op.output is value]
        known[value] = _kernels_of(writers[0], known, most) if len(writers) == 1 else None
    return known[value]


def counted_as_read(op: kernel.KernelOp) -> SpaceAttr:
    """Return the loops of a kernel that makes such a buffer, the one first that the product behind it sums over.

    Cores are numbered with the first loop fastest, but those of a product whose sum is divided with its summed loop
    fastest. So both give each core the same slice.
    """
    dim = _summed_dim(op.output)
    names = set[str]() if dim is None else {name for name, _ in op.maps.data[-1].data[dim].terms}
    return SpaceAttr(tuple(sorted(op.space.data, key=lambda d: d.name not in names)))


def _summed_dim(value: SSAValue) -> int | None:
    """The dimension of a buffer that a product sums over, itself or what elementwise kernels make of it."""
    for use in value.uses:
        reader = use.operation
        if not isinstance(reader, kernel.KernelOp) or reader.output is value:
            continue
        if reader.is_product:
            summed = set(reader.space.extents) - set(reader.maps.data[-1].names)
        elif (dim := _summed_dim(reader.output) if is_widened(reader.output) else None) is not None:
            summed = {name for name, _ in reader.maps.data[-1].data[dim].terms}
        else:
            continue
        index = reader.maps.data[use.index].data
        return next((dim for dim, e in enumerate(index) if summed.intersection(n for n, _ in e.terms)), None)
    return None


def keeps_widened(op: kernel.KernelOp) -> bool:
    """Return whether `plan` has divided a kernel for such a buffer in the scratchpads, if only into one slice."""
    return any(is_widened(value) and kernel.device_tensor(value).space == "lx" for value in op.operands)


def _kernels_of(op: kernel.KernelOp, known: dict[SSAValue, int | None], most: int) -> int | None:
    """The same of what a kernel writes."""
    if _widens_given(op):
        return 1
    if not isinstance(op, kernel.ConvertOp) and not all(op.is_elementwise(number) for number in range(len(op.inputs))):
        return None
    made = [value for value in op.inputs if isinstance(buffer_behind(value).owner, kernel.AllocOp)]
    before = [_kernels_before(value, known, most - 1) for value in made]
    if not before or None in before:
        return None
    return max(n for n in before if n is not None) + 1


def _widens_given(op: kernel.KernelOp) -> bool:
    source = op.inputs[0]
    return _format(source) in _NARROW and not isinstance(buffer_behind(source).owner, kernel.AllocOp)


def _format(value: SSAValue) -> str:
    owner = value.owner
    return (owner.compact() if isinstance(owner, TileOp) else kernel.device_tensor(value)).format


__all__ = ["counted_as_read", "is_widened", "keeps_widened", "widens_any"]
