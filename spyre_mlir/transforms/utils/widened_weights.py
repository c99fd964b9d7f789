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
from spyre_mlir.hw.formats import FP8

_NARROW = (FP8.name,)
# Kernels from a weight to its product: the conversion, a scale, a zero point. A longer chain computes something else.
_MOST_KERNELS = 4


def widens_any(module: ModuleOp) -> bool:
    """Return whether a kernel widens a weight of few bits; if none does, no buffer is `is_widened`."""
    return any(isinstance(op, kernel.ConvertOp) and _widens_given(op) for op in ops_in(module))


def is_widened(value: SSAValue) -> bool:
    """Return whether a buffer has a weight of few bits in a wider format, or what few kernels made of its elements."""
    return _is_widened(value, _MOST_KERNELS)


def _is_widened(value: SSAValue, kernels: int) -> bool:
    if kernels == 0 or not isinstance(value.owner, kernel.AllocOp):
        return False
    users = (use.operation for use in value.uses)
    writers = [op for op in users if isinstance(op, kernel.KernelOp) and op.output is value]
    return len(writers) == 1 and _widens(writers[0], kernels - 1)


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


def _widens(op: kernel.KernelOp, behind: int) -> bool:
    """Return whether a kernel makes such a buffer, with at most so many kernels before it."""
    if isinstance(op, kernel.ConvertOp):
        return _widens_given(op) or _is_widened(op.inputs[0], behind)
    if not all(op.is_elementwise(number) for number in range(len(op.inputs))):
        return False
    made = [value for value in op.inputs if isinstance(buffer_behind(value).owner, kernel.AllocOp)]
    return bool(made) and all(_is_widened(value, behind) for value in made)


def _widens_given(op: kernel.ConvertOp) -> bool:
    source = op.inputs[0]
    return _format(source) in _NARROW and not isinstance(buffer_behind(source).owner, kernel.AllocOp)


def _format(value: SSAValue) -> str:
    owner = value.owner
    return (owner.compact() if isinstance(owner, TileOp) else kernel.device_tensor(value)).format


__all__ = ["counted_as_read", "is_widened", "keeps_widened", "widens_any"]
