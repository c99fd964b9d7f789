"""The pages of coverage: worst samples decide, and every operation named is one."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
import torch

from tests.unit.docs.blocks import ROOT


@pytest.fixture(scope="module")
def page() -> ModuleType:
    """The module of `tools` that writes the pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
        spec = importlib.util.spec_from_file_location("coverage_page", ROOT / "tools" / "coverage_page.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def test_the_worst_sample_is_the_fate(page: ModuleType) -> None:
    assert page.kind_of({"samples": 9, "native": 8, "host": 1}) == "host"
    assert page.kind_of({"samples": 9, "refused": 8, "wrong": 1}) == "wrong"
    assert page.cell({"samples": 3, "native": 2, "refused": 1, "exception": 1}) == "native 2, refused 1 (1 excused)"
    assert page.cell(None) == ""


def test_the_score_counts_what_runs_without_a_host_step(page: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": {"native": 2}, "b": {"composed": 1}, "c": {"composed": 9, "host": 1}}
    counts = {f"aten::{name}/float32": {"samples": 10, **row} for name, row in rows.items()}
    found = {"left_out": {"e": "random numbers"}, "core": ["a", "b", "c", "d"], "rows": counts}
    monkeypatch.setattr(page, "results", lambda: found)
    text = page.coverage_page()
    assert "**2 of 4 run all their samples without a host step: 50.0 %**" in text
    assert "| not tried | 1 |" in text
    assert "* random numbers: `e`" in text


@pytest.mark.parametrize(
    ("name", "fate"),
    [("relu", "native: `relufwd`"), ("permute", "view"), ("softmax.int", "composed"), ("geqrf", "host")],
)
def test_fates_are_asked_of_the_op_table(page: ModuleType, name: str, fate: str) -> None:
    assert page.ours(name).startswith(fate)


def test_every_operation_named_is_one(page: ModuleType) -> None:
    for row in page.torch_spyre()["op"]:
        assert row["how"] in page.HOWS
        for name in row["names"]:
            packet, _, overload = name.partition(".")
            found = getattr(torch.ops.aten, packet, None) or getattr(torch, packet)
            assert not overload or hasattr(found, overload), name


def test_committed_counts_are_of_core_overloads_and_entries(page: ModuleType) -> None:
    found = page.results()
    assert not set(found["core"]) & set(found["left_out"])
    for name, row in found["rows"].items():
        assert name.rpartition("/")[2] in page.DTYPES
        assert sum(row.get(kind, 0) for kind in page.KINDS) == row["samples"]
