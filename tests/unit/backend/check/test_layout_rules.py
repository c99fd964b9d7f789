"""What launches take for strides and extents against what laid tensors out: files of a small program, edited."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.backend.check.host_rules import LAYOUT_RULES

Json = dict[str, Any]


class Program(nn.Module):
    """A table that a product pads from 33 rows to 64, a sum, and a buffer in the pool."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(70, 5))

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[i], x[:, :, 0] @ torch.ones(33, 2), x.sum(1), x[0, :, :2] @ self.weight[:2]


@pytest.fixture(scope="module", params=["symbolic", "concrete"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its directory; concrete addresses have a segment per argument, so there the program is shorter."""
    model = Program()
    if request.param == "concrete":
        model.forward = lambda x, i: (x[i], x[:, :, 0] @ x[0])
    inputs = torch.ones(5, 33, 3), torch.tensor([0, 4, 1])
    directory = tmp_path_factory.mktemp("layouts") / "bundle"
    spyre_mlir.compile(model, inputs, addresses=request.param, inputs="free").save(directory)
    assert spyre_mlir.check(directory) == ()
    return directory


def edited(bundle: Path, at: Path, file: str, change: Callable[[Any], object]) -> list[tuple[str, str, str, str]]:
    """What the checker finds in a copy with one file changed: rule, place, expected, got."""
    shutil.copytree(bundle, at)
    path = at / file
    if path.suffix == ".mlir":
        path.write_text(str(change(path.read_text())))
    else:
        value = json.loads(path.read_text())
        change(value)
        path.write_text(json.dumps(value))
    findings = [one for one in spyre_mlir.check(at) if one.rule in {rule.name for rule in LAYOUT_RULES}]
    return [(one.rule, one.path, one.expected, one.got) for one in findings]


def node(value: Json, operand: int) -> Json:
    ((_, top),) = value.items()
    ((_, dsc),) = top["dscs_"][0].items()
    return dsc["scheduleTree_"][operand]


def test_a_gather_that_reads_rows_of_another_length(bundle: Path, tmp_path: Path) -> None:
    """Without its gap the file says rows of 33 sticks; the host sends rows of 64."""
    found = edited(bundle, tmp_path / "b", "sdsc_0.json", lambda value: node(value, 1).pop("backGapCore_"))
    table = "<[5, 33, 3] x SEN169_FP16, order [0, 1, 2], stick 2, extents [5, 64, 64], hbm>"
    expected = f"64 sticks from one row of {table} to the next"
    assert found == [("launch-layout", "sdsc_0.json, operand 1", expected, "33")]


def test_a_host_that_lays_an_input_out_otherwise(bundle: Path, tmp_path: Path) -> None:
    """The host program sends rows of 40: every launch that reads them is found, and the manifest."""
    found = edited(bundle, tmp_path / "b", "program.mlir", lambda text: text.replace("[5, 64, 64]", "[5, 40, 64]"))
    assert {rule for rule, *_ in found} == {"launch-layout", "manifest-layout"}
    assert ("sdsc_0.json, operand 1", "64") in {(place, got) for _, place, _, got in found}
    assert any(place == "sdsc_1.json, operand 0" for _, place, _, _ in found)


def test_a_buffer_that_its_reader_takes_for_another(bundle: Path, tmp_path: Path) -> None:
    """A gap of one stick more in the result of the second launch: the next reads what was laid out otherwise."""

    def widen(value: Json) -> None:
        node(value, 1)["backGapCore_"] = {node(value, 1)["layoutDimOrder_"][0]: {"-1": "64"}}

    found = edited(bundle, tmp_path / "b", "sdsc_1.json", widen)
    assert [place for rule, place, *_ in found if rule == "launch-layout"] == ["sdsc_1.json, operand 1"]


def test_a_manifest_with_another_layout(bundle: Path, tmp_path: Path) -> None:
    def change(value: Json) -> None:
        value["arguments"][0]["layout"] = value["arguments"][0]["layout"].replace("[5, 64, 64]", "[5, 34, 64]")

    (finding,) = edited(bundle, tmp_path / "b", "manifest.json", change)
    assert finding[:2] == ("manifest-layout", "$.arguments[0]")
    assert "[5, 64, 64]" in finding[2] and "[5, 34, 64]" in finding[3]


def test_a_weight_that_the_file_has_in_another_layout(tmp_path: Path) -> None:
    model, x = nn.Linear(70, 5).eval(), torch.ones(3, 70)
    spyre_mlir.compile(model, (x,)).save(tmp_path / "bundle")

    def change(value: Json) -> None:
        entry = value["weights"]["weight"]
        assert "order [0, 1]" in entry["layout"]
        entry["layout"] = entry["layout"].replace("order [0, 1]", "order [1, 0]")

    found = edited(tmp_path / "bundle", tmp_path / "b", "manifest.json", change)
    assert [(rule, place) for rule, place, *_ in found] == [("manifest-layout", "$.weights, of argument 1")]


def test_a_manifest_that_cannot_be_read_says_where(bundle: Path, tmp_path: Path) -> None:
    def change(value: Json) -> None:
        value["launches"][0]["maps"][1] = "0, d1 +, d2"

    shutil.copytree(bundle, tmp_path / "b")
    value = json.loads((tmp_path / "b/manifest.json").read_text())
    change(value)
    (tmp_path / "b/manifest.json").write_text(json.dumps(value))
    (finding,) = spyre_mlir.check(tmp_path / "b")
    assert (finding.rule, finding.path) == ("host-files", "manifest.json")
    assert "'0, d1 +, d2'" in finding.got


def test_a_bundle_of_an_older_manifest_breaks_nothing(bundle: Path, tmp_path: Path) -> None:
    def change(value: Json) -> None:
        value.pop("buffers")
        for launch in value["launches"]:
            launch.pop("maps")

    assert edited(bundle, tmp_path / "b", "manifest.json", change) == []


@pytest.fixture(scope="module")
def patches(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """A patch embedding, whose product sees what a restickify wrote in another layout: its launch, and that layout."""
    directory = tmp_path_factory.mktemp("patches") / "bundle"
    spyre_mlir.compile(nn.Conv2d(3, 64, 16, stride=16, bias=False).half(), (torch.ones(1, 3, 64, 64).half(),)).save(
        directory
    )
    launches = json.loads((directory / "manifest.json").read_text())["launches"]
    ((number, views),) = ((n, launch["views"]) for n, launch in enumerate(launches) if "views" in launch)
    assert list(views) == ["0"]
    return directory, number, views["0"]


@pytest.mark.parametrize(
    ("old", "new", "expected", "got"),
    [
        # 4 columns and rows of patches of 16 sticks; 5 rows of patches would be 320.
        ("[1, 4, 4, 1024]", "[1, 5, 4, 1024]", "a view of up to 256 sticks", "320"),
        ("order [2, 3, 1, 0]", "order [1, 3, 2, 0]", "64 sticks from one step of mb of", "1"),
    ],
)
def test_a_view_that_is_no_view_of_its_buffer(
    patches: tuple[Path, int, str], tmp_path: Path, old: str, new: str, expected: str, got: str
) -> None:
    directory, number, layout = patches
    assert old in layout

    def change(value: Json) -> None:
        value["launches"][number]["views"]["0"] = layout.replace(old, new)

    found = edited(directory, tmp_path / "b", "manifest.json", change)
    assert found
    assert {(rule, place) for rule, place, *_ in found} == {("launch-layout", f"sdsc_{number}.json, operand 0")}
    assert any(e.startswith(expected) and g == got for *_, e, g in found), found
