"""Tests that a change can reach."""

from __future__ import annotations

import sys

import pytest

from tests.paths import ROOT

sys.path.insert(0, str(ROOT / "tools"))
from changed import reachable_tests, reached


def test_imports_are_followed_through_others() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": set[str](), "d": {"a"}, "e": set[str]()}
    assert reached({"c"}, graph) == {"a", "b", "c", "d"}
    assert reached({"e"}, graph) == {"e"}


def test_a_module_at_the_edge_reaches_few_tests() -> None:
    chosen = reachable_tests({"spyre_mlir/report/plots.py"})
    assert "tests/unit/report/test_plots.py" in chosen
    assert "tests/unit/hw/number_formats/test_dl16.py" not in chosen


def test_a_module_below_all_reaches_its_users() -> None:
    chosen = reachable_tests({"spyre_mlir/hw/number_formats/dl16.py"})
    assert {"tests/unit/hw/number_formats/test_dl16.py", "tests/lit", "tests/unit/test_api.py"} <= set(chosen)


def test_an_op_reaches_what_runs_the_table() -> None:
    chosen = reachable_tests({"spyre_mlir/ops/composed/nn/softmax.py"})
    assert "tests/end_to_end/ops/test_meanings.py" in chosen


@pytest.mark.parametrize(
    "path", ["pyproject.toml", "tests/data/sdsc_schema.json", "spyre_mlir/report/templates/page.html.j2"]
)
def test_data_reaches_everything(path: str) -> None:
    assert reachable_tests({path}) == ["tests"]


def test_pages_and_lit_files_reach_themselves() -> None:
    assert reachable_tests({"README.md"}) == ["tests/tooling/test_pages.py"]
    assert reachable_tests({"tests/lit/text/floats.mlir"}) == ["tests/lit/text/floats.mlir"]
    assert reachable_tests(set()) == []
