"""Rules about the operation: its function, unit, operands, formats and constants."""

from __future__ import annotations

from collections.abc import Iterator

from spyre_mlir.dialects.superdsc.check.json_file import DscJson, SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem, warning
from spyre_mlir.dialects.superdsc.check.sources import FRONT_END, FUNCTION_LIST
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import NONSTICK
from spyre_mlir.dialects.superdsc.model.function_constants import MASK
from spyre_mlir.hw.formats import DL16, FORMATS, FP32, INT32
from spyre_mlir.ops.hardware_functions import Group, HardwareFunction, Seen, function_of

_FORMATS = {"DL16": (DL16.name,), "DL16, FP32": (DL16.name, FP32.name), "INT32": (INT32.name,)}


def _known(sdsc: SdscJson) -> Iterator[tuple[DscJson, HardwareFunction]]:
    """DSCs whose function is a published one, and what is published."""
    for dsc in sdsc.dscs:
        function = function_of(dsc.function)
        if function is not None:
            yield dsc, function


@warning(FUNCTION_LIST, "L")
def function_known(sdsc: SdscJson) -> Iterator[Problem]:
    """The function is one of the published ones."""
    for dsc in sdsc.dscs:
        if function_of(dsc.function) is None:
            yield problem(dsc.compute.at(keys.FUNCTION), "a published function")


@error(FUNCTION_LIST, "C")
def function_unit(sdsc: SdscJson) -> Iterator[Problem]:
    """A matrix function runs on unit pt, every other one on sfp."""
    for dsc in sdsc.dscs:
        function, place = function_of(dsc.function), dsc.compute.at(keys.UNIT)
        wanted = ("sfp", "pt") if function is None else (function.unit.value,)
        if place.text() not in wanted:
            yield problem(place, " or ".join(wanted))


@error(FUNCTION_LIST, "C")
def function_inputs(sdsc: SdscJson) -> Iterator[Problem]:
    """A function has its number of inputs, in order, and writes the last operand; a reduction also reads it."""
    for dsc, function in _known(sdsc):
        last = len(dsc.operands) - 1
        if dsc.references(keys.OUTPUTS) != [last]:
            yield problem(dsc.compute.at(keys.OUTPUTS), f"the last operand, {last}")
        indices = dsc.references(keys.INDICES)
        read = last + function.accumulates
        wanted = [number for number in range(read) if number not in indices]
        if dsc.references(keys.INPUTS) != wanted:
            yield problem(dsc.compute.at(keys.INPUTS), f"operands {wanted} in order")
        if last - len(indices) != function.inputs:
            expected = f"{function.inputs + 1} operands of {function.name}, besides indices"
            yield problem(dsc.at.at(keys.LABELED_DS), expected, f"{last + 1 - len(indices)}")


@error(FRONT_END, "C")
def index_operands(sdsc: SdscJson) -> Iterator[Problem]:
    """The indices of an operation are its operands of class KERNEL_IDX."""
    for dsc in sdsc.dscs:
        wanted = [operand.number for operand in dsc.operands if operand.is_index]
        if dsc.references(keys.INDICES) != wanted:
            yield problem(dsc.compute, f"operands {wanted} as indirectAccessIndexLabeledDs")


@warning(FUNCTION_LIST, "L")
def function_formats(sdsc: SdscJson) -> Iterator[Problem]:
    """The operands of a function have formats it is published for."""
    for dsc, function in _known(sdsc):
        for operand in dsc.operands:
            place, wanted = operand.entry.at(keys.FORMAT), _FORMATS.get(function.formats, ())
            apart = function.group is Group.CONVERSION or operand.is_index
            if wanted and not apart and place.text() not in wanted:
                yield problem(place, f"{' or '.join(wanted)} for {function.name}")


@warning(FRONT_END, "C")
def operation_format(sdsc: SdscJson) -> Iterator[Problem]:
    """The operation's format is that of its first data operand, or of the other one in a conversion of integers."""
    for dsc in sdsc.dscs:
        place = dsc.compute.at(keys.ATTRIBUTES).at(keys.FORMAT)
        formats = [operand.entry.at(keys.FORMAT).text() for operand in dsc.operands if not operand.is_index]
        wanted = FP32.name if _converts_integers(dsc) else next(iter(formats), None)
        if wanted is not None and place.text() != wanted:
            yield problem(place, wanted)


def _converts_integers(dsc: DscJson) -> bool:
    function = function_of(dsc.function)
    return function is not None and function.converts_integers


@error(FRONT_END, "L")
def nonstick(sdsc: SdscJson) -> Iterator[Problem]:
    """The name of a reduction ends in "nonstick" exactly where the result keeps the stick."""
    for dsc, function in _known(sdsc):
        if function.nonstick:
            wanted = function.name + ("" if -2 in dsc.output.scales.values() else NONSTICK)
            if dsc.function != wanted:
                yield problem(dsc.compute.at(keys.FUNCTION), wanted)


