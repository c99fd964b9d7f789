"""Deliberate differences from torch-spyre's files: one test per row of the page, named as the row."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import spyre_mlir
from tests.end_to_end.superdsc.test_by_hand import matrix, orders, parts
from tests.functions import FunctionModel
from tests.paths import ROOT

ROWS = ROOT / "tools" / "data" / "generator_differences.toml"


def bundle(function: Callable[..., Any], directory: Path, *inputs: torch.Tensor) -> Path:
    return spyre_mlir.compile(FunctionModel(function), inputs).save(directory)


def dsc_of(directory: Path, function: str) -> tuple[Any, Any]:
    """The top-level object and the DSC of the one file that runs a hardware function."""
    tops = [top for path in directory.glob("sdsc_*.json") for top in json.loads(path.read_text()).values()]
    ((top, dsc),) = [(top, dsc) for top in tops for name, dsc in top["dscs_"][0].items() if name == function]
    return top, dsc


def masks(dsc: Any) -> list[int]:
    constants = {} if dsc["constantInfo_"] == "{}" else dsc["constantInfo_"]
    return [c["data_"]["data_"]["[0, 0, 0]"][0] for c in constants.values() if c["name_"] == "samv-maskvalue"]


def test_every_row_has_a_test() -> None:
    rows = tomllib.loads(ROWS.read_text())["difference"]
    assert {f"test_{row['name']}" for row in rows} | {"test_every_row_has_a_test"} == {
        name for name in globals() if name.startswith("test_")
    }


def test_mask_constants(tmp_path: Path) -> None:
    saved = bundle(lambda x: (x.amax(-1), x.amin(-1)), tmp_path / "b", torch.ones(3, 70))
    assert (masks(dsc_of(saved, "max")[1]), masks(dsc_of(saved, "min")[1])) == ([0xFFFE], [0x7FFE])


def test_masks_of_exp(tmp_path: Path) -> None:
    saved = bundle(torch.exp, tmp_path / "b", torch.ones(3, 70))
    assert masks(dsc_of(saved, "exp")[1]) == []


def test_matrix_times_vector(tmp_path: Path) -> None:
    _, dsc = dsc_of(bundle(torch.mm, tmp_path / "b", torch.ones(64, 128), torch.ones(128, 1)), "batchmatmul")
    assert dsc["N_"] == {"name_": "n", "mb_": 64, "out_": 64, "in_": 128}
    assert dsc["primaryDsInfo_"]["KERNEL"]["stickDimOrder_"] == ["out"]


def test_cohorts_of_one_row() -> None:
    vector = matrix(1, 256, "0, k", 0)
    top, dsc = parts(
        'spyre.kernel.compute "batchmatmul" [n = 128, k = 256 over 4]',
        vector,
        matrix(256, 128, "k, n", 1),
        matrix(1, 128, "0, n", 2),
    )
    assert list(top["numWkSlicesPerDim_"]) == ["out", "in"]
    assert list(top["coreIdToWkSlice_"]["1"].items()) == [("in", 1), ("out", 0)]
    assert orders(dsc) == [["in"], ["in", "out"], ["out"]]


def test_division_of_one_dim(tmp_path: Path) -> None:
    top, _ = dsc_of(bundle(torch.neg, tmp_path / "b", torch.ones(1000)), "neg")
    assert top["numWkSlicesPerDim_"] == {"out": 16}


def test_text_of_the_bundle(tmp_path: Path) -> None:
    text = (bundle(torch.neg, tmp_path / "b", torch.ones(1000)) / "bundle.mlir").read_text()
    assert text.startswith("builtin.module {") and "func.return" in text
