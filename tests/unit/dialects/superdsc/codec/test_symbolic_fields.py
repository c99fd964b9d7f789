"""Sizes bound when the bundle runs: their members in the file, read back and refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor, Misread
from spyre_mlir.dialects.superdsc.codec.symbolic_fields import (
    check_symbolic,
    limits,
    mapping,
    read_symbolic,
    top_fields,
)
from spyre_mlir.dialects.superdsc.model.descriptor import Dim, SymbolicSize
from spyre_mlir.errors import EmitError
from tests.unit.dialects.superdsc.cases import small_add

SIZE = SymbolicSize("s0", -5, 4)
# Up to 16 rows in multiples of 4, on two cores: up to 8 in multiples of 2 each.
ROWS = Dim("mb", 16, 2, symbolic=SIZE)
PLAIN = small_add().operands[0]


def view(rows: Dim = ROWS, **changes: Any) -> Any:
    operand = replace(PLAIN, start=("-1", "-2"), symbolic=True)
    return small_add(dims=(rows, Dim("out", 128)), **{"operands": (operand,) * 3} | changes)


def test_limits_are_those_of_one_core() -> None:
    assert limits(view()) == {"mb": {"maxSize_": 8, "granularity_": 2}}
    assert limits(view(replace(ROWS, symbolic=replace(SIZE, granularity=1)))) == {
        "mb": {"maxSize_": 8, "granularity_": 1}
    }
    assert limits(small_add()) == {}


def test_dims_name_their_symbols() -> None:
    assert mapping(view()) == {"mb": [-5]}
    assert mapping(small_add()) == {}


def test_the_file_names_its_symbols() -> None:
    assert top_fields(view()) == {
        "datadscs_": [],
        "dimToSymbolMappingOpcodeCorrection_": {},
        "inputSymbolsAndTags_": {"-5": "s0"},
        "symbolDefinitions_": {},
    }
    assert top_fields(small_add()) == {}


def _file(most: int = 8) -> tuple[Cursor, Cursor]:
    stage = {"symbolicDimInfo_": {"mb": {"maxSize_": most, "granularity_": 2}}}
    dsc = {"dimToSymbolMapping_": {"mb": [-5]}, "dataStageParam_": {"0": {"ss_": stage}}}
    return Cursor({"inputSymbolsAndTags_": {"-5": "s0"}}, "$.top"), Cursor(dsc, "$.dsc")


def test_a_size_is_read_back() -> None:
    assert read_symbolic(*_file(), Dim("mb", 16, 2)) == SIZE


def test_other_sizes_are_fixed() -> None:
    top, dsc = _file()
    assert read_symbolic(top, dsc, Dim("out", 128)) is None
    assert read_symbolic(top, Cursor({}, "$.dsc"), Dim("mb", 16, 2)) is None


def test_a_symbol_without_a_name_is_refused() -> None:
    _, dsc = _file()
    with pytest.raises(Misread) as caught:
        read_symbolic(Cursor({"inputSymbolsAndTags_": {"-6": "s1"}}, "$.top"), dsc, Dim("mb", 16, 2))
    error = caught.value
    assert (error.path, error.expected, error.got) == (
        "$.top.inputSymbolsAndTags_",
        "a name for symbol -5",
        "names for ['-6']",
    )


def test_a_limit_is_the_size_of_a_slice() -> None:
    with pytest.raises(Misread) as caught:
        read_symbolic(*_file(16), Dim("mb", 16, 2))
    assert caught.value.path == "$.dsc.dataStageParam_.0.ss_.symbolicDimInfo_.mb.maxSize_"
    assert (caught.value.expected, caught.value.got) == ("the 8 elements of one slice", "16")


@pytest.mark.parametrize(
    "right",
    [
        view(),
        small_add(),
        view(replace(ROWS, symbolic=replace(SIZE, granularity=16))),
        view(replace(ROWS, split=1), operands=(PLAIN,)),
        view(operands=(replace(PLAIN, component="lx"),)),
        view(operands=(replace(PLAIN, order=("out",), extents=(128,)),)),
    ],
)
def test_what_the_format_can_say(right: Any) -> None:
    """Addresses may be given where a core has all, in a scratchpad, or where the operand lacks the dim."""
    check_symbolic(right, "here")


@pytest.mark.parametrize(
    ("wrong", "message", "hint"),
    [
        (
            small_add(dims=(Dim("mb", 4, 2), Dim("out", 128, symbolic=SIZE))),
            "dim out is in a stick and cannot have a symbolic size",
            None,
        ),
        (view(replace(ROWS, symbolic=SymbolicSize("s", 0, 4))), "symbol 0 of dim mb must be negative", None),
        (
            view(replace(ROWS, symbolic=SymbolicSize("s", -1, 1))),
            "dim mb: 2 slices, granularity 1, at most 16",
            "slices divide the granularity, and that the largest size",
        ),
        (
            view(replace(ROWS, symbolic=SymbolicSize("s", -1, 6))),
            "dim mb: 2 slices, granularity 6, at most 16",
            "slices divide the granularity, and that the largest size",
        ),
        (view(operands=(PLAIN,)), "dim mb is symbolic and divided: addresses must be symbolic", None),
    ],
)
def test_what_the_format_cannot_say(wrong: Any, message: str, hint: str | None) -> None:
    with pytest.raises(EmitError) as caught:
        check_symbolic(wrong, "here")
    assert (caught.value.message, caught.value.where, caught.value.hint) == (message, "here", hint)
