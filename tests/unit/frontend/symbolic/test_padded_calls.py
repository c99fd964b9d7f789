"""Calls on more elements than the caller has: inputs, results, and numbers among them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import Dim

from spyre_mlir.frontend import Program, first_elements, has_gaps, import_program, padded_inputs


class Several(nn.Module):
    """Takes and gives nested values."""

    def forward(self, x: torch.Tensor, more: dict[str, torch.Tensor]) -> dict[str, Any]:
        return {"both": (x + 1, more["ids"] * 2), "rows": x.shape[0], "sum": more["scale"].sum()}


def program() -> Program:
    rows = Dim("rows", min=2, max=90)
    example = (torch.ones(5, 4), {"ids": torch.ones(3, 5, dtype=torch.int64), "scale": torch.ones(7)})
    return import_program(Several().eval(), example, None, ({0: rows}, {"ids": {1: rows}, "scale": None}))


def test_inputs_have_zeros_behind_them() -> None:
    x, ids, scale = torch.randn(6, 4), torch.ones(3, 6, dtype=torch.int64), torch.ones(7)
    (padded, more), kwargs = padded_inputs(program(), (x, {"ids": ids, "scale": scale}), {}, {"s0": 9})
    assert torch.equal(padded, torch.cat([x, torch.zeros(3, 4)]))
    assert torch.equal(more["ids"], torch.tensor([[1] * 6 + [0] * 3] * 3))
    assert more["scale"] is scale
    assert kwargs == {}


def test_results_are_cut_and_sizes_among_them_are_the_callers() -> None:
    ids = torch.arange(27).reshape(3, 9)
    larger = {"both": (torch.ones(9, 4), ids), "rows": 9, "sum": torch.tensor(7.0)}
    found = first_elements(program(), larger, {"s0": 6})
    assert torch.equal(found["both"][0], torch.ones(6, 4))
    assert torch.equal(found["both"][1], ids[:, :6])
    assert (found["rows"], found["sum"]) == (6, torch.tensor(7.0))


def test_gaps() -> None:
    assert not has_gaps({"a": (torch.ones(2), torch.ones(2, dtype=torch.int64)), "b": 3})
    assert has_gaps([torch.tensor([1.0, torch.nan])])
