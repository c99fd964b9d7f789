"""From a kernel op to the descriptor of its SuperDSC: labels, strides, padding, masks.

Decision: docs/decisions/0006-labels-are-positional.md
Decision: docs/decisions/0076-padding-wins-over-nothing.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from xdsl.ir import Attribute

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel_facts import fact
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Constant,
    Descriptor,
    Dim,
    Indirect,
    IndirectKind,
    OpClass,
    Operand,
    Slices,
    core_slices,
    labelled_format,
    start_offsets,
)
from spyre_mlir.dialects.superdsc.model.work import work_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.cost import Work
from spyre_mlir.hw.formats import DL16, FP32, INFINITY_STAND_IN
from spyre_mlir.hw.number_formats import dl16
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import StickAccess, walk
from spyre_mlir.ops.hardware_functions import function_of, neutral_of
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.utils.function_constants import file_constants

# Positional labels (torch-spyre code generation; certain): the last of these n for products, and for everything
# else the first n - 1 of the others and then `out`.
PRODUCT_LABELS = ("ki", "kj", "y", "x", "mb", "out", "in")
OTHER_LABELS = ("mb", "x", "y", "i", "j", "ki", "kj")
MOST_LOOPS = len(OTHER_LABELS) + 1

# What stands in for padding when a reduction reads it. No number is beyond the largest of DL16; the front end in use
# today writes the largest half (torch-spyre constants; likely), which wins over numbers further out.
Masks = Literal["largest", "half"]
_MASK_MAGNITUDES: dict[Masks, float] = {"largest": dl16.LARGEST, "half": INFINITY_STAND_IN}
MASK_NAME = "samv-maskvalue"


@dataclass(frozen=True)
class Placed:
    """A descriptor whose addresses are offsets, and the labels of its loops.

    Attributes:
        descriptor: start addresses are missing.
        offsets: per operand, bytes from its buffer's base to each core's first stick.
        labels: label of every loop, fillers included.
        watched: for a kernel of integers that may leave those of its format, how many elements in the lanes are no
            padding (0: all); None for any other.
        element: the element type of the model whose numbers its results are, where exact numerics must know it.
    """

    descriptor: Descriptor
    offsets: tuple[tuple[int, ...], ...]
    labels: Mapping[str, str]
    watched: int | None = None
    element: Attribute | None = None


def op_class(op: kernel.KernelOp) -> OpClass:
    """Return the family of file rules for an op.

    Raises:
        LoweringError: no file can hold the op.
    """
    match op:
        case kernel.RestickifyOp():
            return OpClass.RESTICKIFY
        case GatherOp():
            return OpClass.GATHER
        case kernel.ConvertOp():
            return OpClass.POINTWISE
        case kernel.ComputeOp():
            by_family = {Family.CONTRACTION: OpClass.MATMUL, Family.REDUCTION: OpClass.REDUCTION}
            return by_family.get(op.entry.family, OpClass.POINTWISE)
        case _:
            raise LoweringError(f"{op.name} has no SuperDSC")


@dataclass(frozen=True)
class _Loop:
    name: str
    extent: int
    split: int
    valid: int | None = None


@dataclass(frozen=True)
class _Walked:
    """One operand's walk in loop names, the lane named even where it is a filler."""

    tensor: DeviceTensor
    access: StickAccess
    order: tuple[str, ...]
    extents: tuple[int, ...]
    lane: str | None


def describe_kernel(op: kernel.KernelOp, index: int, masks: Masks = "largest") -> Placed:
    """Return the descriptor of a kernel op, without addresses.

    Args:
        op: the kernel op.
        index: number of its SuperDSC in the bundle.
        masks: magnitude of the constant that stands in for padding in maxima and minima.

    Raises:
        LoweringError: the op needs more loops than the format has labels for.
    """
    placed = _placed(op, masks)
    return replace(placed, descriptor=replace(placed.descriptor, index=index))


def describe_work(op: kernel.KernelOp) -> tuple[Descriptor, Mapping[str, str]]:
    """Return the descriptor of a kernel op as far as its work follows from it, and the label of every loop.

    Raises:
        LoweringError: as for `describe_kernel`.
    """
    shaped = _shaped(op, "largest")
    return shaped.descriptor, shaped.labels


@fact
def kernel_work(op: kernel.KernelOp) -> Work:
    """Return the work of a kernel op as it is divided.

    Raises:
        LoweringError: as for `describe_kernel`.
    """
    return work_of(describe_work(op)[0])


