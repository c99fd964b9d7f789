"""The pages of coverage: worst samples decide, and every operation named is one."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
import torch

from tests.paths import ROOT


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


def test_the_worst_sample_is_the_support(page: ModuleType) -> None:
    assert page.kind_of({"samples": 9, "native": 8, "host": 1}) == "host"
    assert page.kind_of({"samples": 9, "refused": 8, "wrong": 1}) == "wrong"
    assert page.cell({"samples": 3, "native": 2, "refused": 1, "exception": 1}) == "native 2, refused 1 (1 excused)"
    assert page.cell(None) == ""


def test_the_score_counts_what_runs_without_a_host_step(page: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"a": {"native": 2}, "b": {"composed": 1}, "c": {"composed": 9, "host": 1}}
    counts = {f"aten::{name}/float32": {"samples": 10, **row} for name, row in rows.items()}
    counts["a/float32"] = {"samples": 0, "untried": 8}
    found = {"left_out": {"e": "random numbers"}, "core": ["a", "b", "c", "d"], "rows": counts}
    found |= {"torch": "2.0", "codes": {"ab": 20, "cd": 10}, "again": {"ef": 4}}
    counts["c/float32"] = {"samples": 0, "refused": 3, "reasons": {"complex numbers": 3}}
    monkeypatch.setattr(page, "results", lambda: found)
    text = page.coverage_page()
    assert "**2 of 4 run all their samples without a host step: 50.0 %**" in text
    assert "| not tried | 1 |" in text
    assert "* random numbers: `e`" in text
    assert "30 samples have been tried, and 8 are still to come" in text
    assert "torch 2.0 by 2 states of the compiler: `ab` 20, `cd` 10" in text
    assert "4 of them again since, by 1 other state." in text
    assert "| complex numbers | 3 |" in text


def test_torch_spyres_operations_are_counted_by_the_table_and_by_samples(
    page: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"names": ["relu", "sigmoid", "geqrf"], "how": "direct"}
    counts = {"relu/float32": {"samples": 1, "native": 1}, "sigmoid/float32": {"samples": 1, "host": 1}}
    monkeypatch.setattr(page, "torch_spyre", lambda: {"op": [row], "cast": [], "own": []})
    monkeypatch.setattr(page, "results", lambda: {"rows": counts})
    text = page.torch_spyre_page()
    assert "torch-spyre runs 3 on the device alone" in text and "we have kernels or views for 2." in text
    assert "OpInfo has float32 samples of 2 of them; all samples of 1 run here without a host step." in text


@pytest.mark.parametrize(
    ("name", "support"),
    [
        ("relu", "native: `relufwd`"),
        ("permute", "view"),
        ("softmax.int", "composed"),
        ("conv_transpose2d.input", "composed"),
        ("chunk", "composed, by torch's"),
        ("geqrf", "host"),
        ("normal_", "random numbers, drawn by the host"),
        ("unique_dim", "host: data decides the size of its result"),
    ],
)
def test_support_are_asked_of_the_op_table(page: ModuleType, name: str, support: str) -> None:
    assert page.ours(name).startswith(support)


def test_every_operation_named_is_one(page: ModuleType) -> None:
    for row in page.torch_spyre()["op"]:
        assert row["how"] in page.HOWS
        for name in row["names"]:
            packet, _, overload = name.partition(".")
            found = getattr(torch.ops.aten, packet, None)
            overloads = ["default"] if found is None and hasattr(torch, packet) else found.overloads()
            assert (overload or "default") in overloads, name


def test_committed_counts_are_of_core_overloads_and_entries(page: ModuleType) -> None:
    found = page.results()
    assert not set(found["core"]) & set(found["left_out"])
    for name, row in found["rows"].items():
        assert name.rpartition("/")[2] in page.DTYPES
        assert sum(row.get(kind, 0) for kind in page.KINDS) == row["samples"]
