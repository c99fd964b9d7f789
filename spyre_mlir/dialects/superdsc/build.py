"""From a descriptor to a SuperDSC: class labels, scales, orders and gaps are worked out here, the rest is implied."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.superdsc import keys, rules
from spyre_mlir.dialects.superdsc.context import Context
from spyre_mlir.dialects.superdsc.descriptor import Descriptor, IndirectKind, OpClass, Operand, Version, core_slices
from spyre_mlir.dialects.superdsc.elision import complete
from spyre_mlir.dialects.superdsc.fields import Level
from spyre_mlir.dialects.superdsc.json_value import Json, JsonObject
from spyre_mlir.dialects.superdsc.ops import AllocateOp, ComputeOp, ConstantOp, DscOp, LabeledDsOp, SdscOp
from spyre_mlir.errors import EmitError

_INDEX_LABEL = "KERNEL_IDX"
# Labels are handed out in this order to layout classes as operands introduce them; torch-spyre code generation.
_LABELS = {
    OpClass.MATMUL: ("INPUT", "KERNEL", "OUTPUT"),
    OpClass.POINTWISE: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.REDUCTION: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.RESTICKIFY: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.GATHER: ("OUTPUT", "KERNEL", "INPUT"),
}


@dataclass(frozen=True)
class _Placed:
    """An operand with its class: full order (reduced dims appended), class label, the class's order."""

    index: int
    operand: Operand
    order: tuple[str, ...]
    label: str
    class_order: tuple[str, ...]
    stick: str


def build(descriptor: Descriptor, version: Version = Version.TS26) -> SdscOp:
    """The SuperDSC that says what the descriptor says.

    Raises:
        EmitError: the descriptor contradicts itself, or the file format cannot say it.
    """
    check(descriptor)
    context = Context(version=version)
    head: JsonObject = {keys.SPLITS: {dim.label: dim.split for dim in descriptor.dims}}
    context.read_sdsc(head)
    if descriptor.slices and descriptor.slices != core_slices(descriptor.dims, descriptor.op_class):
        table: JsonObject = {str(core): dict(row) for core, row in enumerate(descriptor.slices)}
        head[keys.CORE_TO_SLICE] = table
    name = descriptor.op_func_name
    dsc = DscOp(name, *_dsc(descriptor, context))
    op = SdscOp(f"{descriptor.index}_{name}", complete(Level.SDSC, head, {}, context), [dsc], version)
    try:
        op.verify()
    except VerifyException as error:
        raise EmitError(str(error.args[0]), where=f"{descriptor.index}_{name}") from error
    return op


def _dsc(
    descriptor: Descriptor, context: Context
) -> tuple[JsonObject, list[AllocateOp | LabeledDsOp | ConstantOp | ComputeOp]]:
    placed = _classify(descriptor)
    head = _dsc_head(descriptor, placed)
    context.read_dsc(head)
    context.has_constants = bool(descriptor.constants)
    operands, nodes = [_labeled_ds(item) for item in placed], [_allocate(item, descriptor) for item in placed]
    for fields in operands:
        context.read_labeled_ds(fields)
    for fields in nodes:
        context.read_allocate(fields)
    body: list[AllocateOp | LabeledDsOp | ConstantOp | ComputeOp] = []
    body += [AllocateOp(complete(Level.ALLOCATE, fields, {}, context)) for fields in nodes]
    body += [LabeledDsOp(complete(Level.LABELED_DS, fields, {}, context)) for fields in operands]
    for number, constant in enumerate(descriptor.constants):
        fields: JsonObject = {keys.FORMAT: constant.format, keys.NAME: constant.name}
        short: JsonObject = {"short": {keys.DATA: constant.bits}}
        body.append(ConstantOp(str(number), complete(Level.CONSTANT, fields, short, context)))
    body.append(ComputeOp(complete(Level.COMPUTE, _compute(descriptor), {}, context)))
    return complete(Level.DSC, head, {}, context), body