@dataclass(frozen=True)
class _Shaped:
    """A kernel without the slices of its cores.

    Attributes:
        descriptor: with no table of slices.
        walked: the operands' walks.
        operands: before a gather links them.
        labels: label of every loop, fillers included.
    """

    descriptor: Descriptor
    walked: Sequence[_Walked]
    operands: Sequence[Operand]
    labels: Mapping[str, str]


@fact
def _placed(op: kernel.KernelOp, masks: Masks) -> Placed:
    """The descriptor of a kernel as number 0."""
    shaped = _shaped(op, masks)
    descriptor, labels = shaped.descriptor, shaped.labels
    table = _table(op, labels, descriptor.dims, descriptor.op_class)
    offsets = tuple(
        tuple(w.access.offset * STICK_BYTES + o for o in start_offsets(descriptor.dims, x, descriptor.op_class, table))
        for w, x in zip(shaped.walked, shaped.operands, strict=True)
    )
    return Placed(replace(descriptor, slices=table), offsets, labels)


@fact
def _shaped(op: kernel.KernelOp, masks: Masks) -> _Shaped:
    """The same without the slices of the cores, which only the divided kernel has."""
    kind = op_class(op)
    walked = _with_stick([_walk(op, n, kind) for n in range(len(op.tensors))])
    loops = _loops(op, kind, walked)
    labels = _labels([lp.name for lp in loops], kind)
    dims = tuple(Dim(labels[lp.name], lp.extent, lp.split, lp.valid) for lp in loops)
    if kind is OpClass.GATHER:
        walked[1] = _whole_rows(op, walked[1])
    operands = [_operand(w, labels, op.function_name) for w in walked]
    linked = _gather_operands(op, operands, labels) if kind is OpClass.GATHER else operands
    function = op.function_name
    own, mask = file_constants(op), _mask_constant(function, masks) if any(d.valid is not None for d in dims) else ()
    unit = op.entry.unit.value if isinstance(op, kernel.ComputeOp) else "sfp"
    published = function_of(function)
    kept = FP32.name if published is not None and published.converts_integers else None
    descriptor = Descriptor(0, function, unit, kind, dims, tuple(linked), (*own, *mask), len(own) if mask else -1, kept)
    return _Shaped(descriptor, walked, operands, MappingProxyType(labels))


def _table(op: kernel.KernelOp, labels: Mapping[str, str], dims: Sequence[Dim], kind: OpClass) -> Slices:
    """Per core, its slice of every dim; nothing where the loops number the cores as the rule of files does."""
    others = [dim.label for dim in dims if dim.label not in {labels[d.name] for d in op.space.data}]
    named = [{labels[name]: place for name, place in row.items()} for row in op.core_slices()]
    table = tuple([row | dict.fromkeys(others, 0) for row in named])
    return () if table == core_slices(dims, kind) else table


def _walk(op: kernel.KernelOp, number: int, kind: OpClass) -> _Walked:
    tensor, acc = op.tensors[number], op.accesses()[number]
    if tensor.space == "lx":
        acc, walked = op.local_walk(number)
    else:
        walked = walk(acc, op.padded_extents(), tensor.lanes, gathered=kind is OpClass.GATHER)
    order, extents, lane = walked.order, walked.extents, acc.lane
    if kind is OpClass.MATMUL and number > 0 and lane is None:
        # One column only: the file wants a column dimension, of one stick with one valid lane.
        order, extents, lane = (COLUMN, *order), (tensor.lanes, *extents), COLUMN
    if kind is OpClass.GATHER and number == 0 and not order:
        # One index only: the file wants a dimension for it.
        order, extents, lane = (ROW,), (tensor.lanes,), ROW
    return _Walked(tensor, acc, order, extents, lane)


COLUMN = "_column"
ROW = "_row"
SPARSE = "_sparse"


def _with_stick(walked: list[_Walked]) -> list[_Walked]:
    """Give all operands a one-stick dimension where none has a dense stick: the front end wants one (likely).

    A change of width would need two sticks where there is one, and keeps its operands sparse.
    """
    lanes = {w.tensor.lanes for w in walked}
    if any(w.lane is not None for w in walked) or len(lanes) > 1:
        return walked
    return [replace(w, order=(*w.order, SPARSE), extents=(*w.extents, *lanes), lane=SPARSE) for w in walked]


