"""Rules about the operation: its function, unit, operands, formats and constants."""

from __future__ import annotations

from collections.abc import Iterator

from spyre_mlir.dialects.superdsc.check.functions import DL16, FUNCTIONS, MASK, MASK_WORDS, Function, Shape
from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem, warning
from spyre_mlir.dialects.superdsc.check.view import Dsc, Sdsc
from spyre_mlir.dialects.superdsc.cursor import Cursor
from spyre_mlir.dialects.superdsc.descriptor import NONSTICK
from spyre_mlir.hw.formats import FORMATS

_LIST = "SuperDSC interface specification, supported functions"
_FRONT_END = "torch-spyre code generation, real files"


def known_function(dsc: Dsc) -> Function | None:
    """The published entry of a DSC's function, or None."""
    function = FUNCTIONS.get(dsc.function.removesuffix(NONSTICK))
    plain = function is None or dsc.function == function.name or function.shape is Shape.REDUCTION
    return function if plain else None


def _known(sdsc: Sdsc) -> Iterator[tuple[Dsc, Function]]:
    for dsc in sdsc.dscs:
        function = known_function(dsc)
        if function is not None:
            yield dsc, function


@warning(_LIST, "L")
def function_known(sdsc: Sdsc) -> Iterator[Problem]:
    """The function is one of the published ones."""
    for dsc in sdsc.dscs:
        if known_function(dsc) is None:
            yield problem(dsc.compute.at("opFuncName"), "a published function")


@error(_LIST, "C")
def function_unit(sdsc: Sdsc) -> Iterator[Problem]:
    """A matrix function runs on unit pt, every other one on sfp."""
    for dsc in sdsc.dscs:
        function, place = known_function(dsc), dsc.compute.at("exUnit")
        wanted = ("sfp", "pt") if function is None else (function.unit,)
        if place.text() not in wanted:
            yield problem(place, " or ".join(wanted))


@error(_LIST, "C")
def function_inputs(sdsc: Sdsc) -> Iterator[Problem]:
    """A function has its number of inputs, in order, and writes the last operand; a reduction also reads it."""
    for dsc, function in _known(sdsc):
        last = len(dsc.operands) - 1
        if dsc.references("outputLabeledDs") != [last]:
            yield problem(dsc.compute.at("outputLabeledDs"), f"the last operand, {last}")
        indices = dsc.references("indirectAccessIndexLabeledDs")
        read = last + (function.shape is Shape.REDUCTION)
        wanted = [number for number in range(read) if number not in indices]
        if dsc.references("inputLabeledDs") != wanted:
            yield problem(dsc.compute.at("inputLabeledDs"), f"operands {wanted} in order")
        if last - len(indices) != function.inputs:
            expected = f"{function.inputs + 1} operands of {function.name}, besides indices"
            yield problem(dsc.at.at("labeledDs_"), expected, f"{last + 1 - len(indices)}")


@error(_FRONT_END, "C")
def index_operands(sdsc: Sdsc) -> Iterator[Problem]:
    """The indices of an operation are its operands of class KERNEL_IDX."""
    for dsc in sdsc.dscs:
        wanted = [operand.number for operand in dsc.operands if operand.is_index]
        if dsc.references("indirectAccessIndexLabeledDs") != wanted:
            yield problem(dsc.compute, f"operands {wanted} as indirectAccessIndexLabeledDs")


@warning(_LIST, "L")
def function_formats(sdsc: Sdsc) -> Iterator[Problem]:
    """The operands of a function have formats it is published for."""
    for dsc, function in _known(sdsc):
        for operand in dsc.operands:
            place = operand.entry.at("dataFormat_")
            if function.formats and not operand.is_index and place.text() not in function.formats:
                yield problem(place, f"{' or '.join(function.formats)} for {function.name}")


@warning(_FRONT_END, "C")
def operation_format(sdsc: Sdsc) -> Iterator[Problem]:
    """The operation's format is that of its first data operand, or of the other one in a conversion of integers."""
    for dsc in sdsc.dscs:
        place = dsc.compute.at("attributes_").at("dataFormat_")
        formats = [operand.entry.at("dataFormat_").text() for operand in dsc.operands if not operand.is_index]
        wanted = "IEEE_FP32" if dsc.function in ("int32tofp32", "fp32toint32") else formats[0]
        if place.text() != wanted:
            yield problem(place, wanted)


@error(_FRONT_END, "L")
def nonstick(sdsc: Sdsc) -> Iterator[Problem]:
    """The name of a reduction ends in "nonstick" exactly where the result keeps the stick."""
    for dsc, function in _known(sdsc):
        if function.shape is Shape.REDUCTION and not function.name.startswith("quantscale"):
            wanted = function.name + ("" if -2 in dsc.output.scales.values() else NONSTICK)
            if dsc.function != wanted:
                yield problem(dsc.compute.at("opFuncName"), wanted)


