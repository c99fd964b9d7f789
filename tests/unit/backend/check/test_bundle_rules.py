"""The checker on bundles: for each rule one bundle that breaks it, and real ones that break none."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from spyre_mlir.backend.check import RULES, Finding, Severity, check_path
from spyre_mlir.backend.check.bundle_rules import BUNDLE_RULES
from spyre_mlir.backend.check.check import bundle_text, json_text
from spyre_mlir.universe import make_context
from tests.paths import DATA
from tests.unit.backend.check.bundles import BUNDLE, write


def gathered(path: Path) -> None:
    """The second operand of a file becomes a tensor whose rows are found by index; its cores start apart."""
    value = json.loads(path.read_text())
    value["1_add"]["dscs_"][0]["add"]["scheduleTree_"][1]["indirectAllocType_"] = "value_tensor"
    path.write_text(json.dumps(value))


def found(path: Path) -> tuple[Finding, ...]:
    return check_path(path, make_context())


def test_the_bundle_by_hand_breaks_nothing(tmp_path: Path) -> None:
    assert [str(one) for one in found(write(tmp_path))] == []


def test_the_real_bundle_breaks_nothing(tmp_path: Path) -> None:
    """Two of its four files are published; they stand for the other two, which have other root keys."""
    shutil.copy(DATA / "superdsc_real/10_bundle.mlir", tmp_path / "bundle.mlir")
    for name, source in {
        "sdsc_0_ReStickifyOpHBM": "02_ReStickifyOpHBM_512x512",
        "sdsc_1_add": "01_add_512x512_32core_hbm",
        "sdsc_2_add": "01_add_512x512_32core_hbm",
        "sdsc_3_ReStickifyOpHBM": "02_ReStickifyOpHBM_512x512",
    }.items():
        shutil.copy(DATA / f"superdsc_real/{source}.json", tmp_path / f"{name}.json")
    assert [str(one) for one in found(tmp_path)] == []


@dataclass(frozen=True)
class Case:
    """A change that breaks a rule of bundles.

    Args:
        rule: its name.
        old, new: text of `bundle.mlir` and what it becomes.
        change: what else happens to the directory.
    """

    rule: str
    old: str = ""
    new: str = ""
    change: Callable[[Path], object] = lambda directory: None


LOOP = "%i0 = arith.constant 0 : index\n    %i1 = arith.constant 1 : index\n    %n = arith.constant {0} : index\n"
FIRST = BUNDLE.splitlines()[11].strip()
SECOND = BUNDLE.splitlines()[12].strip()
# A second result in the same scratch memory, from the second core's part on: half of the first one is gone.
LATER = f"%p2 = arith.addi %p1, %step : index\n    {FIRST.replace('%pool, %p1', '%p1, %p2')}\n    "


def looped(count: int, body: str) -> str:
    return LOOP.format(count) + f"    scf.for %i = %i0 to %n step %i1 {{\n{body}\n    }}"


CASES = (
    Case("bundle-text", "func.return", "func.retur"),
    Case("bundle-function", "@sdsc_bundle", "@main"),
    Case("bundle-op", "%a1 = arith.addi", "%m = arith.muli %step, %step : index\n    %a1 = arith.addi"),
    Case("file-exists", change=lambda directory: (directory / "sdsc_1.json").unlink()),
    Case("file-unused", change=lambda directory: shutil.copy(directory / "sdsc_1.json", directory / "sdsc_2.json")),
    Case("json-text", change=lambda directory: (directory / "sdsc_1.json").write_text('{"a": 1, "a": 2}')),
    Case("launch-operands", "-9, -10, -11, -12", "-9, -10, -11"),
    Case("symbols-bound", "-9, -10, -11, -12", "-9, -10, -11, -13"),
    Case("symbols-unique", SECOND, SECOND.replace("-7, -8", "-1, -2")),
    Case("trip-count", SECOND, looped(65536, SECOND)),
    Case("pool-size", "65536 bytes", "16106127361 bytes"),
    Case("pool-range", "65536 bytes", "65408 bytes"),
    Case("launch-aligned", "arith.constant 8192", "arith.constant 8100"),
    Case("launch-base", "(%a0, %a1, %b0", "(%a0, %c1, %b0"),
    Case("launch-slices", "arith.constant 8192", "arith.constant 8320"),
    Case("written-first", FIRST, FIRST.replace("%pool, %p1", "%c0, %c1")),
    Case("read-whole", SECOND, LATER + SECOND),
    Case("launch-outputs", "arith.constant 8192", "arith.constant 4096"),
    Case("launch-gather-start", change=lambda directory: gathered(directory / "sdsc_1.json")),
    Case("argument-used", SECOND, SECOND.replace("%c0, %c1", "%a0, %a1")),
    Case("result-read", SECOND, SECOND.replace("(%pool, %p1", "(%a0, %a1")),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_bundle_that_breaks_the_rule(case: Case, tmp_path: Path) -> None:
    assert case.old in BUNDLE
    directory = write(tmp_path / "bundle", BUNDLE.replace(case.old, case.new) if case.old else BUNDLE)
    case.change(directory)
    findings = found(directory)
    mine = [one for one in findings if one.rule == case.rule]
    assert mine, [str(one) for one in findings]
    assert all(one.path and one.expected and one.got for one in mine)


def test_every_rule_has_a_case() -> None:
    names = {rule.name for rule in (*BUNDLE_RULES, bundle_text, json_text)}
    assert {case.rule for case in CASES} == names <= {rule.name for rule in RULES}


@pytest.mark.parametrize("linked", [False, True], ids=["by its name", "by a link"])
def test_a_file_that_is_run_lies_in_the_directory(linked: bool, tmp_path: Path) -> None:
    name = "sdsc_1.json" if linked else "../outside.json"
    directory = write(tmp_path / "bundle", BUNDLE.replace("sdsc_1.json", name))
    (directory / "sdsc_1.json").rename(tmp_path / "outside.json")
    if linked:
        (directory / "sdsc_1.json").symlink_to(tmp_path / "outside.json")
    (finding,) = [one for one in found(directory) if one.rule == "file-exists"]
    assert finding.got == name


@pytest.mark.parametrize(("count", "broken"), [(1, False), (65535, False), (65536, True), (0, True)])
def test_trips(count: int, broken: bool, tmp_path: Path) -> None:
    findings = found(write(tmp_path, BUNDLE.replace(SECOND, looped(count, SECOND))))
    assert any(one.rule == "trip-count" for one in findings) == broken


@pytest.mark.parametrize(("step", "broken"), [(0, False), (8192, True)])
def test_addresses_in_a_loop_are_followed_to_its_last_step(step: int, broken: bool, tmp_path: Path) -> None:
    """The scratch memory holds one result; a loop that moves on in it leaves it at its second step."""
    body = (
        "      %q0 = affine.apply affine_map<(d0)[s0] -> (s0 + d0 * STEP)> (%i)[%pool]\n"
        "      %q1 = affine.apply affine_map<(d0)[s0] -> (s0 + d0 * STEP)> (%i)[%p1]\n"
        + FIRST.replace("%pool, %p1", "%q0, %q1")
    ).replace("STEP", str(step))
    findings = found(write(tmp_path, BUNDLE.replace(FIRST, looped(2, body))))
    assert [one.rule for one in findings if one.severity is Severity.ERROR] == (["pool-range"] if broken else [])


def test_addresses_no_memory_has_are_only_said(tmp_path: Path) -> None:
    directory = write(tmp_path / "bundle", BUNDLE.replace("arith.constant 8192", f"arith.constant {2**62}"))
    assert "pool-range" in {one.rule for one in found(directory)}
