"""Rules about operands: numbers, layout classes, scales, formats, memories, links of a gather."""

from __future__ import annotations

from collections.abc import Iterator

from spyre_mlir.dialects.superdsc.check.json_file import INDEX_CLASS, SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem, warning
from spyre_mlir.dialects.superdsc.check.sources import DRAFT, FRONT_END, PROSE_RULES
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import LAST_LABEL
from spyre_mlir.dialects.superdsc.model.operand_fields import INDIRECTIONS, SCALES
from spyre_mlir.hw.formats import FORMATS

_CLASSES = ("INPUT", "OUTPUT", "KERNEL", INDEX_CLASS)


@error(PROSE_RULES, "C")
def operand_count(sdsc: SdscJson) -> Iterator[Problem]:
    """A kernel has at least one operand and at most as many as the machine takes."""
    for dsc in sdsc.dscs:
        place = dsc.at.at(keys.LABELED_DS)
        if not 1 <= len(place.items()) <= sdsc.spec.operands_per_kernel:
            yield problem(
                place, f"1 to {sdsc.spec.operands_per_kernel} operands", f"{len(place.items())}", "split the operation"
            )


@error(PROSE_RULES, "C")
def operand_number(sdsc: SdscJson) -> Iterator[Problem]:
    """Operands are numbered in order, and each has one allocate node."""
    for dsc in sdsc.dscs:
        entries, nodes = dsc.at.at(keys.LABELED_DS).items(), dsc.at.at(keys.SCHEDULE_TREE).items()
        for number, entry in enumerate(entries):
            if entry.at(keys.INDEX).value != number:
                yield problem(entry.at(keys.INDEX), f"{number}, the operand's place")
        if len(nodes) != len(entries):
            yield problem(dsc.at.at(keys.SCHEDULE_TREE), f"{len(entries)} allocate nodes", f"{len(nodes)}")
        seen: set[int] = set()
        for node in nodes:
            number = node.at(keys.INDEX).integer()
            if number in seen or not 0 <= number < len(entries):
                yield problem(node.at(keys.INDEX), "the number of an operand that has no other node")
            seen.add(number)


@error(FRONT_END, "C")
def layout_class(sdsc: SdscJson) -> Iterator[Problem]:
    """The layout classes have known names, and every one is some operand's."""
    for dsc in sdsc.dscs:
        used = {operand.entry.at(keys.CLASS).text() for operand in dsc.operands}
        for name, place in dsc.at.at(keys.CLASSES).members():
            if name not in _CLASSES:
                yield problem(place, f"a class among {', '.join(_CLASSES)}", name)
            elif name not in used:
                yield problem(place, f"a class that an operand has, {', '.join(sorted(used))}", name)


@error(FRONT_END, "C")
def scale_values(sdsc: SdscJson) -> Iterator[Problem]:
    """A scale is 1 for a dim the operand has, -1 for one it lacks, -2 for one it lacks in its stick."""
    for operand in sdsc.operands:
        place = operand.entry.at(keys.SCALE)
        for (label, scale), one in zip(operand.scales.items(), place.items(), strict=True):
            if scale not in SCALES:
                yield problem(one, "1, -1 or -2")
            elif scale == -2 and label != operand.stick:
                yield problem(one, f"-2 on the stick dim {operand.stick} only")


@error(FRONT_END, "C")
def layout_order(sdsc: SdscJson) -> Iterator[Problem]:
    """An operand's own dims come before those it lacks; a stick dim added because no operand has one comes last."""
    for operand in sdsc.operands:
        order, own = operand.order, operand.own
        # An index tensor lists its own dims only; with one index per stick, its stick is along a dim of the operation.
        sticks = [*order, *(operand.dsc.sizes if operand.is_index else ())]
        if operand.stick not in sticks:
            yield problem(operand.layout.at(keys.STICK_DIMS), f"a dim of the class, {sticks}")
        if order and operand.stick == order[-1] != LAST_LABEL:
            own = [label for label in own if label != operand.stick]
        if order[: len(own)] != own and operand.scales.get(operand.stick) != -2:
            yield problem(operand.node.at(keys.ORDER), f"the dims {own} first")