def _loops(op: kernel.KernelOp, kind: OpClass, walked: list[_Walked]) -> list[_Loop]:
    """Fillers, then result loops, then summed ones: the order in which labels are given."""
    padded, kept = op.padded_extents(), op.maps.data[-1].names
    fillers = sorted({n for w in walked for n in w.order if n not in padded and n not in (COLUMN, SPARSE)})
    own = [_Loop(d.name, padded[d.name], d.split, _valid(op, kind, d.name)) for d in op.space.data]
    loops = [_Loop(f, 1, 1) for f in fillers]
    columns = op.maps.data[1].names - op.maps.data[0].names if kind is OpClass.MATMUL else ()
    loops += sorted((lp for lp in own if lp.name in kept), key=lambda lp: lp.name in columns)
    if any(COLUMN in w.order for w in walked):
        loops.append(_Loop(COLUMN, walked[-1].tensor.lanes, 1))
    loops += [lp for lp in own if lp.name not in kept]
    if all(w.lane in (None, SPARSE) for w in walked):
        # No operand has a dense stick: the file still names a stick dimension.
        loops.append(_Loop(SPARSE, walked[-1].tensor.lanes, 1))
    return loops


def _valid(op: kernel.KernelOp, kind: OpClass, name: str) -> int | None:
    """Logical extent of a padded loop that a reduction folds."""
    padded, extent = op.padded_extents()[name], op.space.extents[name]
    folded = kind is OpClass.REDUCTION and name not in op.maps.data[-1].names
    return extent if folded and padded != extent else None


def _labels(names: list[str], kind: OpClass) -> dict[str, str]:
    count = len(names)
    if kind is OpClass.MATMUL:
        known = PRODUCT_LABELS[len(PRODUCT_LABELS) - count :] if count <= len(PRODUCT_LABELS) else ()
    else:
        last = ("out",)
        if names[-1] == SPARSE:  # labelled by its position, as if there were one more input dimension
            last = ("out", *OTHER_LABELS[count - 1 : count]) if count > 1 else (OTHER_LABELS[0],)
        known = (*OTHER_LABELS[: count - len(last)], *last) if count <= MOST_LOOPS else ()
    if len(known) != count:
        raise LoweringError(
            f"{count} loops ({', '.join(names)}), the file format has {MOST_LOOPS} labels",
            hint="merge dimensions of the model's tensors that are used together",
        )
    return dict(zip(names, known, strict=True))


def _operand(w: _Walked, labels: dict[str, str], function: str) -> Operand:
    return Operand(
        order=tuple(labels[n] for n in w.order),
        extents=w.extents,
        stick=None if w.lane is None else labels[w.lane],
        format=labelled_format(function, w.tensor.format),
        start=(),
        component=w.tensor.space,
    )


def _whole_rows(op: kernel.KernelOp, table: _Walked) -> _Walked:
    """The walk through one row of a table, as long as a row of its layout: the rows follow one another behind it."""
    tensor, axis = table.tensor, gathered_axis(op)
    row, step = tensor.layout.strides(tensor.lanes)[axis], table.access.strides[table.order[-1]]
    if row % step:
        raise LoweringError(
            f"rows of {row} sticks, walked {step} sticks at a time: a file cannot say where the next row begins",
            hint="copy the table first",
        )
    reserved = row // step * (tensor.lanes if table.order[-1] == table.lane else 1)
    return replace(table, extents=(*table.extents[:-1], reserved))


def _gather_operands(op: kernel.KernelOp, operands: list[Operand], labels: dict[str, str]) -> list[Operand]:
    """Links index and table; the loops of the index tensor stand where the table's rows are."""
    index, table, output = operands
    order = (*table.order, *(label for label in index.order if label not in table.order))
    padded = op.padded_extents()
    sizes = {label: padded.get(name, 1) for name, label in labels.items()}
    rows = kernel_rows(op)
    picked = [label for label in index.order if label not in table.order]
    extents = (*table.extents, *(sizes.get(label, 1) for label in picked))  # 1: the filler of a single index
    limits = tuple(1 if label in picked and sizes.get(label, 1) < rows else -1 for label in order)
    return [
        replace(index, indirect=Indirect(IndirectKind.INDEX, 1)),
        replace(table, order=order, extents=extents, indirect=Indirect(IndirectKind.VALUE, 0, limits)),
        output,
    ]


def kernel_rows(op: kernel.KernelOp) -> int:
    """Return the rows of a gather's table."""
    return op.tensors[1].shape[gathered_axis(op)]


def gathered_axis(op: kernel.KernelOp) -> int:
    """Return the table dimension along which a gather selects rows."""
    return op.axis.value.data if isinstance(op, GatherOp) else 0


def _mask_constant(function: str, masks: Masks) -> tuple[Constant, ...]:
    bits = int(dl16.encode([neutral_of(function, _MASK_MAGNITUDES[masks])])[0])
    return (Constant(MASK_NAME, DL16.name, bits),)
