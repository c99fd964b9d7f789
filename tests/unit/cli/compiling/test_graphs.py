"""`spyre-compile --emit` with graphs in place of text."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spyre_mlir.cli import compile as compile_tool

Refused = Callable[..., str]
Capture = pytest.CaptureFixture[str]


def test_graphs_are_printed(saved: Path, capsys: Capture) -> None:
    assert compile_tool.run([str(saved), "--emit", "model-explorer"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [graph["id"] for graph in printed["graphs"]] == ["aten", "spyre.loop", "spyre.kernel", "superdsc"]
    assert compile_tool.run([str(saved), "--emit", "dot"]) == 0
    aten = capsys.readouterr().out
    assert aten.startswith("digraph ") and "linear/aten.linear" in aten
    assert compile_tool.run([str(saved), "--emit", "dot:superdsc"]) == 0
    assert "batchmatmul" in capsys.readouterr().out and "batchmatmul" not in aten


def test_passes_are_dumped(saved: Path, tmp_path: Path) -> None:
    assert compile_tool.run([str(saved), "--emit", "dot", "--dump-dir", str(tmp_path)]) == 0
    assert [one.name for one in tmp_path.glob("*convert-aten-to-spyre-loop*")]


@pytest.mark.parametrize(
    ("emit", "parts"),
    [
        ("dot:llvm", ["no level is called 'llvm'", "spyre.loop"]),
        ("model-explorer:aten", ["takes all levels", "--emit model-explorer"]),
        ("dots", ["no level is called 'dots'", "dot:LEVEL"]),
    ],
)
def test_levels_that_are_none(emit: str, parts: list[str], saved: Path, refused: Refused) -> None:
    refused(compile_tool.run, [saved, "--emit", emit], *parts)
