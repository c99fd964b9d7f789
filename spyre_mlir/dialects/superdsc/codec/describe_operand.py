"""The operands of a SuperDSC: each from its labeledDs_ entry, its layout class and its allocate node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from spyre_mlir.dialects.superdsc.codec.coordinate_rules import coordinate_rules, own_splits
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.codec.gaps import unclear_gaps
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Descriptor,
    Dim,
    Indirect,
    IndirectKind,
    OpClass,
    Operand,
    Slices,
)
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject, natural, same
from spyre_mlir.dialects.superdsc.model.operand_fields import NO_INDIRECTION, SCALES
from spyre_mlir.hw.formats import FORMATS
from spyre_mlir.hw.spec import STICK_BYTES

_STICK_DIMS = 2


def read_operands(dsc: Cursor, view: Descriptor) -> tuple[Operand, ...]:
    """Return all operands, in operand order.

    Args:
        dsc: the DSC.
        view: everything but the operands.

    Raises:
        ReadError: an entry is malformed or contradicts another.
        UnsupportedError: an entry uses what we have no meaning for.
    """
    nodes: dict[int, Cursor] = {}
    for node in dsc.at(keys.SCHEDULE_TREE).items():
        if node.at(keys.NODE_TYPE).text() != "allocate":
            node.unsupported("a schedule node that is no allocate")
        nodes[node.at(keys.INDEX).integer()] = node
    entries = dsc.at(keys.LABELED_DS).items()
    operands: list[Operand] = []
    for number, entry in enumerate(entries):
        entry.at(keys.INDEX).must_be(number)
        if number not in nodes:
            dsc.at(keys.SCHEDULE_TREE).fail(f"an allocate node for operand {number}", f"nodes for {list(nodes)}")
        layout = dsc.at(keys.CLASSES).at(entry.at(keys.CLASS).text())
        operands.append(_operand(entry, nodes[number], layout, view))
    for number in range(len(operands)):
        layout = dsc.at(keys.CLASSES).at(entries[number].at(keys.CLASS).text())
        scales, whole = _scales(entries[number], layout), replace(view, operands=tuple(operands))
        _check_coordinates(nodes[number], _sticks(layout), scales, coordinate_rules(whole, number, list(scales)), whole)
    _refuse_unclear_gaps(dsc, view.dims, operands)
    return tuple(operands)


def _operand(entry: Cursor, node: Cursor, layout: Cursor, view: Descriptor) -> Operand:
    kind, scales, sticks = _format(entry), _scales(entry, layout), _sticks(layout)
    order = node.at(keys.ORDER).texts()
    if sorted(order) != sorted(scales) or any(label not in {dim.label for dim in view.dims} for label in order):
        node.at(keys.ORDER).fail(f"the dims of the layout class, {list(scales)}")
    if prod(sticks.values()) != FORMATS[kind].elements_per_stick():
        layout.at(keys.STICK_SIZES).fail(f"the {FORMATS[kind].elements_per_stick()} elements of a {kind} stick")
    component = node.at(keys.COMPONENT).text()
    if component not in (keys.HBM, keys.LX):
        node.at(keys.COMPONENT).fail('"hbm" or "lx"')
    own = tuple(label for label in order if scales[label] > 0)
    symbolic, start = _start(node, view.cores)
    stick = list(sticks)[-1]
    operand = Operand(
        order=own,
        extents=(),
        stick=stick if scales.get(stick) == 1 else None,
        format=kind,
        start=start,
        symbolic=symbolic,
        component=component,
        indirect=_indirect(node),
        second_stick=next(iter(sticks.items())) if len(sticks) > 1 else None,
        slices=_distribution(node, view, own),
    )
    return replace(operand, extents=_extents(node, operand, view))


def _sticks(layout: Cursor) -> dict[str, int]:
    """Dims of the stick and their elements in one, inner to outer."""
    labels, lanes = layout.at(keys.STICK_DIMS).texts(), layout.at(keys.STICK_SIZES).integers()
    if not labels or len(labels) != len(lanes) or len(set(labels)) != len(labels):
        layout.fail("a size for every dim of the stick")
    if len(labels) > _STICK_DIMS:
        layout.unsupported("a stick made of more than two dims")
    return dict(zip(labels, lanes, strict=True))


def _format(entry: Cursor) -> str:
    place = entry.at(keys.FORMAT)
    if place.text() not in FORMATS:
        place.unsupported("a data format we do not know")
    word = FORMATS[place.text()].word_length
    if keys.WORD_LENGTH in entry and entry.at(keys.WORD_LENGTH).value != word:
        entry.at(keys.WORD_LENGTH).fail(f"the {word} bytes of {place.text()}")
    return place.text()


def _scales(entry: Cursor, layout: Cursor) -> dict[str, int]:
    order, place = layout.at(keys.ORDER).texts(), entry.at(keys.SCALE)
    numbers = place.integers()
    if len(numbers) != len(order):
        place.fail(f"one scale per dim of {order}")
    for number, value in zip(place.items(), numbers, strict=True):
        if value not in SCALES:
            number.unsupported("a scale that is not 1, -1 or -2")
    return dict(zip(order, numbers, strict=True))


def _extents(node: Cursor, operand: Operand, view: Descriptor) -> tuple[int, ...]:
    gaps = {label: _gap(place) for label, place in node.at(keys.BACK_GAP).members()} if keys.BACK_GAP in node else {}
    windows = {window.dim: window for window in view.windows if keys.PADDING in node}
    own = own_splits(operand)
    extents: list[int] = []
    for label in operand.order:
        dim = view.dim(label)
        if label in windows:
            if gaps.get(label, 0) not in (0, windows[label].stored - dim.extent):
                node.at(keys.BACK_GAP).at(label).unsupported("a gap beside a window")
            extents.append(windows[label].stored)
            continue
        split = own.get(label, 1) if operand.slices else dim.split
        used = dim.extent // split if operand.component == keys.LX else dim.extent
        extents.append(used + gaps.get(label, 0))
    return tuple(extents)


def _gap(place: Cursor) -> int:
    """The gap of one dim: under "-1", or the same for every core."""
    gaps = {member.number() for _, member in place.members()}
    if len(gaps) != 1:
        place.unsupported("back gaps that differ between cores")
    return gaps.pop()


def _start(node: Cursor, cores: int) -> tuple[bool, tuple[str, ...]]:
    flag = node.at(keys.SYMBOLIC).value if keys.SYMBOLIC in node else 0
    if flag not in (0, 1):
        node.at(keys.SYMBOLIC).fail("a boolean or 0/1")
    data = node.at(keys.START).at(keys.DATA)
    start: list[str] = []
    for core in range(cores):
        place = data.at(derived_values.core_key(core))
        number = place.number()
        if flag and number >= 0:
            place.fail("a negative symbol id")
        if not flag and (number < 0 or number % STICK_BYTES):
            place.fail(f"an address that is a multiple of {STICK_BYTES}")
        start.append(str(number))
    return bool(flag), tuple(start)


def _check_coordinates(
    node: Cursor, sticks: Mapping[str, int], scales: Mapping[str, int], special: JsonObject | None, view: Descriptor
) -> None:
    """The coordinate folds must say what sizes, splits and scales say."""
    if keys.COORDINATES not in node:
        return
    lanes = prod(sticks.values())
    for label, place in node.at(keys.COORDINATES).at(keys.COORD_INFO).members():
        if label not in scales:
            place.fail(f"dims {list(scales)}", label)
        dim = view.dim(label)
        plain = derived_values.coordinate(dim.per_core, dim.split, scales[label], lanes if label in sticks else None)
        _same_folds(place, Cursor(plain if special is None else special[label], ""))


def _same_folds(place: Cursor, rule: Cursor) -> None:
    for key in (keys.FUNCS, keys.PROPS):
        expected, got = rule.at(keys.FOLDS).at(key).items(), place.at(keys.FOLDS).at(key).items()
        if len(expected) != len(got):
            place.at(keys.FOLDS).at(key).unsupported(
                f"{len(got)} coordinate folds where {len(expected)} are understood"
            )
        for want, have in zip(expected, got, strict=True):
            if not same(want.value, have.value):
                have.must_be(want.value)


def _distribution(node: Cursor, view: Descriptor, own: Sequence[str]) -> Slices:
    """The operand's own distribution over the cores; empty where it is the operation's.

    A row names at least the dims that the operand has; the operation's slice holds for a dim that it leaves out.
    """
    if keys.COORDINATES not in node or keys.CORE_TO_SLICE not in node.at(keys.COORDINATES):
        return ()
    table = node.at(keys.COORDINATES).at(keys.CORE_TO_SLICE)
    if not any(table.members()):
        return ()
    rows: list[dict[str, int]] = []
    for core, slices in enumerate(view.core_slices):
        row = table.at(str(core))
        given = row.integer_map()
        if not set(own) <= set(given) <= set(slices) or min(given.values(), default=0) < 0:
            row.fail(f"a slice of every dim of the operand {list(own)}, and of no dim but {list(slices)}")
        rows.append({label: given.get(label, number) for label, number in slices.items()})
    same_slices = rows == [dict(row) for row in view.core_slices]
    if node.at(keys.COMPONENT).text() != keys.LX and not same_slices:
        table.unsupported("an operand in HBM spread over the cores in another way than the DSC")
    return () if same_slices and view.op_class is not OpClass.SHUFFLE else tuple(rows)


def _indirect(node: Cursor) -> Indirect | None:
    if keys.INDIRECT not in node or node.at(keys.INDIRECT).text() == NO_INDIRECTION:
        return None
    place = node.at(keys.INDIRECT)
    kinds = {kind.value: kind for kind in IndirectKind}
    if place.text() not in kinds:
        place.fail(f"{NO_INDIRECTION} or one of {list(kinds)}")
    partner = node.at(keys.INDIRECT_PARTNER)
    number = natural(partner.text().removeprefix("allocate-Tensor").partition("_")[0])
    if number is None:
        partner.fail("the name of an allocate node")
    limits = tuple(node.at(keys.MAX_SIZES).integers())
    return Indirect(kinds[place.text()], number, limits if any(limit != -1 for limit in limits) else ())


def _refuse_unclear_gaps(dsc: Cursor, dims: tuple[Dim, ...], operands: list[Operand]) -> None:
    function = str(dsc.at(keys.COMPUTE).only().at(keys.FUNCTION).value)
    for number, label, _ in unclear_gaps(function, dims, operands):
        node = dsc.at(keys.SCHEDULE_TREE).items()[number]
        node.at(keys.BACK_GAP).unsupported(
            f"a restickify whose dim {label} has a gap of less than a stick, which may be a shortfall",
            "pad both dims to whole sticks before the restickify",
        )