def _classify(descriptor: Descriptor) -> list[_Placed]:
    """Give every operand its full order and its layout class.

    Two operands share a class if they have the same stick dim, set of dims and stick size.
    """
    free = list(_LABELS[descriptor.op_class])
    known: dict[tuple[str, frozenset[str], int], tuple[str, tuple[str, ...]]] = {}
    placed: list[_Placed] = []
    for index, operand in enumerate(descriptor.operands):
        order = full_order(descriptor, operand)
        stick = operand.stick or descriptor.stick
        key = (stick, frozenset(order), operand.elements_per_stick)
        is_index = operand.indirect is not None and operand.indirect.kind is IndirectKind.INDEX
        if is_index:
            label, class_order = _INDEX_LABEL, order
        else:
            if key not in known and not free:
                raise EmitError(f"{descriptor.op_func}: operands need more than {len(known)} layout classes")
            if key not in known:
                known[key] = (free.pop(0), order)
            label, class_order = known[key]
        placed.append(_Placed(index, operand, order, label, class_order, stick))
    return placed


def full_order(descriptor: Descriptor, operand: Operand) -> tuple[str, ...]:
    """`layoutDimOrder_`: the operand's own dims, then those of the reference operand it lacks.

    A sparse operand's place for the stick index comes first among them. Matmul and gather operands list only their own.
    """
    if descriptor.op_class in (OpClass.MATMUL, OpClass.GATHER):
        return operand.order
    sparse = (descriptor.stick,) if operand.stick is None else ()
    wanted = (*operand.order, *sparse, *descriptor.reference.order, descriptor.stick)
    return tuple(dict.fromkeys(wanted))


def _dsc_head(descriptor: Descriptor, placed: list[_Placed]) -> JsonObject:
    classes: JsonObject = {}
    for item in placed:
        order: list[Json] = list(item.class_order)
        classes.setdefault(
            item.label,
            {
                keys.ORDER: order,
                keys.STICK_DIMS: [item.stick],
                keys.STICK_SIZES: [item.operand.elements_per_stick],
            },
        )
    masks: JsonObject = {
        dim.label: [[dim.valid, dim.extent - dim.valid]] for dim in descriptor.dims if dim.valid is not None
    }
    return {
        keys.SIZES: rules.named_sizes({dim.label: dim.extent for dim in descriptor.dims}),
        keys.MASKING: masks,
        keys.MASK_CONSTANT: descriptor.mask_constant,
        keys.CLASSES: classes,
    }


def _labeled_ds(item: _Placed) -> JsonObject:
    scale: list[Json] = []
    for label in item.class_order:
        missing = -2 if label == item.stick and item.operand.stick is None else -1
        scale.append(1 if label in item.operand.order else missing)
    return {keys.INDEX: item.index, keys.CLASS: item.label, keys.SCALE: scale, keys.FORMAT: item.operand.format}


def _allocate(item: _Placed, descriptor: Descriptor) -> JsonObject:
    operand = item.operand
    order: list[Json] = list(item.order)
    fields: JsonObject = {
        keys.INDEX: item.index,
        keys.COMPONENT: operand.component,
        keys.ORDER: order,
        keys.START: rules.start_folds(operand.start),
    }
    if operand.symbolic:
        fields[keys.SYMBOLIC] = 1
    gaps = back_gaps(descriptor, operand)
    if gaps:
        holders = ["-1"] if operand.component == keys.HBM else [str(core) for core in range(descriptor.cores)]
        fields[keys.BACK_GAP] = {label: {holder: str(gap) for holder in holders} for label, gap in gaps.items()}
    if operand.indirect is not None:
        fields |= _indirect(operand, descriptor)
    return fields


def _indirect(operand: Operand, descriptor: Descriptor) -> JsonObject:
    link = operand.indirect
    if link is None:
        return {}
    partner = descriptor.operands[link.partner]
    fields: JsonObject = {
        keys.INDIRECT: link.kind.value,
        keys.INDIRECT_PARTNER: rules.node_name(link.partner, partner.component),
    }
    if link.kind is IndirectKind.INDEX:
        fields[keys.INDEX_TYPE] = "index"
    if link.max_sizes:
        sizes: list[Json] = list(link.max_sizes)
        fields[keys.MAX_SIZES] = sizes
    return fields


