"""Kernels as the planner sees them: buffers by number, and every legal division with its work and its slices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, origin_of
from spyre_mlir.dialects.superdsc.model.work import work_of
from spyre_mlir.hw.cost import Work, roofline_us
from spyre_mlir.hw.cost_parameters import CALIBRATED, SHORTEST_MEASURED_US
from spyre_mlir.hw.division import divisions
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import StickError
from spyre_mlir.planning.divisions import OUTSIDE, DividedKernel, Kernel, price_us
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import Placed, describe_kernel
from spyre_mlir.transforms.utils.loops import divided, footprints, loops_of

# A division that takes so many times the quickest one's time is not considered, and none but the usual one of kernels
# that are shorter than anything a choice could change much.
SLOW, SHORT_US, SHORT_IN_LOOP_US = 4.0, 5.0, 1.0


@dataclass
class KernelChoices:
    """The kernels of a module for the planner; what depends on a kernel alone is computed once.

    Attributes:
        spec: the machine.
        fixed: kernels whose division was there before.
    """

    spec: SpyreSpec
    fixed: set[Operation] = field(default_factory=set[Operation])
    _known: dict[Hashable, tuple[DividedKernel, ...]] = field(default_factory=dict[Hashable, tuple[DividedKernel, ...]])
    _views: dict[Hashable, int] = field(default_factory=dict[Hashable, int])

    def sequence(self, ops: Sequence[kernel.KernelOp]) -> tuple[list[Kernel], list[SSAValue]]:
        """Return kernels that follow each other in one block as the planner takes them, and their buffers by number."""
        copied = _copied(ops)
        numbers: dict[SSAValue, int] = {}
        for op in ops:
            for value in op.operands:
                if value not in numbers and (value in copied or _may_be_held(value, ops)):
                    numbers[value] = len(numbers)
        found = [
            Kernel(
                tuple(numbers.get(value, OUTSIDE) for value in op.operands),
                self.candidates(op)[: 1 if op in self.fixed else None],
                frozenset(n for n, value in enumerate(op.operands) if value in copied),
            )
            for op in ops
        ]
        return found, list(numbers)

    def floor_us(self, ops: Sequence[kernel.KernelOp], internal: Container[SSAValue]) -> float:
        """Return the least time of kernels in any loops, if some buffers stay in the scratchpads throughout."""
        return sum(self._floor_us(op, frozenset(n for n, v in enumerate(op.operands) if v in internal)) for op in ops)

    def _floor_us(self, op: kernel.KernelOp, local: frozenset[int]) -> float:
        found = self.candidates(op)
        product = found[0].work.product
        if product is None:
            return min(price_us(c, local, CALIBRATED, self.spec) for c in found)
        # In a loop its rate and its fill may be better than in one piece.
        outside = sum(o.bytes for n, o in enumerate(found[0].work.operands) if n not in local)
        return roofline_us(product.macs, outside, CALIBRATED, self.spec)

    def has_slow_batch(self, op: kernel.KernelOp) -> bool:
        """Return whether a kernel is a product whose batch lies inside of the rows of an operand."""
        product = self.candidates(op)[0].work.product
        return product is not None and max(product.inside) >= CALIBRATED.pe_batched_from_batch

    def candidates(self, op: kernel.KernelOp) -> tuple[DividedKernel, ...]:
        """Return the divisions of a kernel, the present one first: the only one of a short kernel."""
        written = len(op.inputs)
        held = (_may_hold(value, written=number == written) for number, value in enumerate(op.operands))
        key = op.identity(), _least_us(op), *held
        if key not in self._known:
            self._known[key] = self._found(op)
        return self._known[key]

    def _found(self, op: kernel.KernelOp) -> tuple[DividedKernel, ...]:
        present, usual = op.space, op.space_splits()
        placed = describe_kernel(op, 0)
        first = DividedKernel(usual, _work(placed, usual), *self._slices(op))
        if price_us(first, frozenset[int](), CALIBRATED, self.spec) < _least_us(op):
            return (first,)
        loops = loops_of(op)
        ways = divisions(loops, footprints(op, loops), prod(usual.values()), self.spec)
        nowhere = (None,) * len(op.tensors), (0,) * len(op.tensors)
        found = [DividedKernel(splits, _work(placed, splits), *nowhere) for splits in ways if splits != usual]
        least = min(self._least_us(c) for c in (first, *found))
        chosen = [first]
        for other in found:
            if self._least_us(other) <= max(SLOW * least, SHORT_US):
                op.space = divided(present, other.splits)
                chosen.append(DividedKernel(other.splits, other.work, *self._slices(op)))
        op.space = present
        return tuple(chosen)

    def _least_us(self, candidate: DividedKernel) -> float:
        return price_us(candidate, frozenset(range(len(candidate.sizes))), CALIBRATED, self.spec)

    def _slices(self, op: kernel.KernelOp) -> tuple[tuple[int | None, ...], tuple[int, ...], frozenset[int]]:
        """Views and bytes of the operands of a kernel as it is divided, and the inputs it may overwrite."""
        tensors = [v.owner.compact() if isinstance(v.owner, TileOp) else kernel.device_tensor(v) for v in op.operands]
        seen = [
            _view(op, number, tensor) if _may_hold(value, written=number == len(op.inputs)) else None
            for number, (value, tensor) in enumerate(zip(op.operands, tensors, strict=True))
        ]
        sizes = tuple(0 if v is None else v.bytes_per_core(t) for v, t in zip(seen, tensors, strict=True))
        views = tuple(None if v is None else self._views.setdefault(v, len(self._views)) for v in seen)
        return views, sizes, _in_place(op, seen, tensors)


def _least_us(op: kernel.KernelOp) -> float:
    """Return the time of a kernel from which on other divisions are considered.

    Nothing is known of how cards divide products that run once and are shorter than any that was measured.
    """
    if not isinstance(op.parent_op(), func.FuncOp):
        return SHORT_IN_LOOP_US  # it runs in every trip
    return SHORTEST_MEASURED_US if op.is_product else SHORT_US


def _may_hold(value: SSAValue, *, written: bool) -> bool:
    """Return whether the scratchpads may hold a tensor, or, if it is not written, a copy of it."""
    return isinstance(value.owner, kernel.AllocOp if written else kernel.AllocOp | kernel.ToDeviceOp | TileOp)


def _work(placed: Placed, splits: Mapping[str, int]) -> Work:
    """Work of a kernel with other slices: these are all that changes in its descriptor."""
    named = {placed.labels[name]: split for name, split in splits.items()}
    dims = tuple(replace(d, split=named.get(d.label, 1)) for d in placed.descriptor.dims)
    return work_of(replace(placed.descriptor, dims=dims))


def _view(op: kernel.KernelOp, number: int, tensor: DeviceTensor) -> CoreView | None:
    try:
        view = op.core_view(number, tensor)
        op.local_walk(number, tensor)
    except StickError:
        return None
    return view


def _in_place(op: kernel.KernelOp, views: Sequence[CoreView | None], tensors: Sequence[DeviceTensor]) -> frozenset[int]:
    if views[-1] is None:
        return frozenset()
    inputs = range(len(op.inputs))
    return frozenset(n for n in inputs if views[n] == views[-1] and op.may_take_over(n, tensors[n]))


def _copied(ops: Sequence[kernel.KernelOp]) -> set[SSAValue]:
    """Tensors that the host sends, or tiles, that several kernels read and none writes: `place-lx` may copy them."""
    reads = Counter(value for op in ops if isinstance(op, kernel.ComputeOp) for value in set(op.inputs))
    written = {origin_of(op.output).buffer for op in ops}
    return {
        value
        for value, count in reads.items()
        if count > 1 and isinstance(value.owner, kernel.ToDeviceOp | TileOp) and origin_of(value).buffer not in written
    }


def _may_be_held(value: SSAValue, ops: Sequence[kernel.KernelOp]) -> bool:
    """Return whether a buffer is made, written and read by these kernels alone, and not relaid out."""
    if not isinstance(value.owner, kernel.AllocOp) or value.owner.offset is not None:
        return False
    own = set[Operation](ops)
    users = [use.operation for use in value.uses if not isinstance(use.operation, kernel.FreeOp)]
    if not all(user in own and not isinstance(user, kernel.RestickifyOp) for user in users):
        return False
    first = next(op for op in ops if value in op.operands)
    return value not in first.inputs and any(isinstance(u, kernel.KernelOp) and value in u.inputs for u in users)


__all__ = ["KernelChoices"]
