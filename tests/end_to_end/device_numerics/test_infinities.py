"""Masks made of infinities in device numerics, where there is no infinity."""

from __future__ import annotations

import torch

import spyre_mlir

MASK = torch.tensor([[0.0, float("-inf"), 0.0], [0.0, 0.0, float("-inf")]])


class MaskedSoftmax(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + MASK, -1)


class SelectedSoftmax(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.where(MASK < 0, float("-inf"), x), -1)


def test_an_additive_mask() -> None:
    x = torch.randn(2, 3)
    got = spyre_mlir.compile(MaskedSoftmax(), (x,), numerics="device")(x)
    torch.testing.assert_close(got, MaskedSoftmax()(x), rtol=5e-3, atol=1e-3)


def test_a_selected_infinity() -> None:
    x = torch.randn(2, 3)
    got = spyre_mlir.compile(SelectedSoftmax(), (x,), numerics="device")(x)
    torch.testing.assert_close(got, SelectedSoftmax()(x), rtol=5e-3, atol=1e-3)


def test_a_constant_row_under_bert_s_epsilon() -> None:
    """1e-12 is 0 in DL16: without a floor the row would be 0 times infinity."""
    norm = torch.nn.LayerNorm(64, eps=1e-12)
    x = torch.full((2, 64), 3.0)
    assert spyre_mlir.compile(norm, (x,))(x).abs().max() == 0
