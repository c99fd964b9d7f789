"""The weakest certainty of a kernel: one case per feature, the real files, and what compiling uses by default."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.dialects.superdsc.model.certainty import FEATURES, certainty_of, features_of
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Constant,
    Descriptor,
    Dim,
    Indirect,
    IndirectKind,
    OpClass,
    Operand,
    SymbolicSize,
    Window,
)
from spyre_mlir.hw.certainty import Tag
from tests.unit.dialects.superdsc.cases import CASES, DL16, Case

FILES = {case.file.partition("/")[2].partition("_")[0]: case.descriptor for case in CASES}
ADD = FILES["a1"]


def _gather(limit: int) -> Descriptor:
    """Rows of (512, 128) picked by 64 indices."""
    limits = (-1, limit)
    index = Operand(("mb",), (64,), "mb", "SENUINT32", ("0",), indirect=Indirect(IndirectKind.INDEX, 1))
    table = Operand(("out", "mb"), (128, 512), "out", DL16, ("8192",), indirect=Indirect(IndirectKind.VALUE, 0, limits))
    result = Operand(("out", "mb"), (128, 64), "out", DL16, ("16384",))
    return Descriptor(0, "identity", "sfp", OpClass.GATHER, (Dim("mb", 64), Dim("out", 128)), (index, table, result))


def _widening() -> Descriptor:
    wide = replace(ADD.operands[0], format="IEEE_FP32")
    return replace(ADD, op_func="dl16tofp32", operands=(ADD.operands[0], wide))


def _with_gap() -> Descriptor:
    source, target = FILES["g8"].operands
    return replace(FILES["g8"], operands=(replace(source, extents=(192, 256)), target))


USES: dict[str, Descriptor] = {
    "named constants": FILES["d32"],
    "masked padding": FILES["c32p"],
    "reduction": FILES["c32"],
    "reduction divided over cores": FILES["c32n"],
    "FP32 operands": FILES["f32"],
    "operands of other formats than DL16, FP32 and indices": replace(
        ADD, operands=tuple(replace(operand, format="IEEE_INT32") for operand in ADD.operands)
    ),
    "order of elements after a change of width": _widening(),
    "gather": _gather(-1),
    "pages of a gathered table": _gather(16),
    "windows over padded sizes": replace(ADD, op_class=OpClass.CONVOLUTION),
    "pooling": replace(ADD, op_class=OpClass.POOLING),
    "padding that is in no memory": replace(ADD, windows=(Window("mb", "out", 130, front=1, back=1),)),
    "top-k": replace(ADD, op_class=OpClass.TOP_K),
    "operand with a distribution of its own": replace(
        ADD, operands=(replace(ADD.operands[0], slices=({"mb": 0, "out": 0},)), *ADD.operands[1:])
    ),
    "symbolic sizes": replace(ADD, dims=(replace(ADD.dims[0], symbolic=SymbolicSize("s0", -1)), ADD.dims[1])),
    "two dims in a stick": replace(ADD, operands=(replace(ADD.operands[0], second_stick=("mb", 2)), *ADD.operands[1:])),
    "restickify of 32-bit elements": replace(
        FILES["g8"], operands=tuple(replace(operand, format="IEEE_FP32") for operand in FILES["g8"].operands)
    ),
    "back gap of a restickify": _with_gap(),
}


def test_every_feature_has_a_case_and_a_source() -> None:
    assert [feature.name for feature in FEATURES] == list(USES)
    assert all(feature.source for feature in FEATURES)


@pytest.mark.parametrize("name", USES)
def test_a_feature_is_seen_where_it_is_and_not_in_a_plain_add(name: str) -> None:
    assert name in [feature.name for feature in features_of(USES[name])]
    assert features_of(ADD) == ()


# Real files show adds, restickifies and products; the rest of the worked files rests on code alone.
CERTAIN = {"01", "02", "03", "a1", "a32", "b32", "b32k", "e32", "g8"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file)
def test_files_are_as_certain_as_the_references_say(case: Case) -> None:
    name = case.file.partition("/")[2].partition("_")[0]
    assert certainty_of(case.descriptor).tag is (Tag.CERTAIN if name in CERTAIN else Tag.LIKELY)


def test_the_weakest_feature_decides_and_is_named() -> None:
    certainty = certainty_of(_gather(16))
    assert (certainty.tag, certainty.reasons) == (Tag.INFERRED, ("pages of a gathered table",))
    assert str(certainty) == "I (pages of a gathered table)"
    assert certainty_of(replace(ADD, op_func="fnms")).reasons == ("function fnms",)
    assert str(certainty_of(replace(ADD, op_func="nobody"))) == "I (function nobody)"


def test_constants_are_a_feature_even_of_a_certain_function() -> None:
    described = replace(ADD, constants=(Constant("clipMin", DL16, 0),))
    assert str(certainty_of(described)) == "L (named constants)"
