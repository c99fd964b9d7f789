"""Rules about the shape of a file, on example files with one change each."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.superdsc.check import structure
from spyre_mlir.dialects.superdsc.check.structure import RULES
from tests.unit.backend.check.cases import ADD, ADD1, BACK_END, LX, Opened, drop, put
from tests.unit.dialects.superdsc.check.cases import (
    Change,
    assert_as_published,
    assert_right_files_keep,
    found,
    update,
)


def top(**members: object) -> Change:
    return update(lambda f: f.top, **members)


def dsc(**members: object) -> Change:
    return update(lambda f: f.dsc, **members)


def no_dscs(f: Opened) -> None:
    f.top["dscs_"] = []


def two_dscs(f: Opened) -> None:
    f.dscs.append(f.dscs[0])


def root(key: str) -> Change:
    def change(f: Opened) -> None:
        f.value[key] = f.value.pop(f.root)

    return change


def test_rules_are_the_published_ones() -> None:
    names = (
        "field-type field-value number-range required-field unknown-key research-key back-end-key root-key root-name"
    )
    assert_as_published(RULES, f"{names} dsc-name one-dsc core-lists core-dsc schedule-steps schedules-equal")


def test_right_files_keep_the_rules() -> None:
    assert_right_files_keep(RULES)


def test_known_keys_hold_values_of_their_type() -> None:
    rule = structure.field_type
    assert found(rule, ADD, dsc(maskingConstId_="none")) == [("maskingConstId_", "an integer", '"none"')]
    assert found(rule, ADD, dsc(mine_="none")) == []


@pytest.mark.parametrize(
    ("value", "wrong"), [("ddr", True), ("hbm", False), ("HBM", False), ("lx", False), ("x", True), (0, True)]
)
def test_some_keys_hold_one_of_a_few_words(value: object, wrong: bool) -> None:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    expected = [("scheduleTree_[0].component_", "one of hbm, lx", shown)] if wrong else []
    assert found(structure.field_value, ADD, update(lambda f: f.node(0), component_=value)) == expected


@pytest.mark.parametrize(("value", "wrong"), [(True, False), (False, False), (1, False), (2, True)])
def test_flags_may_be_numbers(value: object, wrong: bool) -> None:
    change = put(lambda f: f.operand(0)["memOrg_"]["hbm"], "isPresent", value)
    expected = [("labeledDs_[0].memOrg_.hbm.isPresent", "one of 0, 1", str(value))] if wrong else []
    assert found(structure.field_value, ADD, change) == expected


@pytest.mark.parametrize("number", [-(2**63) - 1, -(2**63), 2**64 - 1, 2**64])
def test_numbers_have_64_bits(number: int) -> None:
    """Down to the least signed one and up to the largest unsigned one, wherever they stand."""
    expected = f"a number from {-(2**63)} to {2**64 - 1}"
    wrong = [("loopOrder_[0][0].a", expected, str(number))] if number in (-(2**63) - 1, 2**64) else []
    assert found(structure.number_range, ADD, dsc(loopOrder_=[[{"a": number}]])) == wrong


@pytest.mark.parametrize(
    "key",
    ["coreFoldProp_", "coreletFoldProp_", "numCoresUsed_", "coreIdToDsc_", "coreIdToDscSchedule", "dscs_"],
)
def test_the_file_has_what_readers_need(key: str) -> None:
    wrong = found(structure.required_field, ADD, drop(lambda f: f.top, key))
    assert [(place, expected) for place, expected, _ in wrong] == [("$.0_add", f"a member '{key}'")]
    assert wrong[0][2].startswith("members ['sdscFoldProps_', 'sdscFolds_', ")


@pytest.mark.parametrize("key", ["numCoresUsed_", "coreIdsUsed_", "N_", "scheduleTree_", "labeledDs_", "computeOp_"])
def test_a_dsc_has_what_readers_need(key: str) -> None:
    ((place, expected, _),) = found(structure.required_field, ADD, drop(lambda f: f.dsc, key))
    assert (place, expected) == ("dscs_[0].add", f"a member '{key}'")


def test_keys_that_nobody_names_are_named() -> None:
    wrong = [("mine_", "a key of the format", "mine_", "drop the key, or check its spelling")]
    assert found(structure.unknown_key, ADD, dsc(mine_=1)) == wrong


def test_keys_of_research_builds_are_named() -> None:
    wrong = [("onchipMove_", "a key of the published front end", "onchipMove_", "drop the key")]
    assert found(structure.research_key, ADD, top(onchipMove_={}, mine_=1)) == wrong


def test_keys_of_the_back_end_are_named_once_for_all_inside() -> None:
    hint = "give the back end the file before it"
    wrong = [(key, "a key that a front end writes", key, hint) for key in ("ldsShareInfo_", "unpadN_", "pcfg_")]
    shared = [{"dsName_": "Tensor0", "sharedDscs": []}, {"dsName_": "Tensor1"}]
    inside = top(ldsShareInfo_=shared, unpadN_={"name_": "n", "r_": -1}, pcfg_={}, mine_=1)
    assert found(structure.back_end_key, ADD, inside) == wrong
    assert found(structure.back_end_key, ADD, dsc(N_={"r_": -1, "c_": -1, "name_": "n"})) == [
        (f"N_.{key}", "a key that a front end writes", key, hint) for key in ("r_", "c_")
    ]
    assert len(found(structure.back_end_key, BACK_END)) == 10


@pytest.mark.parametrize(("key", "wrong"), [("0 add", True), ("", True), ("añadir", True), ("a-B_9/z", False)])
def test_root_keys_are_of_a_few_characters(key: str, wrong: bool) -> None:
    expected = [("$", "a root key of letters, digits, _, / and -", f"'{key}'")] if wrong else []
    assert found(structure.root_key, ADD, root(key)) == expected


@pytest.mark.parametrize(
    ("key", "wrong"), [("12_add", False), ("add", True), ("_add", True), ("²_add", True), ("0_sub", True)]
)
def test_root_keys_are_number_and_function(key: str, wrong: bool) -> None:
    expected = [("$", "a root key such as 0_add", f"'{key}'")] if wrong else []
    assert found(structure.root_name, ADD, root(key)) == expected


def test_the_key_of_a_dsc_is_its_function() -> None:
    wrong = [("computeOp_[0].opFuncName", "add, the key of its DSC", '"sub"')]
    assert found(structure.dsc_name, ADD, update(lambda f: f.compute, opFuncName="sub")) == wrong


@pytest.mark.parametrize(
    ("changes", "got"),
    [
        ([two_dscs], "2 compute DSCs"),
        ([no_dscs], "0 compute DSCs"),
        ([no_dscs, top(datadscs_=[{}])], None),
        ([no_dscs, top(dataOpdscs_=[{}])], None),
        ([top(datadscs_=[{}])], "1 compute DSCs and datadscs_"),
        ([top(datadscs_=[])], None),
    ],
)
def test_a_file_is_one_computation_or_moves_data(changes: list[Change], got: str | None) -> None:
    wrong = [("dscs_", "one compute DSC, or data-movement DSCs", got)] if got else []
    assert found(structure.one_dsc, ADD, *changes) == wrong


CORES = "cores 0 to 31"


@pytest.mark.parametrize("key", ["coreIdToDsc_", "coreIdToWkSlice_", "coreIdToDscSchedule"])
def test_tables_have_an_entry_per_core(key: str) -> None:
    wrong = found(structure.core_lists, ADD, drop(lambda f: f.top[key], "3"))
    assert wrong == [(key, CORES, "31 cores, 0, 1, 2, 4, 5, 6, 7, 8 …")]
    assert found(structure.core_lists, ADD, drop(lambda f: f.top[key], "3"), no_dscs) == []
    assert found(structure.core_lists, ADD, drop(lambda f: f.top, key)) == []


def test_tables_have_no_entry_of_another_core() -> None:
    eight = top(coreIdToDsc_={str(core): 0 for core in range(8)})
    assert found(structure.core_lists, ADD1, eight) == [
        ("coreIdToDsc_", "cores 0 to 0", "8 cores, 0, 1, 2, 3, 4, 5, 6, 7")
    ]
    nine = top(coreIdToDsc_={str(core): 0 for core in range(9)})
    assert found(structure.core_lists, ADD1, nine)[0][2] == "9 cores, 0, 1, 2, 3, 4, 5, 6, 7 …"


def test_a_dsc_counts_its_cores() -> None:
    rule = structure.core_lists
    assert found(rule, ADD, dsc(numCoresUsed_=31)) == [("numCoresUsed_", "the number of cores, 32", "31")]
    ((place, expected, _),) = found(rule, ADD, dsc(coreIdsUsed_=list(range(1, 33))))
    assert (place, expected) == ("coreIdsUsed_", "the numbers 0 to 31")


@pytest.mark.parametrize(("number", "wrong"), [(-1, True), (0, False), (1, True)])
def test_cores_run_a_dsc_that_is_there(number: int, wrong: bool) -> None:
    change = put(lambda f: f.top["coreIdToDsc_"], "7", number)
    expected = [("coreIdToDsc_.7", "a DSC number from 0 to 0", str(number))] if wrong else []
    assert found(structure.core_dsc, ADD, change) == expected
    assert found(structure.core_dsc, ADD, change, no_dscs) == expected


def test_cores_may_run_the_second_of_two_dscs() -> None:
    change = put(lambda f: f.top["coreIdToDsc_"], "7", 1)
    assert found(structure.core_dsc, ADD, two_dscs, change) == []
    change = put(lambda f: f.top["coreIdToDsc_"], "7", 2)
    assert found(structure.core_dsc, ADD, two_dscs, change) == [("coreIdToDsc_.7", "a DSC number from 0 to 1", "2")]


def schedule(steps: object) -> Change:
    return put(lambda f: f.top["coreIdToDscSchedule"], "7", steps)


@pytest.mark.parametrize(
    ("step", "moves", "wrong"),
    [
        ([-1, 0, 0, 0], 0, False),
        ([-1, 0, 1, 1], 0, False),
        ([-1, 0, 2, 0], 0, True),
        ([-1, 0, 0, -1], 0, True),
        ([-1, -1, 0, 0], 0, True),
        ([-1, 1, 0, 0], 0, True),
        ([-1, -2, 0, 0], 0, True),
        ([-2, 0, 0, 0], 0, True),
        ([0, 0, 0, 0], 0, True),
        ([0, -1, 0, 0], 1, False),
        ([0, 0, 0, 0], 1, False),
        ([1, 0, 0, 0], 1, True),
        ([-1, 0, 0], 0, True),
        ([-1, 0, 0, 0, 0], 0, True),
    ],
)
def test_steps_name_what_is_there(step: list[int], moves: int, wrong: bool) -> None:
    what = "data DSC or -1, compute DSC or -1, not both -1, and two flags 0/1"
    expected = [("coreIdToDscSchedule.7[1]", what, str(step).replace(" ", ""))] if wrong else []
    changes = schedule([[-1, 0, 0, 0], step]), top(datadscs_=[{}] * moves)
    assert found(structure.schedule_steps, ADD, *changes) == expected


def test_cores_of_one_dsc_run_the_same_steps() -> None:
    rule = structure.schedules_equal
    wrong = [("coreIdToDscSchedule.7", "the schedule of the other cores, [[-1,0,0,0]]", "[[-1,0,1,0]]")]
    assert found(rule, ADD, schedule([[-1, 0, 1, 0]])) == wrong
    assert found(rule, ADD, schedule([[-1, 0, 1, 0]]), put(lambda f: f.top["coreIdToDsc_"], "7", 1)) == []
    assert found(rule, ADD, schedule([[-1, 0, 1, 0]]), drop(lambda f: f.top["coreIdToDsc_"], "7")) == wrong


def test_files_without_a_schedule_have_no_steps() -> None:
    for rule in (structure.schedule_steps, structure.schedules_equal):
        assert found(rule, LX, drop(lambda f: f.top, "coreIdToDscSchedule")) == []
