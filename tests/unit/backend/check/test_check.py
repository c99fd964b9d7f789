"""The checker on files: what the real ones break, and for each rule one file that breaks it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from spyre_mlir.backend.check import RULES, check_path, check_text
from spyre_mlir.dialects.superdsc.check import FILE_RULES, Severity, check_value
from spyre_mlir.universe import make_context
from tests.unit.backend.check.cases import ADD, ADD1, CASES, DATA, SEGMENT, Case, gather

FILES = sorted(path for path in DATA.glob("superdsc_*/*.json") if "segment_size" not in path.name)
# What the real files break; the other files break nothing. File 06 comes from a research build of the front end, and
# the back end wrote 09, which holds no compute DSC.
EXPECTED = {
    "06_ReStickifyOpLx_lx.json": {"research-key": ["lxRelayoutClassifications_"]},
    "09_backend_written_sdsc_dcg.json": {
        "back-end-key": [
            "N_", "datadscs_", "fold_coord_", "folded_sdsc_name_", "ldsShareInfo_", "opFuncsUsed_", "pcfg_",
            "prodConsList", "target_", "unpadN_",
        ],
        "executable": ["out_valid1_mb1_in64_to_mb1_in64"],
    },
}  # fmt: skip


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_findings_on_real_files(path: Path) -> None:
    found: dict[str, list[str]] = {}
    for finding in check_path(path, make_context()):
        assert finding.severity is Severity.WARNING
        found.setdefault(finding.rule, []).append(finding.path.rpartition(".")[2])
    assert {rule: sorted(places) for rule, places in found.items()} == EXPECTED.get(path.name, {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_file_that_breaks_the_rule(case: Case) -> None:
    found = check_value(case.broken(), "f.json")
    mine = [finding for finding in found if finding.rule == case.rule]
    assert mine, [str(finding) for finding in found]
    assert any(case.path in finding.path and finding.path.startswith("$") for finding in mine), mine
    assert all(finding.expected and finding.got and finding.file == "f.json" for finding in mine)


def test_every_rule_has_a_case() -> None:
    assert Counter(case.rule for case in CASES) == Counter(rule.name for rule in FILE_RULES)


def test_cores_take_whole_sticks_of_indices() -> None:
    """128 indices over 32 cores are 4 each, of 32 in a stick; over one core they are 4 whole sticks."""
    divided, whole = Case("", ADD, gather("mb")).broken(), Case("", ADD1, gather("mb")).broken()
    (finding,) = [one for one in check_value(divided, "f.json") if one.rule == "gather-division"]
    assert (finding.path, finding.got) == ("$.0_add.numWkSlicesPerDim_.mb", "32 slices of 4")
    assert "whole sticks of 32 indices" in finding.expected
    assert [one for one in check_value(whole, "f.json") if one.rule.startswith("gather")] == []


def test_rules_have_names_meanings_and_sources_of_their_own() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule.meaning.endswith(".") and rule.source and rule.certainty in ("C", "L", "I"), rule.name


def test_a_file_that_is_no_text_breaks_the_rule_of_files(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_bytes(b'{"0_add": "\xff"}')
    (finding,) = check_path(path, make_context())
    assert (finding.rule, finding.file, finding.path) == ("json-text", str(path), "byte 11")
    assert (finding.expected, finding.got) == ("UTF-8 text", "byte 0xff")


@pytest.mark.parametrize(("number", "wrong"), [(-(2**63) - 1, True), (-(2**63), False), (2**64 - 1, False)])
def test_numbers_have_64_bits_signed_or_unsigned(number: int, wrong: bool) -> None:
    """Real files hold 2**64 - 1, which is -1 without a sign."""
    value = json.loads((DATA / f"{ADD}.json").read_text())
    value["0_add"]["dscs_"][0]["add"]["loopOrder_"] = [[number]]
    assert any(finding.rule == "number-range" for finding in check_value(value, "f.json")) == wrong


@pytest.mark.parametrize(("bytes_left", "wrong"), [(0, False), (-128, True)])
def test_an_operand_may_end_with_its_segment(bytes_left: int, wrong: bool) -> None:
    """The tensor of 128 x 256 halves has 65,536 bytes, the last of them core 31's."""
    value = json.loads((DATA / f"{ADD}.json").read_text())
    data = value["0_add"]["dscs_"][0]["add"]["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"]
    moved = SEGMENT - 128 * 256 * 2 - bytes_left
    data.update({key: str(int(start) + moved) for key, start in data.items()})
    assert any(finding.rule == "segment" for finding in check_value(value, "f.json")) == wrong


def test_nothing_is_derived_for_a_billion_cores() -> None:
    """A corruption found this: the table of all slices was made before its size was looked at."""
    value = json.loads((DATA / f"{ADD}.json").read_text())
    value["0_add"]["numWkSlicesPerDim_"]["mb"] = 1 << 40
    rules = {finding.rule for finding in check_value(value, "f.json")}
    assert "members" in rules and "splits-product" in rules


@pytest.mark.parametrize(
    ("text", "place", "got"),
    [
        ("", "1:1", "the end of the file"),
        ('{"a": {"b": 1, "b": 2}}', "$", "'b' twice"),
        ("[]", "$", "[]"),
        ('{"a": 1}', "$", '{"a":1}'),
        ('{"a": {"b": 1e999}}', "$", "1e999"),
        ("[" * 70 + "]" * 70, "$", "deeper"),
    ],
)
def test_what_is_no_file_is_one_finding(text: str, place: str, got: str) -> None:
    (finding,) = check_text(text, "f.json")
    assert (finding.rule, finding.severity) == ("json-text", Severity.ERROR)
    assert finding.path == place and got in finding.got


def test_a_damaged_place_hides_no_other() -> None:
    """One file with three faults gives three findings; the broken operand ends only the rules that look at it."""
    value = json.loads((DATA / f"{ADD}.json").read_text())
    dsc = value["0_add"]["dscs_"][0]["add"]
    dsc["dataStageParam_"]["0"]["ss_"]["mb_"] = 5
    dsc["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"]["[3, 0, 0]"] = "1600"
    del dsc["labeledDs_"][2]["scale_"]
    rules = {finding.rule for finding in check_value(value, "f.json")}
    assert {"stage-sizes", "start-aligned", "members"} <= rules


def test_a_kernel_without_operands_hides_nothing() -> None:
    value = json.loads((DATA / f"{ADD}.json").read_text())
    dsc = value["0_add"]["dscs_"][0]["add"]
    dsc["computeOp_"][0]["inputLabeledDs"] = dsc["computeOp_"][0]["outputLabeledDs"] = []
    dsc["labeledDs_"] = dsc["scheduleTree_"] = []
    rules = {finding.rule for finding in check_value(value, "f.json")}
    assert "json-text" not in rules and rules


def test_a_finding_says_what_where_expected_and_got() -> None:
    value = json.loads((DATA / f"{ADD}.json").read_text())
    value["0_add"]["numCoresUsed_"] = 16
    assert str(check_value(value, "f.json")[0]) == (
        "error: splits-product: f.json: $.0_add.numCoresUsed_: expected the product of the splits mb 32 x out 1, 32, "
        "got 16\n  try: change a split or the number"
    )