@error(FRONT_END, "C")
def result_dims(sdsc: SdscJson) -> Iterator[Problem]:
    """A reduction's result lacks a dim that the input has; that of another function has every dim."""
    for dsc, function in _known(sdsc):
        # Where no operand has a stick, an extra dim stands for the lanes.
        lacking = [label for label in dsc.sizes if dsc.output.scales.get(label, -1) == -1 and dsc.sizes[label] > 1]
        if function.group is Group.REDUCTION and all(label in dsc.output.own for label in dsc.sizes):
            yield problem(dsc.output.entry.at(keys.SCALE), "a dim that is summed over")
        elif function.group in (Group.ELEMENTWISE, Group.MOVEMENT, Group.CONVERSION) and lacking:
            yield problem(dsc.output.entry.at(keys.SCALE), f"a result with dim {lacking[0]}")


@error("SuperDSC interface specification, stick constraints", "C")
def function_sticks(sdsc: SdscJson) -> Iterator[Problem]:
    """A restickify changes the stick dim; a matmul sums over the first operand's, and keeps the second's."""
    for dsc, function in _known(sdsc):
        sticks = [operand.stick for operand in dsc.operands]
        if function.restickifies and len(set(sticks)) != len(sticks):
            yield problem(dsc.output.layout.at(keys.STICK_DIMS), "another stick dim than the input's")
        if function.contracts and not function.packed and len(sticks) == 3:
            first, second, result = (operand.own for operand in dsc.operands)
            if sticks[0] in result or sticks[0] not in second:
                yield problem(dsc.operands[0].layout.at(keys.STICK_DIMS), "the dim that is summed over")
            if sticks[1] not in result or sticks[1] in first or sticks[2] != sticks[1]:
                yield problem(dsc.operands[1].layout.at(keys.STICK_DIMS), "the dim that the result gets from it")


@error(FUNCTION_LIST, "C")
def function_constants(sdsc: SdscJson) -> Iterator[Problem]:
    """A function has its constants, in order, and the mask, if any, last."""
    for dsc, function in _known(sdsc):
        names = [entry.at(keys.NAME).text() for entry in dsc.constants.values()]
        masked = dsc.at.at(keys.MASK_CONSTANT).value
        wanted = [*function.constants, *([MASK] if masked != -1 else [])]
        if function.seen is not Seen.UNSETTLED and names != wanted:
            yield problem(dsc.at.at(keys.CONSTANTS), f"constants {wanted} of {function.name}", f"{names}")
        elif masked != -1 and masked != len(names) - 1:
            yield problem(dsc.at.at(keys.MASK_CONSTANT), f"{len(names) - 1}, the mask's number")


@error(FRONT_END, "L")
def constant_word(sdsc: SdscJson) -> Iterator[Problem]:
    """A constant is a bit pattern of its format, and constants are numbered from 0."""
    for dsc in sdsc.dscs:
        for number, (key, entry) in enumerate(dsc.constants.items()):
            if key != str(number):
                yield problem(entry, f"number {number}", key)
            place, kind = _word(entry), entry.at(keys.FORMAT)
            if kind.text() not in FORMATS:
                yield problem(kind, f"one of {', '.join(FORMATS)}")
            elif not 0 <= place.number() < 1 << FORMATS[kind.text()].bits:
                yield problem(place, f"a word of {FORMATS[kind.text()].bits} bits")


def _word(entry: Cursor) -> Cursor:
    return entry.at(keys.DATA).at(keys.DATA).at("[0, 0, 0]").only()


@warning(FRONT_END, "L")
def constant_format(sdsc: SdscJson) -> Iterator[Problem]:
    """A constant has the operation's format."""
    for dsc in sdsc.dscs:
        wanted = dsc.compute.at(keys.ATTRIBUTES).at(keys.FORMAT)
        for entry in dsc.constants.values():
            if entry.at(keys.FORMAT).value != wanted.value:
                yield problem(entry.at(keys.FORMAT), wanted.text())


@warning("torch-spyre mask constants", "L")
def mask_word(sdsc: SdscJson) -> Iterator[Problem]:
    """Masked lanes are filled with what leaves the result alone: 0, or the lowest or highest number."""
    for dsc in sdsc.dscs:
        number = str(dsc.at.at(keys.MASK_CONSTANT).value)
        entry = dsc.constants.get(number)
        if entry is not None and entry.at(keys.FORMAT).value == DL16.name:
            function = function_of(dsc.function)
            wanted = (0,) if function is None else function.mask_words
            if _word(entry).number() not in wanted:
                yield problem(_word(entry), " or ".join(map(str, wanted)))


RULES = (
    function_known, function_unit, function_inputs, index_operands, function_formats, operation_format, nonstick,
    result_dims, function_sticks, function_constants, constant_word, constant_format, mask_word,
)  # fmt: skip
