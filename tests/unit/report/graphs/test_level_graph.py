"""Graphs by level, as text, and errors of those who ask for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyre_mlir.errors import InputError
from spyre_mlir.report.graphs import LevelGraphs


def test_they_print_their_sizes(graphs: LevelGraphs) -> None:
    first, *levels = str(graphs).splitlines()
    assert first == "graphs of Net"
    assert levels[0] == f"  aten: {len(graphs.at('aten').nodes)} nodes, {len(graphs.at('aten').groups)} groups"
    assert "<pre" in graphs._repr_html_()


def test_a_level_that_is_none(graphs: LevelGraphs) -> None:
    with pytest.raises(InputError, match="no level is called 'llvm'") as refused:
        graphs.dot("llvm")
    assert "spyre.loop" in str(refused.value)


def test_a_folder_that_cannot_be(graphs: LevelGraphs, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the directory"):
        graphs.save(tmp_path / "file" / "graphs")
