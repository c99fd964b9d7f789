"""From a descriptor to a SuperDSC: computes class labels, scales, orders and gaps; the other fields are implied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ir.modules import KeptOp, copy_of
from spyre_mlir.dialects.superdsc.codec import symbolic_fields, window_fields
from spyre_mlir.dialects.superdsc.codec.check_descriptor import check
from spyre_mlir.dialects.superdsc.codec.coordinate_rules import coordinate_rules
from spyre_mlir.dialects.superdsc.codec.described import certainty
from spyre_mlir.dialects.superdsc.codec.gaps import back_gaps
from spyre_mlir.dialects.superdsc.codec.linked_body import linked_body
from spyre_mlir.dialects.superdsc.dialect import typed_fields
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, DscOp, InDsc, SdscOp, root_properties
from spyre_mlir.dialects.superdsc.dialect.short_form import complete
from spyre_mlir.dialects.superdsc.dialect.skeleton import tell
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.certainty import certainty_of
from spyre_mlir.dialects.superdsc.model.descriptor import (
    ACCUMULATING,
    LAST_LABEL,
    OWN_DIMS,
    WINDOWED,
    Descriptor,
    IndirectKind,
    OpClass,
    Operand,
    Version,
    core_slices,
)
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject, as_object
from spyre_mlir.dialects.target import in_module_for
from spyre_mlir.errors import EmitError
from spyre_mlir.hw.spec import SPYRE, SpyreSpec

_INDEX_LABEL = "KERNEL_IDX"
# Labels are handed out in this order to layout classes as operands introduce them; torch-spyre code generation.
_LABELS = {
    OpClass.MATMUL: ("INPUT", "KERNEL", "OUTPUT"),
    OpClass.POINTWISE: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.REDUCTION: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.RESTICKIFY: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.GATHER: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.SHUFFLE: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.TOP_K: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.POOLING: ("OUTPUT", "KERNEL", "INPUT"),
    OpClass.CONVOLUTION: ("INPUT", "KERNEL", "OUTPUT"),
    OpClass.DEPTHWISE: ("OUTPUT", "INPUT", "KERNEL"),
}


@dataclass(frozen=True)
class _Placed:
    """An operand with its class: full order (reduced dims appended), class label, the class's order."""

    index: int
    operand: Operand
    order: tuple[str, ...]
    label: str
    class_order: tuple[str, ...]
    sticks: dict[str, int]


def build(descriptor: Descriptor, version: Version = Version.TS26, spec: SpyreSpec = SPYRE) -> SdscOp:
    """Return the SuperDSC of a descriptor, for a card.

    Raises:
        EmitError: the descriptor contradicts itself, or the file format cannot say it.
    """
    slices = tuple(tuple(row.items()) for row in descriptor.slices)  # no part of what descriptors compare
    alike = _Alike(_without_places(descriptor), slices, version, spec)
    made, root = _made(alike), f"{descriptor.index}_{descriptor.op_func_name}"
    try:
        for kept in made:  # held while it is copied: another thread may put its own here
            if (twin := _twin(kept.op, root, descriptor.operands)) is not None:
                return twin
        check(descriptor)
        _check_version(descriptor, version)
        op = _build(descriptor, version)
        with in_module_for(spec, op):
            op.verify()
    except VerifyException as error:
        raise EmitError(str(error.args[0]), where=root) from error
    made[:] = [KeptOp(copy_of(op))]
    tell(certainty, op, certainty_of(descriptor))  # the manifest asks, and would read the whole op for it
    return op


@dataclass(frozen=True)
class _Alike:
    """What SuperDSCs have in common that differ in number and start addresses only."""

    descriptor: Descriptor
    slices: tuple[tuple[tuple[str, int], ...], ...]
    version: Version
    spec: SpyreSpec


@lru_cache(maxsize=1 << 9)
def _made(_alike: _Alike) -> list[KeptOp[SdscOp]]:
    """The first SuperDSC of its kind, if there has been one."""
    return []


