"""Rules about folds: mapping of slice, corelet, row, stick and lane numbers to coordinates and addresses."""

from __future__ import annotations

from collections.abc import Iterator

from spyre_mlir.dialects.superdsc.check.json_file import OperandJson, SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem, warning
from spyre_mlir.dialects.superdsc.check.sources import FRONT_END, PROSE_RULES
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.json_value import natural, same

_FUNCTIONS = (keys.AFFINE, keys.CONST, keys.MAP, keys.WK_SPLIT)


def _infos(operand: OperandJson) -> Iterator[tuple[str, Cursor]]:
    if keys.COORDINATES in operand.node:
        yield from operand.node.at(keys.COORDINATES).at(keys.COORD_INFO).members()


def _managers(sdsc: SdscJson) -> Iterator[Cursor]:
    """Every fold manager of the file."""
    if keys.SDSC_FOLDS in sdsc.top:
        yield sdsc.top.at(keys.SDSC_FOLDS)
    for operand in sdsc.operands:
        yield operand.node.at(keys.START)
        for _, info in _infos(operand):
            yield info.at(keys.FOLDS)
    for dsc in sdsc.dscs:
        for entry in dsc.constants.values():
            yield entry.at(keys.DATA)


@error(PROSE_RULES, "C")
def fold_lengths(sdsc: SdscJson) -> Iterator[Problem]:
    """A fold manager has as many functions as extents, and a coordinate three more than its element folds."""
    for manager in _managers(sdsc):
        functions, extents = manager.at(keys.FUNCS), manager.at(keys.PROPS)
        if len(functions.items()) != len(extents.items()):
            yield problem(functions, f"{len(extents.items())} functions, one per extent", f"{len(functions.items())}")
    for operand in sdsc.operands:
        for _, info in _infos(operand):
            functions, elements = info.at(keys.FOLDS).at(keys.FUNCS), info.at(keys.ELEM_ARR).integer()
            if len(functions.items()) != elements + 3:
                yield problem(functions, f"{elements + 3} functions, elemArr + 3", f"{len(functions.items())}")


@error(PROSE_RULES, "C")
def fold_extents(sdsc: SdscJson) -> Iterator[Problem]:
    """A fold has one known function, and an extent of at least 1."""
    for manager in _managers(sdsc):
        for function in manager.at(keys.FUNCS).items():
            names = [name for name, _ in function.members()]
            if len(names) != 1 or names[0] not in _FUNCTIONS:
                yield problem(function, f"one of {', '.join(_FUNCTIONS)}")
        for extent in manager.at(keys.PROPS).items():
            extent.at(keys.LABEL).text()
            if extent.at(keys.FACTOR).integer() < 1:
                yield problem(extent.at(keys.FACTOR), "1 or more")


@error("draft SuperDSC interface specification", "C")
def fold_data(sdsc: SdscJson) -> Iterator[Problem]:
    """The data of a fold manager is kept under one index per fold, each within its extent."""
    for manager in _managers(sdsc):
        if keys.DATA not in manager:
            continue
        factors = [extent.at(keys.FACTOR).integer() for extent in manager.at(keys.PROPS).items()]
        for key, place in manager.at(keys.DATA).members():
            words = key.removeprefix("[").removesuffix("]").split(",")
            numbers = [number for word in words if (number := natural(word.strip())) is not None]
            fits = len(numbers) == len(words) == len(factors)
            if not fits or any(number >= factor for number, factor in zip(numbers, factors, strict=True)):
                yield problem(place, f"a key of {len(factors)} indices below {factors}", key)


@error("SuperDSC reading rules, which all real files keep", "C")
def coordinate_dims(sdsc: SdscJson) -> Iterator[Problem]:
    """An operand has a coordinate for each of its dims."""
    for operand in sdsc.operands:
        labels = [label for label, _ in _infos(operand)]
        if keys.COORDINATES in operand.node and sorted(labels) != sorted(operand.order):
            yield problem(operand.node.at(keys.COORDINATES).at(keys.COORD_INFO), f"dims {operand.order}", f"{labels}")


@error("SuperDSC reading rules, which all real files keep", "C")
def coordinate_folds(sdsc: SdscJson) -> Iterator[Problem]:
    """The folds of a coordinate say what sizes, splits and scales say."""
    for operand in sdsc.operands:
        if not operand.is_plain:
            continue
        for label, info in _infos(operand):
            if label not in operand.dsc.sizes or label not in operand.scales:
                continue
            lanes = operand.lanes if label == operand.stick else None
            dsc = operand.dsc
            rule = derived_values.coordinate(dsc.per_core(label), sdsc.splits[label], operand.scales[label], lanes)
            expected = Cursor(rule, info.path)
            if info.at(keys.ELEM_ARR).value == expected.at(keys.ELEM_ARR).value:
                yield from _differing_folds(expected.at(keys.FOLDS), info.at(keys.FOLDS))


def _differing_folds(expected: Cursor, folds: Cursor) -> Iterator[Problem]:
    for key in (keys.FUNCS, keys.PROPS):
        for want, have in zip(expected.at(key).items(), folds.at(key).items(), strict=False):
            if not same(want.value, have.value):
                yield problem(have, want.shown)


@warning(FRONT_END, "C")
def coordinate_elements(sdsc: SdscJson) -> Iterator[Problem]:
    """A coordinate has one element fold, and two along the stick."""
    for operand in sdsc.operands:
        for label, info in _infos(operand):
            along = label == operand.stick and operand.scales.get(label) != -1
            if operand.is_plain and info.at(keys.ELEM_ARR).value != 1 + along:
                yield problem(info.at(keys.ELEM_ARR), f"{1 + along}")


RULES = (fold_lengths, fold_extents, fold_data, coordinate_dims, coordinate_folds, coordinate_elements)
