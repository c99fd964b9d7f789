"""Three planted defects, an overflow, a slow model and a wrong kernel: terminal, page and JSON say what is wrong.

From Python and from the tools; the page in a browser.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jsonschema_rs import Draft202012Validator
from torch import nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from tests.browser import shown
from tests.paths import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.machine.overflows.DL16OverflowWarning")
X = torch.linspace(1, 2, 4 * 64).reshape(4, 64)
LARGEST_DL16 = 2.0**32 * (2 - 2.0**-8)


class Overflowing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        big = x * 1e5
        return torch.sqrt(big * big)  # overflows here


class Turning(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x.softmax(-1).transpose(-1, -2)  # turned here
        return x


class Summing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.arange(64.0) + 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) + self.bias  # subtracted by a planted kernel


def place(text: str) -> str:
    with open(__file__, encoding="utf-8") as lines:
        return f"{Path(__file__).name}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def compiled(model: nn.Module, x: torch.Tensor) -> CompiledModel:
    made = spyre_mlir.compile(model.eval(), (x,))
    assert isinstance(made, CompiledModel)
    return made


def checked(text: str, kind: str) -> dict[str, Any]:
    """The value of a JSON file, which its schema takes, and takes no more keys than it names."""
    value = json.loads(text)
    schema = json.loads((ROOT / "docs" / "reference" / f"{kind}.schema.json").read_text(encoding="utf-8"))
    valid = Draft202012Validator(schema)
    assert [error.message for error in valid.iter_errors(value)] == []
    for key in list(value):
        assert not valid.is_valid({k: v for k, v in value.items() if k != key}), key
    assert not valid.is_valid(value | {"more": 1})
    return value


@pytest.fixture
def tool(python: list[str]) -> Callable[..., str]:
    """Runs a tool in a pipe, and gives what it prints."""

    def run(*arguments: object, code: int = 0) -> str:
        command = [*python, "-m", "spyre_mlir.cli.run", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done.stdout

    return run


def in_browser(section: str, *pages: Path) -> list[str]:
    """The text of a section as a browser shows it, at the width of a phone too."""
    texts: list[str] = []
    with shown(pages[0].read_text(encoding="utf-8"), pages[0].parent) as browser:
        browser.set_viewport_size({"width": 390, "height": 800})
        for page in pages:
            browser.goto(page.as_uri())
            assert browser.evaluate("document.documentElement.scrollWidth") <= 390
            texts.append(browser.inner_text(f"#{section}"))
    return texts


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    np.save(tmp_path / "x.npy", X.numpy())
    return ["--input", f"x={tmp_path / 'x.npy'}"]


def test_an_overflow(given: list[str], tool: Callable[..., str], tmp_path: Path) -> None:
    model = compiled(Overflowing(), X)
    bundle = model.save(tmp_path / "bundle", levels=True)
    count = int(((X.double() * 1e5) ** 2 > LARGEST_DL16).sum())
    cause = (
        f"{count} results are beyond 8,573,157,376, the largest DLFloat16, first in mul at {place('# overflows here')}"
    )
    cure = "compile with keep_float32=True"
    found, page = model.accuracy(X), tmp_path / "python.html"
    model.report(page, accuracy=found)
    files = ["--json", tmp_path / "a.json", "--report", tmp_path / "tool.html"]
    printed = tool(bundle, *given, "--accuracy", *files)
    for text in (str(found), printed):
        assert cause in text and f"try: {cure}" in text and "keep_float32=True, tried: the error of " in text
    for section in in_browser("accuracy", page, tmp_path / "tool.html"):
        assert cause in section and cure in section and "keep_float32=True, tried: the error of " in section
    for text in (found.json(), (tmp_path / "a.json").read_text()):
        value = checked(text, "accuracy")
        assert value["advice"][0].startswith(cause) and cure in value["advice"][0]
        assert value["launches"][0]["overflows"] == count
        tried = {one["change"]: one for one in value["tried"]}["keep_float32=True"]
        assert tried["helps"] and tried["error"] < 1e-3 < 0.1 < tried["before"]


def test_a_slow_model(tool: Callable[..., str], tmp_path: Path) -> None:
    model = compiled(Turning(), torch.zeros(512, 512))
    report = model.report(tmp_path / "python.html")
    bundle = model.save(tmp_path / "bundle")
    printed = tool(bundle, "--time", "--report", tmp_path / "tool.html")
    value = checked(report.json(), "report")
    (sentence,) = [one for one in value["advice"] if "only rearranges data" in one]
    cause, _, hint = sentence.partition("\n  try: ")
    assert place("# turned here") in cause and hint.startswith("leave the last dimension in its place")
    for text in (str(report), printed):
        assert cause in text and hint in text
    for section in in_browser("advice", tmp_path / "python.html", tmp_path / "tool.html"):
        assert cause in section and hint in section


def test_a_wrong_kernel(given: list[str], tool: Callable[..., str], tmp_path: Path) -> None:
    model = compiled(Summing(), X)
    bundle = model.save(tmp_path / "bundle", levels=True)
    assert model.verify(X)
    for directory in (model.bundle_directory(), bundle):
        text = (directory / "sdsc_1.json").read_text()
        (directory / "sdsc_1.json").write_text(text.replace('"add"', '"sub"'))
        assert '"add"' in text
    model.reload()
    found = model.verify(X)
    # The bias is subtracted, which is off by twice the largest.
    wanted, got = X[0, 63].item() + 64, X[0, 63].item() - 64
    said = ["divergence: sdsc_1.json (", "), bundle against superdsc", place("# subtracted by"), "at ["]
    model.report(tmp_path / "python.html", verification=found)
    files = ["--json", tmp_path / "b.json", "--report", tmp_path / "tool.html"]
    printed = tool(bundle, *given, "--bisect", "--no-check", *files, code=3)
    sections = in_browser("verification", tmp_path / "python.html", tmp_path / "tool.html")
    assert "exact numerics" not in str(found)
    for text in (str(found), printed, *sections):
        assert all(part in text for part in said), text
    for text, kind in ((found.json(), "verification"), ((tmp_path / "b.json").read_text(), "bisection")):
        value = checked(text, kind)
        one = value["divergence"]
        assert value["agrees"] is False
        assert (one["file"], one["level"], one["above"]) == ("sdsc_1.json", "bundle", "superdsc")
        assert one["line"].endswith(place("# subtracted by"))
        row, column = one["difference"]["index"]
        assert column == 63
        shift = X[row, column].item() - X[0, 63].item()
        assert one["difference"]["got"] == pytest.approx(got + shift, rel=1e-2)
        assert one["difference"]["expected"] == pytest.approx(wanted + shift, rel=1e-2)
    assert {row["level"]: row["verdict"] for row in checked(found.json(), "verification")["levels"]} == {
        **dict.fromkeys(("aten", "spyre.loop", "spyre.kernel", "superdsc"), "ok"),
        "bundle": "above 0.0001",
    }


def test_where_nothing_is_wrong_nothing_is_said(given: list[str], tool: Callable[..., str], tmp_path: Path) -> None:
    bundle = compiled(Summing(), X).save(tmp_path / "bundle", levels=True)
    printed = tool(bundle, *given, "--bisect", "--json", tmp_path / "b.json", "--report", tmp_path / "p.html")
    assert printed.startswith("no divergence: the bundle agrees with aten, spyre.loop, spyre.kernel, superdsc")
    value = checked((tmp_path / "b.json").read_text(), "bisection")
    assert (value["agrees"], value["divergence"], value["numerics"]) == (True, None, "exact")
    assert "no divergence" in in_browser("verification", tmp_path / "p.html")[0]
    agreed = compiled(Summing(), X).verify(X)
    assert checked(agreed.json(), "verification")["agrees"] is True
    assert str(agreed).splitlines()[-1].startswith("all of this is in exact numerics")


def test_levels_that_agree_on_an_overflow_do_not_say_that_the_device_is_right(tmp_path: Path) -> None:
    """Verification is exact by design: it says so, and what sees the overflow."""
    model = compiled(Overflowing(), X)
    found, page = model.verify(X), tmp_path / "page.html"
    assert found
    last = str(found).splitlines()[-1]
    assert "exact numerics" in last and "the device rounds and may overflow, which `accuracy` measures" in last
    assert last in found._repr_html_().replace("&#x27;", "'")
    model.report(page, verification=found)
    assert "All of this is in exact numerics; rounding and overflow of the device" in page.read_text()
