"""Reductions of partly filled sticks: what stands in for padding wins over no number, however far out."""

from __future__ import annotations

from typing import Literal

import pytest
import torch

import spyre_mlir


class Extremes(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.amax(-1), x.amin(-1), x.amax(0), x.amin(0)


@pytest.mark.parametrize("numerics", ["exact", "device"])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_beyond_half(numerics: Literal["exact", "device"], sign: int) -> None:
    """70 columns are two sticks: all elements are beyond 65504, and numbers of DL16."""
    x = sign * (2.0 ** (17 + torch.arange(3 * 70) % 15)).reshape(3, 70)
    compiled = spyre_mlir.compile(Extremes(), (x,), numerics=numerics)
    for got, wanted in zip(compiled(x), Extremes()(x), strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("extent", [3, 33, 70])
def test_whole_numbers_beyond_half(extent: int, sign: int) -> None:
    x = sign * (2**24 - 1 - 7 * torch.arange(2 * extent)).reshape(2, extent)
    compiled = spyre_mlir.compile(Extremes(), (x,), numerics="device")
    for got, wanted in zip(compiled(x), Extremes()(x), strict=True):
        assert torch.equal(got, wanted)