def back_gaps(descriptor: Descriptor, operand: Operand) -> dict[str, int]:
    """Elements allocated beyond the used ones, per dim where there are any; whole sticks along the stick dim."""
    gaps: dict[str, int] = {}
    eps = operand.elements_per_stick
    for label, count in zip(operand.order, operand.counts(), strict=True):
        dim = descriptor.dim(label)
        used = dim.per_core if operand.component == keys.LX else dim.extent
        gap = (count + used // -eps) * eps if label == operand.stick else count - used
        if gap:
            gaps[label] = gap
    return gaps


def _compute(descriptor: Descriptor) -> JsonObject:
    count = len(descriptor.operands)
    indices = [
        number
        for number, operand in enumerate(descriptor.operands)
        if operand.indirect is not None and operand.indirect.kind is IndirectKind.INDEX
    ]
    read = range(count if descriptor.op_class is OpClass.REDUCTION else count - 1)
    data = [number for number in read if number not in indices]
    kind = descriptor.op_format or descriptor.operands[data[0]].format
    fields: JsonObject = {
        keys.UNIT: descriptor.unit,
        keys.FUNCTION: descriptor.op_func_name,
        keys.ATTRIBUTES: {keys.FORMAT: kind, keys.FIDELITY: "regular"},
        keys.INPUTS: [rules.operand_reference(number) for number in data],
        keys.OUTPUTS: [rules.operand_reference(count - 1)],
    }
    if indices:
        fields[keys.INDICES] = [rules.operand_reference(number) for number in indices]
    return fields


def check(descriptor: Descriptor) -> None:
    """Refuse a descriptor that contradicts itself.

    Raises:
        EmitError: what was needed and what there is.
    """
    where = f"{descriptor.index}_{descriptor.op_func}"
    if not descriptor.dims or not descriptor.operands:
        raise EmitError("a SuperDSC needs at least one dim and one operand", where=where)
    labels = [dim.label for dim in descriptor.dims]
    if len(set(labels)) != len(labels):
        raise EmitError(f"dim labels must differ, got {labels}", where=where)
    for dim in descriptor.dims:
        if dim.extent < 1 or dim.split < 1 or dim.extent % dim.split:
            raise EmitError(
                f"dim {dim.label}: {dim.extent} elements do not divide into {dim.split} slices", where=where
            )
        if dim.valid is not None and not 0 < dim.valid <= dim.extent:
            raise EmitError(f"dim {dim.label}: {dim.valid} valid of {dim.extent} elements", where=where)
    if not -1 <= descriptor.mask_constant < len(descriptor.constants):
        raise EmitError(
            f"mask constant {descriptor.mask_constant} of {len(descriptor.constants)} constants", where=where
        )
    for number, operand in enumerate(descriptor.operands):
        _check_operand(descriptor, operand, f"{where}, operand {number}")


def _check_operand(descriptor: Descriptor, operand: Operand, where: str) -> None:
    labels = [dim.label for dim in descriptor.dims]
    unknown = [label for label in operand.order if label not in labels]
    if unknown or len(operand.extents) != len(operand.order):
        raise EmitError(f"order {operand.order} with extents {operand.extents} over dims {labels}", where=where)
    if operand.stick is not None and operand.stick not in operand.order:
        raise EmitError(f"stick dim {operand.stick} is not in the order {operand.order}", where=where)
    if len(operand.start) != descriptor.cores:
        raise EmitError(f"{len(operand.start)} start addresses for {descriptor.cores} cores", where=where)
    if operand.stick is not None:
        dim, eps = descriptor.dim(operand.stick), operand.elements_per_stick
        if dim.split > 1 and dim.per_core % eps:
            raise EmitError(
                f"a slice of stick dim {dim.label} is {dim.per_core} elements, sticks hold {eps}",
                where=where,
                hint=f"split {dim.label} into whole sticks, or pad it",
            )
    for label, gap in back_gaps(descriptor, operand).items():
        gathered = operand.indirect is not None
        if gap < 0 and not gathered:
            raise EmitError(
                f"dim {label} needs {gap} more elements than are allocated".replace("needs -", "needs "),
                where=where,
                hint="pad the buffer: a file cannot tell a shortfall from a gap",
            )