def _without_places(descriptor: Descriptor) -> Descriptor:
    operands = [replace(x, start=("",) * len(x.start)) for x in descriptor.operands]
    return replace(descriptor, index=0, operands=tuple(operands))


def _twin(made: SdscOp, root: str, operands: Sequence[Operand]) -> SdscOp | None:
    """A copy of a SuperDSC with another number and other start addresses; None if these are spelled in an odd way."""
    op = copy_of(made)
    op.properties |= root_properties(root)
    (dsc,) = op.dscs()
    for node, operand in zip(dsc.items(AllocateOp), operands, strict=True):
        start = typed_fields.addresses(operand.start)
        if start is None or not isinstance(node, AllocateOp) or node.start is None:
            return None
        node.properties["start"] = start
        node.verify_start()
    return op


def _build(descriptor: Descriptor, version: Version) -> SdscOp:
    context = FileContext(version=version)
    head: JsonObject = symbolic_fields.top_fields(descriptor)
    head |= {keys.SPLITS: {dim.label: dim.split for dim in descriptor.dims}}
    context.read_sdsc(head)
    if descriptor.slices and descriptor.slices != core_slices(descriptor.dims, descriptor.op_class):
        table: JsonObject = {str(core): dict(row) for core, row in enumerate(descriptor.slices)}
        head[keys.CORE_TO_SLICE] = table
    name = descriptor.op_func_name
    dsc = DscOp(name, *_dsc(descriptor, context))
    return SdscOp(f"{descriptor.index}_{name}", complete(Level.SDSC, head, {}, context), [dsc], version)


def _dsc(descriptor: Descriptor, context: FileContext) -> tuple[JsonObject, list[InDsc]]:
    placed = _classify(descriptor, context.version)
    head = _dsc_head(descriptor, placed)
    context.read_dsc(head)
    context.has_constants = bool(descriptor.constants)
    operands, nodes = (
        [_labeled_ds(item, descriptor) for item in placed],
        [_allocate(item, descriptor) for item in placed],
    )
    for fields in operands:
        context.read_labeled_ds(fields)
    for fields in nodes:
        context.read_allocate(fields)
    constants: dict[str, JsonObject] = {}
    for number, constant in enumerate(descriptor.constants):
        fields: JsonObject = {keys.FORMAT: constant.format, keys.NAME: constant.name}
        short: JsonObject = {"short": {keys.DATA: constant.bits}}
        constants[str(number)] = complete(Level.CONSTANT, fields, short, context)
    body = linked_body(
        [complete(Level.ALLOCATE, fields, {}, context) for fields in nodes],
        [complete(Level.LABELED_DS, fields, {}, context) for fields in operands],
        constants,
        [complete(Level.COMPUTE, _compute(descriptor), {}, context)],
    )
    return complete(Level.DSC, head, {}, context), body


def _classify(descriptor: Descriptor, version: Version) -> list[_Placed]:
    """Give every operand its full order and its layout class.

    Two operands share a class if they have the same stick dim, set of dims and stick size.
    """
    free = list(_LABELS[descriptor.op_class])
    known: dict[tuple[tuple[tuple[str, int], ...], frozenset[str]], tuple[str, tuple[str, ...]]] = {}
    placed: list[_Placed] = []
    for index, operand in enumerate(descriptor.operands):
        order = _full_order(descriptor, index, version)
        sticks = operand.stick_lanes or {descriptor.stick: operand.elements_per_stick}
        key = (tuple(sticks.items()), frozenset(order))
        is_index = operand.indirect is not None and operand.indirect.kind is IndirectKind.INDEX
        if is_index:
            label, class_order = _INDEX_LABEL, order
        else:
            if key not in known and not free:
                raise EmitError(f"{descriptor.op_func}: operands need more than {len(known)} layout classes")
            if key not in known:
                known[key] = (free.pop(0), order)
            label, class_order = known[key]
        placed.append(_Placed(index, operand, order, label, class_order, sticks))
    return placed


