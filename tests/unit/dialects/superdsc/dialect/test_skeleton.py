"""Skeletons: equal for SuperDSCs that differ in number and start addresses, for no others."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Region
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.backend.read import read_json
from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, LabeledDsOp, SdscOp
from spyre_mlir.dialects.superdsc.dialect.short_form import PARTIAL
from spyre_mlir.dialects.superdsc.dialect.skeleton import by_skeleton, skeleton_of, tell
from tests.paths import DATA

TEXT = (DATA / "superdsc_worked/a1_add_128x256_1core.json").read_text()


def read(text: str = TEXT) -> SdscOp:
    return read_json(text, "f.json")


def test_number_and_start_addresses_do_not_count() -> None:
    moved = re.sub(r'(, 0, 0\]": ")(\d+)"', lambda found: f'{found[1]}{int(found[2]) + 128}"', TEXT)
    assert moved != TEXT
    assert skeleton_of(read(TEXT.replace('"0_add"', '"17_add"'))) == skeleton_of(read()) == skeleton_of(read(moved))


def test_copies_have_the_skeleton_that_equal_ones_have() -> None:
    op = read()
    copies = [op.clone(), read().clone()]
    assert {skeleton_of(op), *map(skeleton_of, copies)} == {skeleton_of(read())}


def renamed(op: SdscOp) -> None:
    op.properties["sym_name"] = StringAttr("0_sub")


def misnamed(op: SdscOp) -> None:
    op.properties["sym_name"] = JsonAttr("0_add")


def reformatted(op: SdscOp) -> None:
    next(o for o in op.walk() if isinstance(o, LabeledDsOp)).properties["format"] = StringAttr("IEEE_FP32")


def relinked(op: SdscOp) -> None:
    first, second, *_ = (o for o in op.walk() if isinstance(o, LabeledDsOp))
    first.operands = second.operands


def marked(op: SdscOp) -> None:
    next(o for o in op.walk() if isinstance(o, LabeledDsOp)).attributes["mark"] = IntegerAttr(1, i64)


@pytest.mark.parametrize("change", [renamed, misnamed, reformatted, relinked, marked])
def test_everything_else_does(change: Callable[[SdscOp], None]) -> None:
    op = read()
    change(op)
    assert skeleton_of(op) != skeleton_of(read())


def test_a_root_key_that_is_no_symbol_has_no_skeleton() -> None:
    assert skeleton_of(read(TEXT.replace('"0_add"', json.dumps("0_ä")))) is None


def test_a_question_is_asked_once_per_skeleton() -> None:
    asked: list[str] = []

    @by_skeleton
    def question(op: SdscOp, other: int) -> int:
        asked.append(op.root_key)
        return other

    twin = read(TEXT.replace('"0_add"', '"17_add"'))
    assert [question(read(), 1), question(twin, 1), question(twin, 2)] == [1, 1, 2]
    assert asked == ["0_add", "17_add"]


def test_an_answer_that_is_told_is_not_asked_for() -> None:
    @by_skeleton
    def question(op: SdscOp) -> str:
        return op.root_key

    tell(question, read(), "told")
    assert question(read(TEXT.replace('"0_add"', '"17_add"'))) == "told"
    other = read()
    reformatted(other)
    assert question(other) == "0_add"


def test_a_twin_of_what_verified_is_still_checked_where_it_differs() -> None:
    read().verify()
    twin = read()
    node = next(o for o in twin.walk() if isinstance(o, AllocateOp))
    assert node.start is not None
    node.properties["start"] = type(node.start).from_list(i64, [64, *node.start.get_values()[1:]])
    with pytest.raises(VerifyException, match="64, which is no multiple of 128"):
        twin.verify()


def test_a_twin_of_what_verified_is_checked_for_its_own_attributes() -> None:
    read().verify()
    twin = read()
    twin.attributes[PARTIAL] = JsonAttr("{}")
    with pytest.raises(VerifyException, match="in short form outside"):
        twin.verify()


def test_a_twin_of_what_verified_ends_no_block_that_wants_a_terminator() -> None:
    read().verify()
    function = func.FuncOp("f", ([], []), Region(Block([read()])))
    with pytest.raises(VerifyException, match="not a terminator"):
        function.verify()
