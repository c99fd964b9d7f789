"""Products of eight-bit integers, as layers with integer weights compute them: exact on the device."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir


class Product(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return torch._int_mm(left, right)


@pytest.mark.parametrize("numerics", ["device", "exact"])
@pytest.mark.parametrize("shared", [1, 70])
def test_every_number_is_right(shared: int, numerics: Literal["device", "exact"]) -> None:
    """Among them the largest sum that operands of this size give."""
    generator = torch.Generator().manual_seed(0)
    left = torch.randint(-128, 128, (18, shared), dtype=torch.int8, generator=generator)
    right = torch.randint(-128, 128, (shared, 24), dtype=torch.int8, generator=generator)
    left[0], right[:, 0] = -128, -128
    compiled = spyre_mlir.compile(Product(), (left, right), numerics=numerics, host_fallback="error")
    got = compiled(left, right)
    assert got.dtype is torch.int32
    assert got.tolist() == (left.numpy().astype(int) @ right.numpy().astype(int)).tolist()