@error(_FRONT_END, "C")
def result_dims(sdsc: Sdsc) -> Iterator[Problem]:
    """A reduction's result lacks a dim that the input has; that of another function has every dim."""
    for dsc, function in _known(sdsc):
        # Where no operand has a stick, an extra dim stands for the lanes.
        lacking = [label for label in dsc.sizes if dsc.output.scales.get(label, -1) == -1 and dsc.sizes[label] > 1]
        if function.shape is Shape.REDUCTION and all(label in dsc.output.own for label in dsc.sizes):
            yield problem(dsc.output.entry.at("scale_"), "a dim that is summed over")
        elif function.shape in (Shape.POINTWISE, Shape.MOVE) and lacking:
            yield problem(dsc.output.entry.at("scale_"), f"a result with dim {lacking[0]}")


@error("SuperDSC interface specification, stick constraints", "C")
def function_sticks(sdsc: Sdsc) -> Iterator[Problem]:
    """A restickify changes the stick dim; a matmul sums over the first operand's, and keeps the second's."""
    for dsc, function in _known(sdsc):
        sticks = [operand.stick for operand in dsc.operands]
        if function.shape is Shape.MOVE and len(set(sticks)) != len(sticks):
            yield problem(dsc.output.layout.at("stickDimOrder_"), "another stick dim than the input's")
        if function.shape is Shape.MATMUL and len(sticks) == 3:
            first, second, result = (operand.own for operand in dsc.operands)
            if sticks[0] in result or sticks[0] not in second:
                yield problem(dsc.operands[0].layout.at("stickDimOrder_"), "the dim that is summed over")
            if sticks[1] not in result or sticks[1] in first or sticks[2] != sticks[1]:
                yield problem(dsc.operands[1].layout.at("stickDimOrder_"), "the dim that the result gets from it")


@error(_LIST, "C")
def function_constants(sdsc: Sdsc) -> Iterator[Problem]:
    """A function has its constants, in order, and the mask, if any, last."""
    for dsc, function in _known(sdsc):
        names = [entry.at("name_").text() for entry in dsc.constants.values()]
        masked = dsc.at.at("maskingConstId_").value
        wanted = [*(function.constants or ()), *([MASK] if masked != -1 else [])]
        if function.constants is not None and names != wanted:
            yield problem(dsc.at.at("constantInfo_"), f"constants {wanted} of {function.name}", f"{names}")
        elif masked != -1 and masked != len(names) - 1:
            yield problem(dsc.at.at("maskingConstId_"), f"{len(names) - 1}, the mask's number")


@error(_FRONT_END, "L")
def constant_word(sdsc: Sdsc) -> Iterator[Problem]:
    """A constant is a bit pattern of its format, and constants are numbered from 0."""
    for dsc in sdsc.dscs:
        for number, (key, entry) in enumerate(dsc.constants.items()):
            if key != str(number):
                yield problem(entry, f"number {number}", key)
            place, kind = _word(entry), entry.at("dataFormat_")
            if kind.text() not in FORMATS:
                yield problem(kind, f"one of {', '.join(FORMATS)}")
            elif not 0 <= place.number() < 1 << FORMATS[kind.text()].bits:
                yield problem(place, f"a word of {FORMATS[kind.text()].bits} bits")


def _word(entry: Cursor) -> Cursor:
    return entry.at("data_").at("data_").at("[0, 0, 0]").only()


@warning(_FRONT_END, "L")
def constant_format(sdsc: Sdsc) -> Iterator[Problem]:
    """A constant has the operation's format."""
    for dsc in sdsc.dscs:
        wanted = dsc.compute.at("attributes_").at("dataFormat_")
        for entry in dsc.constants.values():
            if entry.at("dataFormat_").value != wanted.value:
                yield problem(entry.at("dataFormat_"), wanted.text())


@warning("torch-spyre mask constants", "L")
def mask_word(sdsc: Sdsc) -> Iterator[Problem]:
    """Masked lanes are filled with what leaves the result alone: 0, or the lowest or highest number."""
    for dsc in sdsc.dscs:
        number = str(dsc.at.at("maskingConstId_").value)
        entry = dsc.constants.get(number)
        if entry is not None and entry.at("dataFormat_").value == DL16:
            wanted = MASK_WORDS.get(dsc.function.removesuffix(NONSTICK), 0)
            if _word(entry).number() != wanted:
                yield problem(_word(entry), f"{wanted}")


RULES = (
    function_known, function_unit, function_inputs, index_operands, function_formats, operation_format, nonstick,
    result_dims, function_sticks, function_constants, constant_word, constant_format, mask_word,
)  # fmt: skip
