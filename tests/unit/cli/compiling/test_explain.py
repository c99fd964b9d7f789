"""`spyre-compile --explain`: the plans of kernels as text and as a file, and whatever does not go with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spyre_mlir.cli import compile as compile_tool

Refused = Callable[..., str]


def test_plans_are_printed_and_written(saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "relu.json"
    assert compile_tool.run([str(saved), "--explain", "relu", "--json", str(file)]) == 0
    printed = capsys.readouterr().out
    (kernel,) = json.loads(file.read_text())["kernels"]
    assert printed.startswith(f"{kernel['name']}: {kernel['function']} for aten.relu at conftest.py:")
    assert kernel["function"] == "relufwd"
    assert list(tmp_path.iterdir()) == [file]


def test_options_of_the_compilation_count(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run([str(saved), "--explain", "relu", "--spec", "cores_per_card=2"]) == 0
    assert "d0 over 2 " in capsys.readouterr().out


def test_an_unknown_name_is_refused_with_a_suggestion(saved: Path, refused: Refused) -> None:
    refused(compile_tool.run, [saved, "--explain", "relux"], "no kernel is called 'relux'", "did you mean relu or")


def test_a_file_that_cannot_be_written(saved: Path, tmp_path: Path, refused: Refused) -> None:
    refused(compile_tool.run, [saved, "--explain", "relu", "--json", tmp_path / "no" / "x.json"], "x.json")


@pytest.mark.parametrize(
    "other", [("-o", "out"), ("--emit", "aten"), ("--report", "r.html"), ("--target", "ktir"), ("--levels",)]
)
def test_nothing_else_is_written_beside_it(other: tuple[str, ...], saved: Path, refused: Refused) -> None:
    refused(compile_tool.run, [saved, "--explain", "relu", *other], "--explain writes no bundle, so --")


MODEL = """
import torch

def make():
    return torch.nn.Linear(64, 64).eval(), (torch.zeros(2, 64),)
"""


def test_each_number_of_cards_has_a_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "linear_of_cards.py"
    file.write_text(MODEL)
    assert compile_tool.run([f"{file}:make", "--cards", "1,2"]) == 0
    out = capsys.readouterr().out
    assert "cards" in out
    assert "0, 1" in out
    assert "it fits on 1 card" in out


def test_an_explanation_of_cards_has_smaller_numbers_and_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "linear_of_cards.py"
    file.write_text(MODEL)
    assert compile_tool.run([f"{file}:make", "--cards", "2", "--explain"]) == 0
    out = capsys.readouterr().out
    assert "it fits on 1 card of" in out
    assert "0, 1" in out
    (link,) = (line for line in out.splitlines() if line.startswith("host_link_gb_per_s: 63 ("))
    assert "PCIe 5.0" in link
    assert link.endswith("; likely)")


def test_what_an_explanation_is_of(saved: Path, refused: Refused) -> None:
    refused(compile_tool.run, [saved, "--explain"], "--explain takes an operation, as --explain softmax")
    refused(
        compile_tool.run, ["m.py:make", "--cards", "2", "--explain", "add"], "--explain takes no operation, and got"
    )


@pytest.mark.parametrize(
    ("model", "numbers", "said"),
    [
        ("{file}:made", "1", "the file has no function 'made'; it has make"),
        ("nowhere.py:make", "1", "there is no such file"),
        ("{file}", "1", "--cards wants a function that makes the model"),
        ("{file}:make", "two", "--cards takes numbers with commas between them, got 'two'"),
    ],
)
def test_mistakes_about_cards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], model: str, numbers: str, said: str
) -> None:
    file = tmp_path / "linear_of_cards.py"
    file.write_text(MODEL)
    assert compile_tool.run([model.format(file=file), "--cards", numbers]) == 1
    assert said in capsys.readouterr().err


def test_nothing_is_written_beside_cards(capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run(["model.py:make", "--cards", "1", "-o", "out"]) == 1
    assert "--cards writes nothing, so --output means nothing beside it" in capsys.readouterr().err
