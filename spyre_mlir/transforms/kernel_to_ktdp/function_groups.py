"""Grouping of kernels into KTIR functions: cores wait for one another only at the end of a function.

The cores of a function run in no order. So a kernel may follow another in one function only if no core touches what
another core wrote, or writes what another core touches; the next function starts when all cores are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import scf
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import buffer_behind
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.sticks import StickError
from spyre_mlir.transforms.utils.rebuild import describe_location

Item = KernelOp | scf.ForOp


@dataclass
class FunctionGroup:
    """The kernels of one function.

    Attributes:
        cores: how many run it.
        items: kernels and loops of kernels, in order.
    """

    cores: int
    items: list[Item] = field(default_factory=list[Item])

    @property
    def kernels(self) -> list[KernelOp]:
        """All kernels, including those in loops."""
        return [op for item in self.items for op in kernels_of(item)]

    def takes(self, item: Item) -> bool:
        """Return whether a kernel or a loop may follow."""
        ops = kernels_of(item)
        return cores_of(item) == self.cores and not any(_clash(a, b) for a in self.kernels for b in ops)

    def buffers(self) -> set[SSAValue]:
        """Return the whole buffers that the kernels access."""
        return {buffer_behind(v) for op in self.kernels for v in op.operands}


def kernels_of(item: Item) -> list[KernelOp]:
    """Return a kernel, or all kernels of a loop."""
    return [op for op in item.walk() if isinstance(op, KernelOp)]


def cores_of(item: Item) -> int:
    """Return the cores over which a kernel, or every kernel of a loop, is divided.

    Raises:
        UnsupportedError: the kernels of a loop are divided over different numbers of cores.
    """
    found = {prod(op.space_splits().values()) for op in kernels_of(item)} or {1}
    if len(found) > 1:
        raise UnsupportedError(
            f"a loop whose kernels run on {' and '.join(map(str, sorted(found)))} cores",
            where=describe_location(item),
            hint="a KTIR function has one number of cores; divide the kernels of the loop alike, or unroll it",
        )
    return found.pop()


def grouped(items: Sequence[Item]) -> list[FunctionGroup]:
    """Group the kernels in order into as few functions as possible.

    Raises:
        UnsupportedError: cores would have to wait for one another inside a loop.
    """
    groups = list[FunctionGroup]()
    for item in items:
        cores = cores_of(item)
        if isinstance(item, scf.ForOp):
            _check_loop(item)
        if not groups or not groups[-1].takes(item):
            groups.append(FunctionGroup(cores))
        groups[-1].items.append(item)
    return groups


def _check_loop(loop: scf.ForOp) -> None:
    ops = kernels_of(loop)
    for earlier in ops:
        for later in ops:
            if _clash(earlier, later, itself=earlier is later):
                raise UnsupportedError(
                    f"a loop in which cores wait for one another: {later.function_name} touches what other cores "
                    f"have of {earlier.function_name}",
                    where=describe_location(later),
                    hint="KTIR has no such wait inside a function; unroll the loop, or divide its kernels alike",
                )


def spill(groups: Sequence[FunctionGroup]) -> None:
    """Move scratchpad buffers that several functions access to device memory.

    What a scratchpad holds when a function ends is not said anywhere.
    """
    touched = [g.buffers() for g in groups]
    to_device_memory(
        v
        for group in groups
        for op in group.kernels
        for v in op.operands  # no tile is in LX
        if device_tensor(v).space == "lx" and sum(v in t for t in touched) > 1
    )


def to_device_memory(buffers: Iterable[SSAValue]) -> None:
    """Move scratchpad buffers to device memory."""
    for value in dict.fromkeys(buffers):
        kind = DeviceTensorType(replace(device_tensor(value), space="hbm"))
        Rewriter.replace_value_with_new_type(value, kind)


def _clash(earlier: KernelOp, later: KernelOp, *, itself: bool = False) -> bool:
    """Return whether a core depends on another core's part of the earlier kernel; `itself` in the trip before."""
    for number, value in enumerate(earlier.operands):
        for other, same in enumerate(later.operands):
            both_read = number < len(earlier.inputs) and other < len(later.inputs)
            if both_read or buffer_behind(same) is not buffer_behind(value):
                continue
            if same is value and itself:
                continue
            views = [*_view(earlier, number), *_view(later, other)]
            if same is not value or len(views) < 2 or views[0] != views[1]:
                return True
    return False


def _view(op: KernelOp, number: int) -> Iterator[CoreView]:
    """The slices of an operand, if each core has its own."""
    try:
        yield op.core_view(number)
    except StickError:
        return


__all__ = ["FunctionGroup", "Item", "cores_of", "grouped", "kernels_of", "spill", "to_device_memory"]