def _full_order(descriptor: Descriptor, index: int, version: Version) -> tuple[str, ...]:
    """`layoutDimOrder_`: the operand's own dims, then those of the reference operand it lacks.

    A sparse operand's place for the stick index comes first among them, unless it is one number alone. Some classes
    list only their own; in the newest files the first operand of a product also has the batch dims that only the
    second one has (torch-spyre #3888; likely).
    """
    operand = descriptor.operands[index]
    if version is Version.TSNEW and descriptor.op_class is OpClass.MATMUL and index == 0:
        batch = [d for d in descriptor.output.order if d not in operand.order and d != descriptor.output.stick]
        return (*operand.order, *batch)
    if descriptor.op_class in OWN_DIMS:
        return operand.order
    sparse = (descriptor.stick,) if operand.stick is None and operand.order else ()
    wanted = dict.fromkeys((*operand.order, *sparse, *descriptor.reference.order, descriptor.stick))
    # A stick dim that only the file has, because no operand has a dense one, stands behind everything else.
    added = descriptor.dims[-1].label
    if added != LAST_LABEL and operand.stick == added == operand.order[-1]:
        del wanted[added]
        wanted[added] = None
    return tuple(wanted)


def _dsc_head(descriptor: Descriptor, placed: list[_Placed]) -> JsonObject:
    classes: JsonObject = {}
    for item in placed:
        order: list[Json] = list(item.class_order)
        entry: JsonObject = {
            keys.ORDER: order,
            keys.STICK_DIMS: list(item.sticks),
            keys.STICK_SIZES: list(item.sticks.values()),
        }
        if descriptor.op_class in (OpClass.POOLING, OpClass.CONVOLUTION):
            entry[keys.STICK_REPLICATION] = [1]
        classes.setdefault(item.label, entry)
    masks: JsonObject = {
        dim.label: [[dim.valid, dim.extent - dim.valid]] for dim in descriptor.dims if dim.valid is not None
    }
    head: JsonObject = {
        keys.SIZES: derived_values.named_sizes({dim.label: dim.extent for dim in descriptor.dims}),
        keys.MASKING: masks,
        keys.MASK_CONSTANT: descriptor.mask_constant,
        keys.CLASSES: classes,
    }
    return head | _newest(descriptor)


def _newest(descriptor: Descriptor) -> JsonObject:
    """Members of a DSC with windows or symbolic sizes."""
    sizes = {dim.label: dim.extent for dim in descriptor.dims}
    stages = derived_values.stages(sizes, {dim.label: dim.split for dim in descriptor.dims}, Version.TSNEW)
    extra: JsonObject = {}
    inside: JsonObject = {}
    if symbolic_fields.mapping(descriptor):
        extra[keys.SYMBOL_MAPPING] = symbolic_fields.mapping(descriptor)
        inside[keys.SYMBOLIC_DIMS] = symbolic_fields.limits(descriptor)
    if descriptor.windows:
        whole: JsonObject = {keys.PADDING_SIZES: window_fields.window_sizes(descriptor, per_core=False)}
        extra[keys.SIZES] = derived_values.named_sizes(sizes) | whole
        inside[keys.PADDING_SIZES] = window_fields.window_sizes(descriptor, per_core=True)
    if descriptor.op_class in (OpClass.POOLING, OpClass.CONVOLUTION):
        extra[keys.CLASS_RELATION] = {keys.IS_REUSE: 1}
    if inside:
        extra[keys.STAGES] = {
            number: {name: (as_object(stage) or {}) | inside for name, stage in (as_object(both) or {}).items()}
            for number, both in stages.items()
        }
    return extra


def _labeled_ds(item: _Placed, descriptor: Descriptor) -> JsonObject:
    scale: list[Json] = []
    for label in item.class_order:
        missing = -2 if label in item.sticks and item.operand.stick is None else -1
        scale.append(1 if label in item.operand.order else missing)
    fields: JsonObject = {
        keys.INDEX: item.index,
        keys.CLASS: item.label,
        keys.SCALE: scale,
        keys.FORMAT: item.operand.format,
    }
    if descriptor.op_class in WINDOWED:
        memories = window_fields.memories(descriptor, item.index, item.operand.component)
        fields |= {} if memories is None else {keys.MEMORY: memories}
    return fields


