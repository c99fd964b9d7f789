"""The JSON file of a report: true to the timeline, valid by its schema, and read back or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from spyre_mlir import CompiledModel
from spyre_mlir.errors import ReadError
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.report.figures import Figures, read_figures
from tests.paths import ROOT

SCHEMA = ROOT / "docs" / "reference" / "report.schema.json"


@pytest.fixture(scope="module")
def text(softmax: CompiledModel) -> str:
    return softmax.report().json()


@pytest.fixture
def value(text: str) -> dict[str, Any]:
    return json.loads(text)


def validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_file_is_valid_by_its_schema(value: dict[str, Any]) -> None:
    assert [error.message for error in validator().iter_errors(value)] == []


def test_the_schema_knows_no_other_keys_and_needs_all(value: dict[str, Any]) -> None:
    valid = validator()
    for part in (value, value["kernels"][0], value["host"][0], value["stages"][0]):
        part["more"] = 1
        assert not valid.is_valid(value)
        del part["more"]
        for key, old in list(part.items()):
            del part[key]
            assert not valid.is_valid(value), key
            part[key] = {}
            assert not valid.is_valid(value), key
            part[key] = old
    assert valid.is_valid(value)


def test_the_figures_are_those_of_the_timeline(value: dict[str, Any], softmax_timeline: Timeline) -> None:
    assert value["total_us"] == softmax_timeline.total_us
    assert [k["file"] for k in value["kernels"]] == [k.launch.file for k in softmax_timeline.kernels]
    assert sum(k["us"] for k in value["kernels"]) == pytest.approx(softmax_timeline.kernels_us)
    assert [k["function"] for k in value["kernels"]] == ["identity", "max", "sub", "exp", "sum", "realdiv"]
    assert {k["line"].partition(":")[0] for k in value["kernels"]} == {"conftest.py"}
    assert [k["rearranges"] for k in value["kernels"]] == [True, *[False] * 5]
    assert value["kernels"][3]["shape"] == [512, 1024]
    assert [s["level"] for s in value["stages"]] == ["aten", "spyre.loop", "spyre.kernel", "superdsc"]
    assert {w["what"] for w in value["host"]} >= {"launch a bundle", "bring a result back"}


def test_it_is_read_back(text: str, softmax: CompiledModel, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    found = read_figures(path)
    assert found == softmax.report().figures
    assert isinstance(found, Figures) and found.json() == text


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        (lambda v: v.pop("version"), "", "expected a report with"),
        (lambda v: v.update(version=2), "", "'version': 1}, got ['spyre-report', 2]"),
        (lambda v: v.pop("kernels"), ": the file", "expected an object with name, profile, "),
        (lambda v: v.update(total_us="7"), ": total_us", "expected float, got '7'"),
        (lambda v: v.update(lower_bound=0), ": lower_bound", "expected bool, got 0"),
        (lambda v: v["kernels"][1].update(cores=True), ": kernels[1].cores", "expected int, got True"),
        (lambda v: v["kernels"][0].update(shape=[1, "x"]), ": kernels[0].shape[1]", "expected int, got 'x'"),
        (lambda v: v.update(host=3), ": host", "expected a list, got 3"),
        (lambda v: v["host"][0].pop("what"), ": host[0]", "expected an object with what, count"),
    ],
)
def test_another_file_is_refused_by_name(
    change: Any, place: str, message: str, value: dict[str, Any], tmp_path: Path
) -> None:
    change(value)
    path = tmp_path / "r.json"
    path.write_text(json.dumps(value))
    with pytest.raises(ReadError) as error:
        read_figures(path)
    assert message in str(error.value) and f"at: {path}{place}" in str(error.value)


def test_a_list_is_no_report(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text("[]")
    with pytest.raises(ReadError, match="expected a report"):
        read_figures(tmp_path / "r.json")


@pytest.mark.parametrize("text", [None, "", "{"])
def test_what_is_no_json_is_refused_with_the_tool_that_writes_it(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "r.json").write_text(text)
    with pytest.raises(ReadError) as error:
        read_figures(tmp_path / "r.json")
    assert "spyre-compile --json" in (error.value.hint or "")
