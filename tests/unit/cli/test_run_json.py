"""`spyre-run --json`: the numbers of results and probes, and what a run met."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema_rs import Draft202012Validator

from spyre_mlir.cli import run as run_tool
from spyre_mlir.cli.run_json import RunRecord
from tests.paths import ROOT

SCHEMA = json.loads((ROOT / "docs" / "reference" / "run.schema.json").read_text(encoding="utf-8"))


def test_a_run_in_numbers(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "run.json", tmp_path / "out"
    arguments = [str(bundle), "--probe", "sdsc_0", "--output", str(out), "--json", str(file)]
    assert run_tool.run(arguments) == 0
    assert "sdsc_0: 64x64, min " in capsys.readouterr().out
    value = json.loads(file.read_text(encoding="utf-8"))
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(value)] == []
    (probe,), results = value["probes"], value["results"]
    assert probe["name"] == "sdsc_0" and value["met"] == []
    for one in (probe, *results):
        wanted = np.load(out / f"{one['name']}.npy")
        assert (one["type"], one["shape"]) == (str(wanted.dtype), list(wanted.shape))
        assert [one["min"], one["max"]] == [float(wanted.min()), float(wanted.max())]
        assert one["mean"] == pytest.approx(float(wanted.astype(float).mean()))


def test_what_is_no_number_is_null() -> None:
    results = {"none": np.zeros((0, 3), np.float32), "some": np.array([np.inf, 1.0]), "true": np.array([True, False])}
    value = json.loads(RunRecord(results, {}, ["a fault"]).json())
    assert [error.message for error in Draft202012Validator(SCHEMA).iter_errors(value)] == []
    none, some, true = value["results"]
    assert none["shape"] == [0, 3] and {none[key] for key in ("min", "mean", "max")} == {None}
    assert (some["min"], some["mean"], some["max"]) == (1.0, None, None)
    assert (true["type"], true["min"], true["mean"]) == ("bool", 0.0, 0.5)
    assert value["met"] == ["a fault"]
    value["results"][0]["more"] = 1
    assert not Draft202012Validator(SCHEMA).is_valid(value)


def test_a_file_that_cannot_be_written_is_refused_before_the_run(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tool.run([str(bundle), "--json", str(tmp_path / "no" / "run.json")]) == 1
    out, err = capsys.readouterr()
    assert out == "" and "run.json" in err


def test_a_dash_is_stdout_which_has_nothing_else(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(bundle), "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert Draft202012Validator(SCHEMA).is_valid(json.loads(out))
    assert ": 64x64, min " in err
    assert not Path("-").exists()


def test_a_dash_is_empty_if_the_run_fails(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(bundle), "--json", "-", "--input", "nobody=x.npy"]) == 1
    assert capsys.readouterr().out == ""
