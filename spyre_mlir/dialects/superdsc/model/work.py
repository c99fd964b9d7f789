"""Cost-model work of a descriptor: the only conversion from a kernel to the description that is priced.

The planner asks it about divisions it considers, reports and timelines about the files of a bundle.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import TypeVar

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.hw.cost import CostKind, MatmulLoops, Traffic, Work
from spyre_mlir.hw.formats import BITS_PER_BYTE, device_format
from spyre_mlir.hw.spec import STICK_BYTES

_Described = TypeVar("_Described")


def work_of(descriptor: Descriptor, trips: int = 1, iterations: int = 0) -> Work:
    """Return the work of one kernel.

    Args:
        descriptor: the kernel; its addresses are not read, so it may come without them.
        trips: iterations of the bundle's loops around it.
        iterations: iterations of loops that begin with it.
    """
    dims = {dim.label: dim for dim in descriptor.dims}
    return Work(
        kind=_kind(descriptor),
        cores=descriptor.cores,
        elements=prod(dim.extent for dim in descriptor.dims),
        operands=tuple(_traffic(descriptor, operand, dims) for operand in descriptor.operands),
        rows=_rows(descriptor),
        product=_product(descriptor) if descriptor.op_class is OpClass.MATMUL else None,
        trips=trips,
        iterations=iterations,
    )


class WorkByDivision:
    """The work of a kernel under any division of its loops; of what is priced, that is all that changes with it."""

    def __init__(self, descriptor: Descriptor, labels: Mapping[str, str]) -> None:
        """Prepare what is the same under all divisions.

        Args:
            descriptor: the kernel, divided or not.
            labels: label of each loop, by the loop's name.
        """
        whole = replace(descriptor, dims=tuple(replace(dim, split=1) for dim in descriptor.dims))
        self._whole, self._labels = work_of(whole), labels
        self._own = [set(operand.order) for operand in whole.operands]
        self._product = None if self._whole.product is None else _loops_by_role(whole)

    def work(self, splits: Mapping[str, int]) -> Work:
        """Return the work with these slices of the loops, by name; 1 for those not named.

        The bytes that lie together are those of the undivided kernel: they have no price.
        """
        whole, slices = self._whole, [(self._labels[name], split) for name, split in splits.items() if split > 1]
        cores = prod([split for _, split in slices])
        operands = list[Traffic]()
        for traffic, own in zip(whole.operands, self._own, strict=True):
            parts = prod([split for label, split in slices if label in own])
            readers = 1 if traffic.written else cores // parts
            operands.append(_changed(traffic, per_core=traffic.bytes // parts, readers=readers))
        product = whole.product
        if product is not None and self._product is not None:
            over = [prod([split for label, split in slices if label in labels]) for labels in self._product]
            product = _changed(product, splits=tuple(over))
        return _changed(whole, cores=cores, operands=tuple(operands), product=product)


def _changed(described: _Described, **values: object) -> _Described:
    """The same as `replace`, which takes six times as long: kernels have hundreds of divisions."""
    made = object.__new__(type(described))
    vars(made).update(vars(described), **values)
    return made


def _loops_by_role(descriptor: Descriptor) -> tuple[list[str], list[str], list[str], list[str]]:
    """Labels of the loops of a product: batch, rows, columns, depth."""
    left, right, kept = (set(descriptor.operands[n].order) for n in (0, 1, -1))
    labels = [dim.label for dim in descriptor.dims]
    *shared, rows = [None, *(label for label in labels if label in kept & left - right)]
    batch = [label for label in labels if label in kept & left & right or label in shared]
    columns = [label for label in labels if label in kept & right - left]
    return batch, [] if rows is None else [rows], columns, [label for label in labels if label not in kept]


def _kind(descriptor: Descriptor) -> CostKind:
    if descriptor.op_class is OpClass.REDUCTION:
        source = descriptor.operands[0]
        keeps_lanes = source.stick is not None and source.stick in descriptor.output.order
        return CostKind.OUTER_REDUCTION if keeps_lanes else CostKind.ROW_REDUCTION
    kinds = {OpClass.MATMUL: CostKind.PRODUCT, OpClass.RESTICKIFY: CostKind.RESTICKIFY, OpClass.GATHER: CostKind.GATHER}
    return kinds.get(descriptor.op_class, CostKind.POINTWISE)


def _rows(descriptor: Descriptor) -> int:
    """Elements of the result of a reduction: how many rows are read."""
    return prod(dim.extent for dim in descriptor.dims if dim.label in descriptor.output.order)


def _traffic(descriptor: Descriptor, operand: Operand, dims: dict[str, Dim]) -> Traffic:
    own = [dims[label] for label in operand.order]
    # A scratchpad holds one core's slice, so the cores together hold one copy per core that needs it.
    touched = prod(_steps(dim.extent, dim.label, operand) for dim in own) * STICK_BYTES
    bits = device_format(operand.format).bits
    elements = prod(dim.extent if dim.valid is None else dim.valid for dim in own)
    written = operand is descriptor.output
    missing = [d for d in descriptor.dims if d.label not in operand.order and d.label in descriptor.output.order]
    return Traffic(
        bytes=touched,
        needed=min(touched, elements * bits // BITS_PER_BYTE),
        per_core=touched // prod(dim.split for dim in own),
        readers=1 if written else prod(dim.split for dim in descriptor.dims if dim.label not in operand.order),
        written=written,
        local=operand.component == keys.LX,
        small=any(dim.extent > 1 for dim in missing) and not written,
        run=_run(operand, dims),
    )


def _steps(extent: int, label: str, operand: Operand) -> int:
    return -(-extent // operand.elements_per_stick) if label == operand.stick else extent


def _run(operand: Operand, dims: dict[str, Dim]) -> int:
    """Bytes that lie together in one core's part."""
    sticks = 1
    for label, allocated in zip(operand.order, operand.counts(), strict=True):
        steps = _steps(dims[label].per_core, label, operand)
        sticks *= steps
        if steps != allocated:
            break
    return sticks * STICK_BYTES


