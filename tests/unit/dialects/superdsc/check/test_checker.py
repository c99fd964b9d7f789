"""All rules together: what one place that breaks several of them gives, and the rules that look at the whole file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.dialects.superdsc.check.checker import (
    FILE_RULES,
    check_value,
    consistent,
    executable,
    members,
    usual_value,
)
from spyre_mlir.dialects.superdsc.check.rule import Severity
from spyre_mlir.errors import ReadError, SpyreError, UnsupportedError
from spyre_mlir.hw.spec import SPYRE
from tests.unit.backend.check.cases import ADD, BACK_END, PADDED, drop, put
from tests.unit.dialects.superdsc.check.cases import (
    RIGHT,
    Change,
    assert_right_files_keep,
    found,
    opened,
    published,
    sdsc,
    told,
    update,
)


def dsc(**members: object) -> Change:
    return update(lambda f: f.dsc, **members)


def node(**members: object) -> Change:
    return update(lambda f: f.node(0), **members)


def found_by_all(file: str, *changes: Change) -> list[tuple[str, str]]:
    """Rule and the end of the place of every finding."""
    return [(one.rule, one.path.rpartition(".")[2]) for one in check_value(opened(file, *changes).value, "f.json")]


def test_rules_are_the_published_ones() -> None:
    """Structure 15, division, operands and addresses 12 each, gathers 2, folds 6, operation 13, and the four here."""
    declared = {rule.name: (rule.name, rule.severity, rule.meaning, rule.certainty, rule.source) for rule in FILE_RULES}
    assert len(declared) == len(FILE_RULES) == 15 + 12 + 12 + 12 + 2 + 6 + 13 + 4
    page = [row for row in published() if row[0] in declared]
    assert sorted(declared.values(), key=lambda row: row[1] is Severity.WARNING) == page


def test_right_files_keep_the_rules() -> None:
    assert_right_files_keep((members, consistent, executable, usual_value))
    for file in RIGHT[:3]:
        assert check_value(opened(file).value, "f.json") == ()


def test_a_look_that_fails_is_found_once() -> None:
    wrong = check_value(opened(ADD, drop(lambda f: f.dsc, "primaryDsInfo_")).value, "f.json")
    (finding,) = [one for one in wrong if one.rule == "members"]
    assert (finding.file, finding.path) == ("f.json", "$.0_add.dscs_[0].add")
    assert finding.expected == "a member 'primaryDsInfo_'"
    assert finding.got.startswith("members ['numCoresUsed_', ")


def test_a_finding_hides_what_follows_from_it() -> None:
    """A stage that is off contradicts the reader and is unusual: only the rule for stages says so."""
    stage = put(lambda f: f.dsc["dataStageParam_"]["0"]["el_"], "mb_", 8)
    assert found_by_all(ADD, stage) == [("stage-sizes", "mb_")]


def test_errors_come_first() -> None:
    assert found_by_all(ADD, dsc(numCoresUsed_=31, mine_=1)) == [
        ("core-lists", "numCoresUsed_"),
        ("unknown-key", "mine_"),
    ]


def test_readers_are_asked_where_no_rule_finds_an_error() -> None:
    mask = dsc(coordinateMasking_={"out": [[0, 256]]})
    assert found_by_all(PADDED, mask) == [("consistent", "out")]
    assert found_by_all(PADDED, mask, dsc(mine_=1)) == [("consistent", "out"), ("unknown-key", "mine_")]
    assert found_by_all(PADDED, mask, dsc(numCoresUsed_=31)) == [("core-lists", "numCoresUsed_")]


def test_the_machine_is_the_callers() -> None:
    smaller = check_value(opened(ADD).value, "f.json", replace(SPYRE, cores_per_card=16))
    assert "cores-on-card" in {one.rule for one in smaller}


def test_contradictions_name_their_place() -> None:
    wrong = [("coordinateMasking_.out", "valid and padding extents that add up to the size 256 of out", "[[0,256]]")]
    assert found(consistent, PADDED, dsc(coordinateMasking_={"out": [[0, 256]]})) == wrong
    ((place, expected, got),) = found(consistent, ADD, update(lambda f: f.top, numCoresUsed_=16))
    assert (place, expected) == ("$.0_add", "fields that agree")
    assert "mb 32 x out 1 = 32 slices, numCoresUsed_ is 16" in got


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (ReadError("they differ"), [("$.0_add", "fields that agree", "they differ")]),
        (ReadError("they differ", where="$.x"), [("$.x", "fields that agree", "they differ")]),
        (UnsupportedError("new"), []),
        (None, []),
    ],
)
def test_the_readers_complaint_is_found(error: SpyreError | None, wrong: list[tuple[str, ...]]) -> None:
    view = sdsc(ADD)
    vars(view)["unread"] = error  # what the reader said is kept
    assert [told(one, view) for one in consistent.find(view)] == wrong


def test_only_computations_are_read() -> None:
    assert found(consistent, ADD, drop(lambda f: f.top, "dscs_")) == []
    ((place, expected, got),) = found(executable, BACK_END)
    assert (expected, got) == ("a compute DSC", "none")
    assert place.startswith("$.")
    assert "." not in place[2:]


def test_features_that_the_machine_lacks_are_named() -> None:
    known = "features the machine knows"
    wrong = found(executable, ADD, update(lambda f: f.operand(0), dataFormat_="SEN018_INT"))
    assert wrong == [("labeledDs_[0].dataFormat_", known, 'a data format we do not know: "SEN018_INT"')]
    ((*_, hint),) = found(executable, ADD, put(lambda f: f.top["coreIdToDscSchedule"], "2", [[0, -1, 0, 0]]))
    assert hint == "split the file into one SuperDSC per step"
    view = sdsc(ADD)
    vars(view)["unread"] = UnsupportedError("new")
    assert [told(one, view) for one in executable.find(view)] == [("$.0_add", known, "new")]
    assert found(executable, ADD, update(lambda f: f.top, numCoresUsed_=16)) == []


def test_what_follows_has_its_usual_value() -> None:
    change = put(lambda f: f.top, "coreFoldProp_", {"factor_": 31, "label_": "core"})
    wanted, got = '{"factor_":32,"label_":"core"}', '{"factor_":31,"label_":"core"}'
    assert found(usual_value, ADD, change) == [("coreFoldProp_", wanted, got)]
    assert found(usual_value, ADD, drop(lambda f: f.top, "coreFoldProp_")) == []
    assert found(usual_value, ADD, node(prev_="x")) == [("scheduleTree_[0].prev_", '""', '"x"')]


def test_long_values_are_cut() -> None:
    ((_, wanted, got),) = found(usual_value, ADD, put(lambda f: f.top["coreIdToWkSlice_"]["0"], "mb", 7))
    assert wanted == '{"0":{"mb":0,"out":0},"1":{"mb":1,"out":0},"2":{"mb":2,"out"'
    assert got == wanted.replace('"mb":0', '"mb":7')
    assert len(wanted) == 60


@pytest.mark.parametrize(
    "change",
    [
        dsc(coordinateMasking_={"out": [[200, 56]]}),
        dsc(maskingConstId_=3),
        dsc(constantInfo_={}),
        node(indirectAllocType_="value_tensor"),
        node(maxDimSizes_=[1, -1]),
    ],
)
def test_defaults_follow_from_nothing(change: Change) -> None:
    assert found(usual_value, ADD, change) == []
