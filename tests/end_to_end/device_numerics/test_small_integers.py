"""Products of eight-bit integers, as layers with integer weights compute them: exact on the device."""

from __future__ import annotations

from pathlib import Path
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


class Grouped(nn.Module):
    """A layer with 4-bit weights, a byte each, and a scale per group of 32, as torchao computes it."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(4)
        self.register_buffer("weight", torch.randint(-8, 8, (rows, columns), dtype=torch.int8, generator=draw))
        self.register_buffer("scale", torch.rand(rows, columns // 32, generator=draw).half())
        self.weight: Tensor
        self.scale: Tensor

    def wide(self) -> Tensor:
        rows, columns = self.weight.shape
        return (self.weight.half().reshape(rows, -1, 32) * self.scale[:, :, None]).reshape(rows, columns)

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.wide().t()


def test_a_bundle_has_four_bits_of_weights_that_need_no_more(tmp_path: Path) -> None:
    layer, x = Grouped(256, 512).eval(), torch.randn(2, 512, generator=torch.Generator().manual_seed(1)).half()
    compiled = spyre_mlir.compile(layer, (x,), host_fallback="error")
    wanted = x.double() @ (layer.weight.double() * layer.scale.double().repeat_interleave(32, 1)).t()
    got = compiled(x)
    assert float((got.double() - wanted).abs().max() / wanted.abs().max()) < 4e-3
    saved = compiled.save(tmp_path / "saved", host_weights=False)
    held = sum((saved / name).stat().st_size for name in ("data.safetensors", "weights.safetensors"))
    assert held < 0.30 * 2 * layer.weight.numel() + 2048, "headers take some hundred bytes"
    assert torch.equal(spyre_mlir.load(saved)(x), got)
