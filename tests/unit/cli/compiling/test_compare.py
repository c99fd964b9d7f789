"""`spyre-compile --compare`: bundles and reports side by side, and whatever is neither is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from spyre_mlir.cli import compile as compile_tool

Refused = Callable[..., str]


class Chain(torch.nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.length = length

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.length):
            x = torch.exp(x)
        return x


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle and a report of one exponential and of three."""
    folder = tmp_path_factory.mktemp("made")
    for length in (1, 3):
        model = str(folder / "model.pt2")
        torch.export.save(torch.export.export(Chain(length), (torch.zeros(64, 64),)), model)
        words = [model, "-o", str(folder / f"{length}"), "--json", str(folder / f"{length}.json")]
        assert compile_tool.run(words) == 0
    return folder


def test_the_file_of_a_report_says_what_was_compiled(made: Path) -> None:
    kernels = json.loads((made / "3.json").read_text())["kernels"]
    assert [kernel["function"] for kernel in kernels] == ["exp"] * 3


@pytest.mark.parametrize("names", [("1", "3"), ("1.json", "3.json"), ("1", "3.json")])
def test_directories_and_files_compare(
    names: tuple[str, str], made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    words = ["--compare", *(str(made / name) for name in names), "--report", str(page)]
    assert compile_tool.run([*words, "--json", str(tmp_path / "change.json")]) == 0
    printed = capsys.readouterr().out
    (exp,) = json.loads((tmp_path / "change.json").read_text())["by_function"]
    assert exp["name"] == "exp" and exp["launches"] == {"before": 1, "after": 3}
    for name, us in (("1.json", exp["before"]), ("3.json", exp["after"])):
        assert us == pytest.approx(sum(k["us"] for k in json.loads((made / name).read_text())["kernels"]))
    assert re.search(r"^  launches +1 +3 +\+2 +3\.00 x", printed, re.M)
    assert re.search(r"^  exp .* 1 to 3$", printed, re.M)
    assert "<code>exp</code>" in page.read_text()


def test_a_program_compares_with_itself(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run(["--compare", str(made / "1"), str(made / "1.json")]) == 0
    assert capsys.readouterr().out.count("no change") == 3


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["{made}/1", "{made}/none"], ["cannot read the file", "none", "try: "]),
        (["{made}/1", "{made}/model.pt2"], ["expected UTF-8 text", "try: "]),
        (["{made}", "{made}/1"], ["{made}"]),
        (["{made}/1", "{made}/1", "--report", "{made}/none/page.html"], ["No such file or directory"]),
        (["{made}/1", "{made}/1", "--json", "{made}/none/c.json"], ["No such file or directory"]),
    ],
)
def test_bad_input_is_refused(words: list[str], parts: list[str], made: Path, refused: Refused) -> None:
    given = [word.format(made=made) for word in words]
    refused(compile_tool.run, ["--compare", *given], *(part.format(made=made) for part in parts))


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["model.pt2"], "--compare compiles nothing, so a model means nothing beside it"),
        (["-o", "x"], "so --output means nothing"),
        (["--info"], "so --info means nothing"),
    ],
)
def test_nothing_is_compiled_beside_it(words: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run([*words, "--compare", "a", "b"]) == 1
    assert part in capsys.readouterr().err


def test_figures_of_no_bundle_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run(["model.pt2", "--emit", "aten", "--json", str(tmp_path / "r.json")]) == 1
    assert "--json is about a bundle" in capsys.readouterr().err