@error(FRONT_END, "C")
def stick_size(sdsc: SdscJson) -> Iterator[Problem]:
    """A stick holds as many elements as the operand's format fits into it."""
    for operand in sdsc.operands:
        place = operand.layout.at(keys.STICK_SIZES)
        sizes, sticks = place.integers(), operand.layout.at(keys.STICK_DIMS).texts()
        if len(sizes) != len(sticks):
            yield problem(place, f"one size per stick dim {sticks}")
        elif len(sizes) == 1 and sizes != [operand.lanes]:
            yield problem(place, f"[{operand.lanes}], the elements of a stick of operand {operand.number}")


@error(DRAFT, "C")
def word_length(sdsc: SdscJson) -> Iterator[Problem]:
    """The format is known, and the word length is its width in bytes."""
    for operand in sdsc.operands:
        place = operand.entry.at(keys.FORMAT)
        if place.text() not in FORMATS:
            yield problem(place, f"one of {', '.join(FORMATS)}")
        elif keys.WORD_LENGTH in operand.entry:
            word = operand.entry.at(keys.WORD_LENGTH)
            if word.value != FORMATS[place.text()].word_length:
                yield problem(word, f"{FORMATS[place.text()].word_length}, the bytes of {place.text()}")


@error(FRONT_END, "C")
def memory(sdsc: SdscJson) -> Iterator[Problem]:
    """An operand is present in the memory its allocate node names."""
    for operand in sdsc.operands:
        if keys.MEMORY not in operand.entry:
            continue
        place = operand.entry.at(keys.MEMORY)
        present = [name for name, entry in place.members() if entry.at(keys.PRESENT).value in (1, True)]
        if operand.component not in present:
            yield problem(place, f"presence in {operand.component}, where its node puts it")


@error(DRAFT, "C")
def dim_limits(sdsc: SdscJson) -> Iterator[Problem]:
    """The limits on dims are one per dim: -1 for none, or a positive size."""
    for operand in sdsc.operands:
        if keys.MAX_SIZES not in operand.node:
            continue
        place = operand.node.at(keys.MAX_SIZES)
        if len(place.integers()) != len(operand.order):
            yield problem(place, f"one limit per dim of {operand.order}")
        for one in place.items():
            if one.integer() != -1 and one.integer() < 1:
                yield problem(one, "-1 or a positive size")


@error(FRONT_END, "L")
def indirection(sdsc: SdscJson) -> Iterator[Problem]:
    """The index and the value tensor of a gather name each other's nodes; other operands name none."""
    nodes = {operand.node.at(keys.NAME).text(): operand for operand in sdsc.operands if keys.NAME in operand.node}
    for operand in sdsc.operands:
        if keys.INDIRECT not in operand.node:
            continue
        place = operand.node.at(keys.INDIRECT)
        if place.text() not in INDIRECTIONS:
            yield problem(place, f"one of {', '.join(INDIRECTIONS)}")
        if (place.value == "index_tensor") != operand.is_index:
            yield problem(place, "index_tensor on the operands of class KERNEL_IDX, and on no other")
        if place.value == "value_tensor" or keys.INDIRECT_PARTNER in operand.node:
            partner = operand.node.at(keys.INDIRECT_PARTNER)
            if partner.text() not in nodes or operand.is_index == nodes[partner.text()].is_index:
                yield problem(partner, "the name of the partner's allocate node")


@warning(FRONT_END, "L")
def index_format(sdsc: SdscJson) -> Iterator[Problem]:
    """Index tensors are 32-bit unsigned integers in device memory."""
    for operand in sdsc.operands:
        if operand.is_index and (operand.component != keys.HBM or operand.entry.at(keys.FORMAT).value != "SENUINT32"):
            place = operand.entry.at(keys.FORMAT)
            yield problem(place, "SENUINT32 in hbm", f"{place.value} in {operand.component}")


@warning("real files; torch-spyre layout allgather experiments", "L")
def own_distribution(sdsc: SdscJson) -> Iterator[Problem]:
    """No operand has a distribution over the cores that differs from the DSC's."""
    for operand in sdsc.operands:
        if keys.COORDINATES not in operand.node or keys.CORE_TO_SLICE not in operand.node.at(keys.COORDINATES):
            continue
        place = operand.node.at(keys.COORDINATES).at(keys.CORE_TO_SLICE)
        rows = {str(core): dict(row) for core, row in enumerate(sdsc.slices)}
        if any(rows.get(core) != row.value for core, row in place.members()):
            yield problem(place, "the DSC's own map, or none", "another one")


RULES = (
    operand_count, operand_number, layout_class, scale_values, layout_order, stick_size, word_length, memory,
    dim_limits, indirection, index_format, own_distribution,
)  # fmt: skip
