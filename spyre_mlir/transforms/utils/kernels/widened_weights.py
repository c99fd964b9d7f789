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
    return any(isinstance(op, kernel.KernelOp) and widens_given(op) for op in ops_in(module))


KernelCounts = dict[SSAValue, "int | None"]
"""By buffer, how many kernels made it of a weight of few bits, one after the other; None if it is no such buffer."""


def is_widened(value: SSAValue, known: KernelCounts | None = None) -> bool:
    """Return whether a buffer has a weight of few bits in a wider format, or what few kernels made of its elements.

    Args:
        value: any value.
        known: answers about buffers whose kernels have not changed since; new ones are added.
    """
    known = {} if known is None else known
    if value not in known:
        _count_kernels(value, known)
    count = known[value]
    return count is not None and count <= _MOST_KERNELS


def _count_kernels(value: SSAValue, known: KernelCounts) -> None:
    """Add how many kernels made a buffer, and those before it: without recursion, as chains may be long."""
    todo, begun = [value], set[SSAValue]()
    while todo:
        if (last := todo[-1]) in known:
            todo.pop()
            continue
        writer = _only_writer(last)
        sources = None if writer is None else _sources(writer)
        new = [] if sources is None or last in begun else [v for v in sources if v not in known and v not in begun]
        if new:
            begun.add(last)
            todo += new
        else:
            before = None if sources is None else [known.get(v) for v in sources]  # a cycle begins with no weight
            known[last] = None if before is None or None in before else max([0, *(n for n in before if n)]) + 1


def _only_writer(value: SSAValue) -> kernel.KernelOp | None:
    users = [use.operation for use in value.uses] if isinstance(value.owner, kernel.AllocOp) else []
    writers = [op for op in users if isinstance(op, kernel.KernelOp) and op.output is value]
    return writers[0] if len(writers) == 1 else None


def _sources(op: kernel.KernelOp) -> list[SSAValue] | None:
    """The buffers that a kernel makes an element of; empty if it widens a weight, None if it makes no such buffer."""
    if widens_given(op):
        return []
    if not isinstance(op, kernel.ConvertOp) and not all(op.is_elementwise(number) for number in range(len(op.inputs))):
        return None
    return [v for v in op.inputs if isinstance(buffer_behind(v).owner, kernel.AllocOp)] or None


def counted_as_read(op: kernel.KernelOp, known: KernelCounts | None = None) -> SpaceAttr:
    """Return the loops of a kernel that makes such a buffer, the one first that the product behind it sums over.

    Cores are numbered with the first loop fastest, but those of a product whose sum is divided with its summed loop
    fastest. So both give each core the same slice.

    Args:
        op: the kernel.
        known: as of `is_widened`.
    """
    dim = _summed_dim(op.output, {} if known is None else known)
    names = set[str]() if dim is None else {name for name, _ in op.maps.data[-1].data[dim].terms}
    return SpaceAttr(tuple(sorted(op.space.data, key=lambda d: d.name not in names)))


def _summed_dim(value: SSAValue, known: KernelCounts) -> int | None:
    """The dimension of a buffer that a product sums over, itself or what elementwise kernels make of it."""
    for use in value.uses:
        reader = use.operation
        if not isinstance(reader, kernel.KernelOp) or reader.output is value:
            continue
        if reader.is_product:
            summed = set(reader.space.extents) - set(reader.maps.data[-1].names)
        elif (dim := _summed_dim(reader.output, known) if is_widened(reader.output, known) else None) is not None:
            summed = {name for name, _ in reader.maps.data[-1].data[dim].terms}
        else:
            continue
        index = reader.maps.data[use.index].data
        return next((dim for dim, e in enumerate(index) if summed.intersection(n for n, _ in e.terms)), None)
    return None


def keeps_widened(op: kernel.KernelOp) -> bool:
    """Return whether `plan` has divided a kernel for such a buffer in the scratchpads, if only into one slice."""
    return any(kernel.device_tensor(value).space == "lx" and is_widened(value) for value in op.operands)


def widens_given(op: kernel.KernelOp) -> bool:
    """Return whether a kernel reads a weight of few bits as the host sends it."""
    source = op.inputs[0]
    return _format(source) in _NARROW and not isinstance(buffer_behind(source).owner, kernel.AllocOp)


def _format(value: SSAValue) -> str:
    owner = value.owner
    return (owner.compact() if isinstance(owner, TileOp) else kernel.device_tensor(value)).format


__all__ = ["KernelCounts", "counted_as_read", "is_widened", "keeps_widened", "widens_any", "widens_given"]
