"""Tables on a terminal of 40 columns: whole words and numbers, at the price of columns that are named."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.ranks.cards import CardLoad, Cards

X = torch.linspace(-1, 1, 4 * 16).reshape(4, 16)
WHOLE = {
    "report": ("function", "us"),
    "accuracy": ("file", "behind", "module"),
    "verification": ("level", "error", "verdict"),
    "comparison": ("total", "after", "change"),
    "explanation": ("operand", "layout", "reason", "plan", "division"),
    "plan": ("kernel",),
    "cards": ("cards", "memory", "fits"),
}


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(16, width), nn.GELU(), nn.Linear(width, 300)).eval() for width in (8, 96)]
    one, other = (spyre_mlir.compile(model, (X,)) for model in models)
    assert isinstance(one, spyre_mlir.CompiledModel) and isinstance(other, spyre_mlir.CompiledModel)
    return {
        "report": one.report(),
        "accuracy": one.accuracy(X),
        "verification": one.verify(X),
        "comparison": one.report().compare(other.report()),
        "explanation": one.explain("linear"),
        "plan": one.plan(),
        "cards": Cards(((CardLoad(0, 900, 1.0, 0, 0, 0.0),),), 500),
    }


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("columns", [40, 80])
def test_tables_fit_and_nothing_in_them_is_cut(
    name: str, columns: int, made: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((columns, 24)))
    lines = str(made[name]).splitlines()
    rules = [number for number, line in enumerate(lines) if line.strip("─ ") == "" and "─" in line]
    assert rules
    for number in rules:
        assert len(lines[number]) <= columns
        rows = lines[number - 1 : number + 3]
        assert not any("…" in row for row in rows if row.startswith("  ")), rows
    headings = {word for number in rules for word in lines[number - 1].split()}
    assert headings >= set(WHOLE[name])
    if columns == 40 and name != "verification":
        assert any(line.startswith("no room for ") for line in lines)
