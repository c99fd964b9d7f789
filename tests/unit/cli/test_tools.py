"""The tools by one name."""

from __future__ import annotations

import pytest

import spyre_mlir
from spyre_mlir.cli.start import TOOLS
from spyre_mlir.cli.tools import main


def test_without_a_tool_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert f"spyre-mlir {spyre_mlir.__version__}" in out
    assert all(f"  {name} " in out for name in TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_version(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([tool, "--version"]) == 0
    assert capsys.readouterr().out.startswith(f"spyre-{tool} {spyre_mlir.__version__}")


def test_another_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimise"]) == 1
    assert capsys.readouterr().err.startswith("error: there is no tool optimise")
