"""Two reports side by side; expected numbers are summed up by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema_rs import Draft202012Validator

from spyre_mlir import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.report import Report
from spyre_mlir.report.comparison import SHOWN, Change, Comparison
from spyre_mlir.report.figures import Figures, HostFigures, KernelFigures
from tests.paths import ROOT


def kernel(function: str, us: float, module: str = "", line: str = "m.py:1", runs: int = 1) -> KernelFigures:
    moving = function == "copy"
    return KernelFigures(f"{function}.json", function, (64,), us, runs, "memory", 128, 1, moving, module, "", line)


def program(name: str, *kernels: KernelFigures, profile: str = "calibrated") -> Figures:
    total = sum(k.us for k in kernels)
    return Figures(name, profile, total, False, 1.0, 2_000_000, 1_000_000, kernels, (HostFigures("x", 2, 8, None),), ())


BEFORE = program(
    "old", kernel("exp", 4.0, "layers.0.mlp"), kernel("exp", 4.0, "layers.1.mlp"), kernel("copy", 2.0, runs=3)
)
AFTER = program("new", kernel("exp", 3.0, "layers.0.mlp"), kernel("add", 0.5, "head", "m.py:2"), kernel("copy", 2.0))


@pytest.fixture
def compared() -> Comparison:
    return Comparison(BEFORE, AFTER)


def test_totals(compared: Comparison) -> None:
    assert [(c.name, c.before, c.after) for c in compared.totals] == [
        ("time, us", 10.0, 5.5),
        ("rearranging data, us", 2.0, 2.0),
        ("launches", 5, 3),
        ("kernels in the bundle", 2, 3),
        ("device memory moved, MB", 2.0, 2.0),
        ("roofline, us", 1.0, 1.0),
        ("steps of the host", 2, 2),
    ]


def test_the_largest_change_is_first_and_layers_are_one(compared: Comparison) -> None:
    assert compared.by_function() == [
        Change("exp", 8.0, 3.0, (2, 1)),
        Change("add", 0.0, 0.5, (0, 1)),
        Change("copy", 2.0, 2.0, (3, 1)),
    ]
    assert [c.name for c in compared.by_module()] == ["layers.*.mlp", "head", "the model itself"]
    steps = Comparison(program("a", kernel("exp", 2.0, "net.0")), program("b", kernel("add", 1.0, "net.2")))
    assert [c.name for c in steps.by_module()] == ["net.0", "net.2"]
    assert [(c.name, c.difference) for c in compared.by_line()] == [("m.py:1", -5.0), ("m.py:2", 0.5)]


@pytest.mark.parametrize(
    ("change", "cells"),
    [
        (Change("a", 8.0, 2.0, (3, 3)), ("a", "8.00", "2.00", "-6.00", "0.25 x", "3")),
        (Change("a", 8.0, 12.0, (3, 4)), ("a", "8.00", "12.0", "+4.00", "1.50 x", "3 to 4")),
        (Change("a", 0.0, 2.0, (0, 1)), ("a", "0.00", "2.00", "+2.00", "new", "0 to 1")),
        (Change("a", 2.0, 0.0, (1, 0)), ("a", "2.00", "0.00", "-2.00", "gone", "1 to 0")),
        (Change("a", 2.0, 2.0), ("a", "2.00", "2.00", "", "", "")),
        (Change("a", 1200, 1500), ("a", "1,200", "1,500", "+300", "1.25 x", "")),
    ],
)
def test_a_change_in_words(change: Change, cells: tuple[str, ...]) -> None:
    assert change.cells() == cells


def test_rounding_is_no_change() -> None:
    assert not Change("a", 0.1 + 0.2, 0.3, (1, 1)).differs
    assert Change("a", 0.3, 0.3, (1, 2)).differs


def test_as_text(compared: Comparison) -> None:
    text = str(compared)
    assert text.startswith("old to new, predicted, calibrated profile")
    assert ["layers.*.mlp", "8.00", "3.00", "-5.00", "0.38", "x", "2", "to", "1"] in map(str.split, text.splitlines())
    assert "the time of host steps is unknown" not in text
    assert "unknown" in str(Comparison(replace(BEFORE, lower_bound=True), AFTER))


def test_rows_beyond_the_first_and_equal_ones_are_counted() -> None:
    many = [kernel(f"f{n}", float(n)) for n in range(1, SHOWN + 4)]
    text = str(Comparison(program("a", *many, kernel("same", 1.0)), program("b", kernel("same", 1.0))))
    assert "and 3 more that change by 3.00 us or less each\n1 without change" in text
    assert "time by function: no change" in str(Comparison(BEFORE, BEFORE))


def test_other_profiles_do_not_compare() -> None:
    with pytest.raises(InputError, match="one report is of the profile calibrated, the other of peak"):
        Comparison(BEFORE, replace(AFTER, profile="peak"))


def test_the_page_has_every_row(compared: Comparison, tmp_path: Path) -> None:
    page = compared.page(tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<h1>old to new</h1>" in page
    for name in ("time, us", "exp", "add", "copy", "layers.*.mlp", "head", "m.py:2"):
        assert f"<code>{name}</code>" in page
    headings = [table.split("</thead>")[0].count("</th>") for table in page.split("<table")[1:]]
    assert headings == [5, 6, 6, 6]  # totals have no launches
    with pytest.raises(InputError, match="the file cannot be written"):
        compared.page(tmp_path / "none" / "c.html")


def test_reports_compare_with_reports_figures_and_files(softmax: CompiledModel, tmp_path: Path) -> None:
    report, path = softmax.report(), tmp_path / "r.json"
    path.write_text(report.json())
    for other in (report, report.figures, path, str(path)):
        assert not any(change.differs for change in report.compare(other).totals)
    with pytest.raises(InputError, match="a report without kernels has no figures"):
        report.compare(Report("p", ()))


def test_the_json_file_has_every_change_and_is_valid_by_its_schema(compared: Comparison) -> None:
    value = json.loads(compared.json())
    assert value["by_function"][1] == {
        "name": "add",
        "before": 0.0,
        "after": 0.5,
        "launches": {"before": 0, "after": 1},
    }
    assert value["totals"][0] == {"name": "time, us", "before": 10.0, "after": 5.5}
    assert [value[key] for key in ("before", "after", "profile", "lower_bound")] == ["old", "new", "calibrated", False]
    schema = ROOT / "docs" / "reference" / "comparison.schema.json"
    valid = Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    assert [error.message for error in valid.iter_errors(value)] == []
    for part in (value, value["by_line"][0], value["by_line"][0]["launches"]):
        part["more"] = 1
        assert not valid.is_valid(value)
        del part["more"]
    del value["by_module"]
    assert not valid.is_valid(value)
