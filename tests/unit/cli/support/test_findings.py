"""What a check found, as it is said: one line each in a pipe, tables on a terminal, an error before a run."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from jsonschema_rs import Draft202012Validator
from xdsl.context import Context

from spyre_mlir.backend import check
from spyre_mlir.backend.check import Finding, Severity
from spyre_mlir.cli.support.findings import findings_json, print_findings, refuse_errors
from spyre_mlir.errors import InputError
from tests.paths import ROOT

SCHEMA = json.loads((ROOT / "docs" / "reference" / "check.schema.json").read_text(encoding="utf-8"))


def finding(number: int, severity: Severity = Severity.ERROR, file: str = "a.json", hint: str | None = None) -> Finding:
    return Finding(f"rule-{number}", severity, file, f"$.{number}", f"wanted-{number}", f"found-{number}", hint)


WARNING = finding(9, Severity.WARNING, "b.json", "mend it")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What the checker finds in anything."""
    findings: list[Finding] = []

    def checked(path: Path, context: Context) -> tuple[Finding, ...]:
        assert isinstance(path, Path) and isinstance(context, Context)
        return tuple(findings)

    monkeypatch.setattr(check, "check_path", checked)
    return findings


class Terminal(io.StringIO):
    """A stream that someone looks at."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("findings", "counts"),
    [
        ([], "0 errors, 0 warnings"),
        ([finding(1)], "1 error, 0 warnings"),
        ([WARNING], "0 errors, 1 warning"),
        ([finding(1), WARNING, finding(2), WARNING], "2 errors, 2 warnings"),
    ],
)
def test_lines_in_a_pipe(findings: list[Finding], counts: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_findings(findings)
    assert capsys.readouterr().out == "".join(f"{one}\n" for one in findings) + f"{counts}\n"


def test_a_table_per_file_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    print_findings([finding(1), WARNING, finding(2)])
    text = out.getvalue()
    first, second = text.split("b.json")
    assert first.count("a.json") == 1 and "a.json" not in second
    assert [word for word in ("rule", "place", "expected", "got", "try") if word not in first] == []
    for number in (1, 2):
        row = next(line for line in first.splitlines() if f"rule-{number}" in line)
        cells = [cell.strip() for cell in row.split("│")[1:-1]]
        assert cells[1:] == [f"rule-{number}", f"$.{number}", f"wanted-{number}", f"found-{number}", ""]
        assert "error" in cells[0]
        assert "\x1b[31m" in cells[0]
    row = next(line for line in second.splitlines() if "rule-9" in line)
    assert "\x1b[33mwarning" in row and "mend it" in row
    assert second.endswith("2 errors, 1 warning\n")


def test_findings_for_programs() -> None:
    text = findings_json([finding(1), finding(2), WARNING])
    value = json.loads(text)
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(value)] == []
    assert (value["errors"], value["warnings"]) == (2, 1)
    first, _, last = value["findings"]
    assert first == {
        "rule": "rule-1",
        "severity": "error",
        "file": "a.json",
        "place": "$.1",
        "expected": "wanted-1",
        "got": "found-1",
        "hint": None,
    }
    assert (last["severity"], last["file"], last["hint"]) == ("warning", "b.json", "mend it")
    assert json.loads(findings_json([]))["findings"] == []
    value["findings"][0]["more"] = 1
    assert not Draft202012Validator(SCHEMA).is_valid(value)


def test_a_bundle_with_errors_is_not_run(found: list[Finding], tmp_path: Path) -> None:
    found += [WARNING, finding(1)]
    with pytest.raises(InputError) as caught:
        refuse_errors(tmp_path, insist=False)
    assert caught.value.message == (
        "this breaks 1 rule, so its results could be wrong:\n  rule-1: a.json: $.1: expected wanted-1, got found-1"
    )
    assert caught.value.where == str(tmp_path)
    assert caught.value.hint == "spyre-translate --check lists everything; --no-check runs it all the same"


@pytest.mark.parametrize(("count", "more"), [(5, None), (6, "  … and 1 more"), (8, "  … and 3 more")])
def test_the_first_five_errors_are_shown(count: int, more: str | None, found: list[Finding], tmp_path: Path) -> None:
    found += [finding(number) for number in range(count)]
    with pytest.raises(InputError) as caught:
        refuse_errors(tmp_path / "a.json", insist=False)
    first, *lines = caught.value.message.splitlines()
    assert first.startswith(f"this breaks {count} rules, ")
    assert [line.split(":")[0].strip() for line in lines[:5]] == [f"rule-{number}" for number in range(5)]
    assert lines[5:] == ([] if more is None else [more])


def test_what_is_insisted_on_or_no_bundle_is_not_checked(found: list[Finding], tmp_path: Path) -> None:
    found += [finding(1)]
    refuse_errors(tmp_path, insist=True)
    refuse_errors(tmp_path / "a.mlir", insist=False)


def test_warnings_alone_do_not_keep_a_bundle_from_running(found: list[Finding], tmp_path: Path) -> None:
    found += [WARNING]
    refuse_errors(tmp_path, insist=False)
