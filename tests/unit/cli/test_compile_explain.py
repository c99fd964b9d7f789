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