def _product(descriptor: Descriptor) -> MatmulLoops:
    left, right, kept = (set(descriptor.operands[n].order) for n in (0, 1, -1))
    batch = _extent(d for d in descriptor.dims if d.label in kept & left & right)
    rows = [d for d in descriptor.dims if d.label in kept & left - right]
    columns = _extent(d for d in descriptor.dims if d.label in kept & right - left)
    depth = _extent(d for d in descriptor.dims if d.label not in kept)
    # The last row loop is next to the sum; the ones before it are a batch of the left operand only.
    shared, own = _extent(rows[:-1]), _extent(rows[-1:])
    return MatmulLoops(
        batch=batch[0],
        shared_batch=shared[0],
        rows=own[0],
        columns=columns[0],
        depth=depth[0],
        splits=(batch[1] * shared[1], own[1], columns[1], depth[1]),
        inside=_batch_inside(descriptor),
    )


def _batch_inside(descriptor: Descriptor) -> tuple[int, int, int]:
    """Elements of the batch that lie inside of the rows of the left operand, the right one and the result.

    The rows of an operand are its loop that is neither batch nor in the lanes. A scratchpad has one core's slice.
    """
    left, right, kept = (set(descriptor.operands[n].order) for n in (0, 1, -1))
    whole = {d.label: d.extent for d in descriptor.dims}
    own = {d.label: d.extent // d.split for d in descriptor.dims}
    rows = [d.label for d in descriptor.dims if d.label in kept & left - right]
    batch = (kept & left & right) | set(rows[:-1])
    found = tuple(
        prod(
            (own if operand.component == keys.LX else whole)[label]
            for label in _before(operand.order, batch | {operand.stick})
            if label in batch
        )
        for operand in (*descriptor.operands[:2], descriptor.output)
    )
    return found[0], found[1], found[2]


def _before(order: tuple[str, ...], passed: Container[str | None]) -> tuple[str, ...]:
    """Labels of an order, innermost first, up to the first that is not to be passed; none if there is no such."""
    for place, label in enumerate(order):
        if label not in passed:
            return order[:place]
    return ()


def _extent(dims: Iterable[Dim]) -> tuple[int, int]:
    """Elements and slices of several loops together."""
    dims = list(dims)
    return prod(d.extent for d in dims), prod(d.split for d in dims)