def _allocate(item: _Placed, descriptor: Descriptor) -> JsonObject:
    operand = item.operand
    order: list[Json] = list(item.order)
    fields: JsonObject = {
        keys.INDEX: item.index,
        keys.COMPONENT: operand.component,
        keys.ORDER: order,
        keys.START: derived_values.start_folds(operand.start),
    }
    if operand.symbolic:
        fields[keys.SYMBOLIC] = 1
    own = _own_coordinates(item, descriptor)
    if own is not None:
        fields[keys.COORDINATES] = own
    walked = {window.dim: window_fields.pad_type(window) for window in descriptor.windows}
    if item.index == 0 and walked:
        fields[keys.PADDING] = {label: kind for label, kind in walked.items() if label in operand.order}
    gaps = back_gaps(descriptor, operand)
    if gaps:
        holders = ["-1"] if operand.component == keys.HBM else [str(core) for core in range(descriptor.cores)]
        fields[keys.BACK_GAP] = {label: {holder: str(gap) for holder in holders} for label, gap in gaps.items()}
    if operand.indirect is not None:
        fields |= _indirect(operand, descriptor)
    return fields


def _own_coordinates(item: _Placed, descriptor: Descriptor) -> JsonObject | None:
    """`coordinates_` where they are not those that sizes, splits and scales imply."""
    own = coordinate_rules(descriptor, item.index, item.class_order)
    table: JsonObject = {str(core): dict(row) for core, row in enumerate(item.operand.slices)}
    return {keys.COORD_INFO: own, keys.CORE_TO_SLICE: table} if own is not None or table else None


def _indirect(operand: Operand, descriptor: Descriptor) -> JsonObject:
    link = operand.indirect
    if link is None:
        return {}
    partner = descriptor.operands[link.partner]
    fields: JsonObject = {
        keys.INDIRECT: link.kind.value,
        keys.INDIRECT_PARTNER: derived_values.node_name(link.partner, partner.component),
    }
    if link.kind is IndirectKind.INDEX:
        fields[keys.INDEX_TYPE] = "index"
    if link.max_sizes:
        sizes: list[Json] = list(link.max_sizes)
        fields[keys.MAX_SIZES] = sizes
    return fields


def _compute(descriptor: Descriptor) -> JsonObject:
    count = len(descriptor.operands)
    indices = [
        number
        for number, operand in enumerate(descriptor.operands)
        if operand.indirect is not None and operand.indirect.kind is IndirectKind.INDEX
    ]
    read = range(count if descriptor.op_class in ACCUMULATING else count - 1)
    data = [number for number in read if number not in indices]
    kind = descriptor.op_format or descriptor.operands[data[0]].format
    fields: JsonObject = {
        keys.UNIT: descriptor.unit,
        keys.FUNCTION: descriptor.op_func_name,
        keys.ATTRIBUTES: derived_values.operation_attributes(kind),
        keys.INPUTS: [derived_values.operand_reference(number) for number in data],
        keys.OUTPUTS: [derived_values.operand_reference(count - 1)],
    }
    if indices:
        fields[keys.INDICES] = [derived_values.operand_reference(number) for number in indices]
    return fields


def _check_version(descriptor: Descriptor, version: Version) -> None:
    """Some forms exist in the newest generation only."""
    newest = {
        "windows": bool(descriptor.windows) or descriptor.op_class in WINDOWED,
        "symbolic sizes": any(dim.symbolic is not None for dim in descriptor.dims),
        "two dims in a stick": any(operand.second_stick is not None for operand in descriptor.operands),
        "a distribution of an operand's own": any(operand.slices for operand in descriptor.operands),
    }
    used = [name for name, yes in newest.items() if yes]
    if used and version is not Version.TSNEW:
        raise EmitError(
            f"{version.value} files have no {' or '.join(used)}",
            where=f"{descriptor.index}_{descriptor.op_func}",
            hint=f"write {Version.TSNEW.value}",
        )
