"""The operands of a SuperDSC: each from its labeledDs_ entry, its layout class and its allocate node."""

from __future__ import annotations

from collections.abc import Mapping

from spyre_mlir.dialects.superdsc import keys, rules
from spyre_mlir.dialects.superdsc.cursor import Cursor
from spyre_mlir.dialects.superdsc.descriptor import Dim, Indirect, IndirectKind, Operand, Slices
from spyre_mlir.dialects.superdsc.json_value import same
from spyre_mlir.hw.formats import FORMATS
from spyre_mlir.hw.spec import SPYRE, SpyreSpec

_NO_INDIRECTION = "no_indirection"
_SCALES = (1, -1, -2)


def read_operands(dsc: Cursor, dims: tuple[Dim, ...], slices: Slices) -> tuple[Operand, ...]:
    """All operands, in operand order.

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
        operands.append(_operand(entry, nodes[number], layout, {dim.label: dim for dim in dims}, slices))
    if not operands:
        dsc.at(keys.LABELED_DS).fail("at least one operand")
    _refuse_unclear_gaps(dsc, dims, operands)
    return tuple(operands)


def _operand(entry: Cursor, node: Cursor, layout: Cursor, dims: Mapping[str, Dim], slices: Slices) -> Operand:
    kind = _format(entry)
    scales = _scales(entry, layout)
    order = node.at(keys.ORDER).texts()
    if sorted(order) != sorted(scales) or any(label not in dims for label in order):
        node.at(keys.ORDER).fail(f"the dims of the layout class, {list(scales)}")
    sticks, lanes = layout.at(keys.STICK_DIMS).texts(), layout.at(keys.STICK_SIZES).integers()
    if len(sticks) != 1 or len(lanes) != 1:
        layout.unsupported("a stick made of several dims")
    if lanes[0] != FORMATS[kind].elements_per_stick():
        layout.at(keys.STICK_SIZES).fail(f"the {FORMATS[kind].elements_per_stick()} elements of a {kind} stick")
    component = node.at(keys.COMPONENT).text()
    if component not in (keys.HBM, keys.LX):
        node.at(keys.COMPONENT).fail('"hbm" or "lx"')
    own = tuple(label for label in order if scales[label] > 0)
    _check_coordinates(node, scales, dims, sticks[0], lanes[0])
    _check_distribution(node, slices)
    symbolic, start = _start(node, len(slices))
    return Operand(
        order=own,
        extents=_extents(node, own, dims, component),
        stick=sticks[0] if scales.get(sticks[0]) == 1 else None,
        format=kind,
        start=start,
        symbolic=symbolic,
        component=component,
        indirect=_indirect(node),
    )


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
        if value not in _SCALES:
            number.unsupported("a scale that is not 1, -1 or -2")
    return dict(zip(order, numbers, strict=True))


def _extents(node: Cursor, own: tuple[str, ...], dims: Mapping[str, Dim], component: str) -> tuple[int, ...]:
    gaps = {label: _gap(place) for label, place in node.at(keys.BACK_GAP).members()} if keys.BACK_GAP in node else {}
    used = {label: dims[label].per_core if component == keys.LX else dims[label].extent for label in own}
    return tuple(used[label] + gaps.get(label, 0) for label in own)


def _gap(place: Cursor) -> int:
    """The gap of one dim: under "-1", or the same for every core."""
    gaps = {member.number() for _, member in place.members()}
    if len(gaps) != 1:
        place.unsupported("back gaps that differ between cores")
    return gaps.pop()


def _start(node: Cursor, cores: int, spec: SpyreSpec = SPYRE) -> tuple[bool, tuple[str, ...]]:
    flag = node.at(keys.SYMBOLIC).value if keys.SYMBOLIC in node else 0
    if flag not in (0, 1):
        node.at(keys.SYMBOLIC).fail("a boolean or 0/1")
    data = node.at(keys.START).at(keys.DATA)
    start: list[str] = []
    for core in range(cores):
        place = data.at(rules.core_key(core))
        number = place.number()
        if flag and number >= 0:
            place.fail("a negative symbol id")
        if not flag and (number < 0 or number % spec.stick_bytes):
            place.fail(f"an address that is a multiple of {spec.stick_bytes}")
        start.append(str(number))
    return bool(flag), tuple(start)


def _check_coordinates(
    node: Cursor, scales: Mapping[str, int], dims: Mapping[str, Dim], stick: str, lanes: int
) -> None:
    """The coordinate folds must say what sizes, splits and scales say."""
    if keys.COORDINATES not in node:
        return
    for label, place in node.at(keys.COORDINATES).at(keys.COORD_INFO).members():
        if label not in scales:
            place.fail(f"dims {list(scales)}", label)
        dim = dims[label]
        rule = rules.coordinate(dim.per_core, dim.split, scales[label], lanes if label == stick else None)
        for key in (keys.FUNCS, keys.PROPS):
            expected, got = Cursor(rule, "").at(keys.FOLDS).at(key).items(), place.at(keys.FOLDS).at(key).items()
            if len(expected) != len(got):
                place.at(keys.FOLDS).at(key).unsupported(
                    f"{len(got)} coordinate folds where {len(expected)} are understood"
                )
            for want, have in zip(expected, got, strict=True):
                if not same(want.value, have.value):
                    have.must_be(want.value)


def _check_distribution(node: Cursor, slices: Slices) -> None:
    """An operand that is spread over the cores in its own way is beyond us."""
    if keys.COORDINATES not in node or keys.CORE_TO_SLICE not in node.at(keys.COORDINATES):
        return
    own = node.at(keys.COORDINATES).at(keys.CORE_TO_SLICE)
    rows = dict(own.members())
    if rows and any(rows.get(str(core)) is None or rows[str(core)].value != row for core, row in enumerate(slices)):
        own.unsupported("an operand spread over the cores in another way than the DSC")


def _indirect(node: Cursor) -> Indirect | None:
    if keys.INDIRECT not in node or node.at(keys.INDIRECT).text() == _NO_INDIRECTION:
        return None
    place = node.at(keys.INDIRECT)
    kinds = {kind.value: kind for kind in IndirectKind}
    if place.text() not in kinds:
        place.fail(f"{_NO_INDIRECTION} or one of {list(kinds)}")
    partner = node.at(keys.INDIRECT_PARTNER)
    digits = partner.text().removeprefix("allocate-Tensor").partition("_")[0]
    if not (digits.isascii() and digits.isdigit()):
        partner.fail("the name of an allocate node")
    limits = tuple(node.at(keys.MAX_SIZES).integers())
    return Indirect(kinds[place.text()], int(digits), limits if any(limit != -1 for limit in limits) else ())


def _refuse_unclear_gaps(dsc: Cursor, dims: tuple[Dim, ...], operands: list[Operand]) -> None:
    """In a restickify a gap along the other operand's stick may also be a shortfall; the file does not tell.

    A shortfall is less than a stick, so whole sticks are gaps.
    """
    sticks = {operand.stick for operand in operands if operand.stick is not None}
    if len(sticks) < 2 or not str(dsc.at(keys.COMPUTE).only().at(keys.FUNCTION).value).startswith("ReStickify"):
        return
    sizes = {dim.label: dim for dim in dims}
    for number, operand in enumerate(operands):
        for label, extent in zip(operand.order, operand.extents, strict=True):
            used = sizes[label].per_core if operand.component == keys.LX else sizes[label].extent
            if label in sticks and (extent - used) % operand.elements_per_stick:
                node = dsc.at(keys.SCHEDULE_TREE).items()[number]
                node.at(keys.BACK_GAP).unsupported(
                    f"a restickify whose dim {label} has a gap of less than a stick, which may be a shortfall",
                    "pad both dims to whole sticks before the restickify",
                )
