"""Descriptors that contradict themselves: the addition of (4, 128) on two cores with one change each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.codec.check_descriptor import check
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Constant,
    Descriptor,
    Dim,
    Indirect,
    IndirectKind,
    Operand,
    SymbolicSize,
    Window,
)
from spyre_mlir.errors import EmitError
from tests.unit.dialects.superdsc.cases import CASES, DL16, Case, small_add

PLAIN = small_add().operands[0]
ROWS, COLUMNS = Dim("mb", 4, 2), Dim("out", 128)


def dims(rows: Dim = ROWS, columns: Dim = COLUMNS) -> dict[str, Any]:
    return {"dims": (rows, columns)}


def second(**changes: Any) -> dict[str, Any]:
    return {"operands": (PLAIN, replace(PLAIN, **changes), PLAIN)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.rpartition("/")[2])
def test_what_public_files_say_is_right(case: Case) -> None:
    check(case.descriptor)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dims": ()}, "a SuperDSC needs at least one dim and one operand"),
        ({"operands": ()}, "a SuperDSC needs at least one dim and one operand"),
        (dims(columns=Dim("mb", 4)), "dim labels must differ, got ['mb', 'mb']"),
        (dims(rows=Dim("mb", 5, 2)), "dim mb: 5 elements do not divide into 2 slices"),
        (dims(rows=Dim("mb", 0, 1)), "dim mb: 0 elements do not divide into 1 slices"),
        (dims(rows=Dim("mb", 4, 0)), "dim mb: 4 elements do not divide into 0 slices"),
        (dims(columns=Dim("out", 128, valid=0)), "dim out: 0 valid of 128 elements"),
        (dims(columns=Dim("out", 128, valid=129)), "dim out: 129 valid of 128 elements"),
        ({"mask_constant": 0}, "mask constant 0 of 0 constants"),
        ({"mask_constant": -2}, "mask constant -2 of 0 constants"),
        ({"mask_constant": 1, "constants": (Constant("c", DL16, 0),)}, "mask constant 1 of 1 constants"),
        ({"windows": (Window("i", "ki", 4),)}, "a window of ki over i, dims are ['mb', 'out']"),
        (
            dims(columns=Dim("out", 128, symbolic=SymbolicSize("n", -1))),
            "dim out is in a stick and cannot have a symbolic size",
        ),
    ],
)
def test_contradictions_of_the_whole(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(EmitError) as caught:
        check(small_add(index=7, **changes))
    assert (caught.value.message, caught.value.where) == (message, "7_add")


@pytest.mark.parametrize(
    "changes",
    [
        dims(columns=Dim("out", 128, valid=1)),
        dims(columns=Dim("out", 128, valid=128)),
        {"mask_constant": 0, "constants": (Constant("c", DL16, 0),)},
        {"operands": (PLAIN,)},
        {**dims(columns=Dim("out", 100)), "operands": (replace(PLAIN, extents=(4, 100)),)},
        second(extents=(10, 256)),
    ],
)
def test_what_is_just_right(changes: dict[str, Any]) -> None:
    check(small_add(**changes))


@pytest.mark.parametrize(
    ("changes", "message", "hint"),
    [
        (
            second(order=("mb", "x")),
            "order ('mb', 'x') with extents (4, 128) over dims ['mb', 'out']",
            None,
        ),
        (second(extents=(4,)), "order ('mb', 'out') with extents (4,) over dims ['mb', 'out']", None),
        (second(order=("mb",), extents=(4,)), "stick dim out is not in the order ('mb',)", None),
        (second(start=("0",)), "1 start addresses for 2 cores", None),
        (
            second(extents=(2, 128)),
            "dim mb needs 2 more elements than are allocated",
            "pad the buffer: a file cannot tell a shortfall from a gap",
        ),
        (
            second(extents=(4, 64)),
            "dim out needs 64 more elements than are allocated",
            "pad the buffer: a file cannot tell a shortfall from a gap",
        ),
    ],
)
def test_contradictions_of_an_operand(changes: dict[str, Any], message: str, hint: str | None) -> None:
    with pytest.raises(EmitError) as caught:
        check(small_add(**changes))
    assert (caught.value.message, caught.value.where, caught.value.hint) == (message, "0_add, operand 1", hint)


def relaid(rows: int, columns: int) -> Descriptor:
    """The change of sticks of (128, 256), from a buffer that holds so many rows and columns."""
    (case,) = (case for case in CASES if "/g8_" in case.file)
    source, target = case.descriptor.operands
    extents = {"mb": rows, "out": columns}
    return replace(case.descriptor, operands=(replace(source, extents=tuple(extents[d] for d in source.order)), target))


@pytest.mark.parametrize(("rows", "columns"), [(128, 256), (192, 256), (128, 320)])
def test_a_restickify_may_have_gaps_of_whole_sticks(rows: int, columns: int) -> None:
    check(relaid(rows, columns))


@pytest.mark.parametrize(("rows", "gap"), [(129, 1), (191, 63)])
def test_a_gap_of_less_than_a_stick_in_a_restickify_is_not_written(rows: int, gap: int) -> None:
    with pytest.raises(EmitError) as caught:
        check(relaid(rows, 256))
    text = f"dim mb of a restickify has a gap of {gap} elements, which a reader may take for a shortfall"
    assert (caught.value.message, caught.value.where) == (text, "0_ReStickifyOpHBM, operand 0")
    assert caught.value.hint == "pad both dims to whole sticks before the restickify"


def test_slices_of_the_stick_dim_are_whole_sticks() -> None:
    with pytest.raises(EmitError) as caught:
        check(small_add(dims=(Dim("mb", 4), Dim("out", 192, 2))))
    assert caught.value.message == "a slice of stick dim out is 96 elements, sticks hold 64"
    assert caught.value.where == "0_add, operand 0"
    assert caught.value.hint == "split out into whole sticks, or pad it"


def test_a_gathered_table_may_have_fewer_rows_than_are_picked() -> None:
    link = Indirect(IndirectKind.VALUE, 0)
    check(small_add(**second(extents=(2, 128), indirect=link)))


def test_an_operand_without_a_stick_has_none_to_find() -> None:
    sparse = Operand(("mb",), (4,), None, DL16, ("0", "256"))
    check(small_add(operands=(PLAIN, sparse)))
