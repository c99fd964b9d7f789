"""Division of a matmul by predicted time, neighbours considered.

A buffer that all its users slice alike can live in the scratchpads. A division that slices it differently sends it
through device memory instead, so the time of the buffer's other users counts against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import SpaceAttr
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.dialects.superdsc.model.work import work_of
from spyre_mlir.hw.cost import Cost, Traffic, cost
from spyre_mlir.hw.cost_parameters import CALIBRATED, SHORTEST_MEASURED_US, TRUSTED_GAIN
from spyre_mlir.hw.division import DividedLoop, Footprint, divisions
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import StickError
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import describe_kernel

_NS_PER_US = 1000.0


@dataclass(frozen=True)
class Price:
    """Cost of a division.

    Attributes:
        own: the kernel's cost, with the operands in the scratchpads that can be there.
        others_us: what other users of its buffers lose.
    """

    own: Cost
    others_us: float

    @property
    def total(self) -> float:
        """Microseconds of the kernel, plus those that its division costs its neighbours."""
        return self.own.total + self.others_us


@dataclass(frozen=True)
class _Neighbour:
    """An intermediate that can be in the scratchpads as things are."""

    number: int
    view: CoreView
    others_us: float


def fastest(
    op: kernel.KernelOp, loops: list[DividedLoop], operands: list[Footprint], spec: SpyreSpec
) -> dict[str, int]:
    """Return the division of a matmul with the lowest predicted time, if clearly lower than the present one.

    Divisions over fewer cores are not considered, nor kernels shorter than any that was measured.
    """
    usual = op.space_splits()
    placed = describe_kernel(op, 0)
    near = [n for number in range(len(op.tensors)) if (n := _neighbour(op, number, spec)) is not None]
    before = _price(op, placed.descriptor, placed.labels, near, usual)
    if before.total < SHORTEST_MEASURED_US:
        return usual
    best, best_price = usual, before
    for splits in divisions(loops, operands, prod(usual.values()), spec):
        price = _price(op, placed.descriptor, placed.labels, near, splits)
        # Among equals the one whose cores ask for the least.
        if (price.total, price.own.memory_per_core) < (best_price.total, best_price.own.memory_per_core):
            best, best_price = splits, price
    return best if best_price.total < before.total * (1 - TRUSTED_GAIN) else usual


def divided(space: SpaceAttr, splits: Mapping[str, int]) -> SpaceAttr:
    """Return the same loops with other splits."""
    return SpaceAttr(tuple(replace(d, split=splits[d.name]) for d in space.data))


def _price(
    op: kernel.KernelOp,
    descriptor: Descriptor,
    labels: Mapping[str, str],
    near: list[_Neighbour],
    splits: Mapping[str, int],
) -> Price:
    named = {labels[name]: split for name, split in splits.items()}
    dims = tuple(replace(d, split=named.get(d.label, 1)) for d in descriptor.dims)
    work = work_of(replace(descriptor, dims=dims))
    kept = _kept(op, near, splits) if near else set[int]()
    traffic: list[Traffic] = [replace(t, local=n in kept) for n, t in enumerate(work.operands)]
    own = cost(replace(work, operands=tuple(traffic)))
    return Price(own, sum(n.others_us for n in near if n.number not in kept))


def _kept(op: kernel.KernelOp, near: list[_Neighbour], splits: Mapping[str, int]) -> set[int]:
    """Neighbours that this division slices as before."""
    space, kept = op.space, set[int]()
    op.space = divided(space, splits)
    for neighbour in near:
        try:
            if op.core_view(neighbour.number) == neighbour.view:
                kept.add(neighbour.number)
        except StickError:
            continue
    op.space = space
    return kept


def _neighbour(op: kernel.KernelOp, number: int, spec: SpyreSpec) -> _Neighbour | None:
    value = op.operands[number]
    if not isinstance(value.owner, kernel.AllocOp) or value.owner.offset is not None:
        return None
    users = [use.operation for use in value.uses if use.operation is not op]
    blocks = {value.owner.parent_block(), *(user.parent_block() for user in users)}
    if blocks != {op.parent_block()} or any(not isinstance(u, (kernel.KernelOp, kernel.FreeOp)) for u in users):
        return None  # place-lx leaves it in device memory too
    tensor = kernel.device_tensor(value)
    try:
        view = kernel.shared_view(value)
    except StickError:
        return None
    if view.bytes_per_core(tensor) > spec.lx_usable_bytes:
        return None
    others = sum(isinstance(user, kernel.KernelOp) for user in users)
    once_us = tensor.sticks * STICK_BYTES / CALIBRATED.hbm_gb_per_s / _NS_PER_US
    return _Neighbour(number, view, others * once_us)
