"""Moves, sums, choices and fillings of complex tensors against eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as f

from spyre_mlir.frontend.capture.complex_pairs.by_parts import is_by_parts
from tests.unit.frontend.capture.complex_pairs.paired import agrees, finite, targets

Z = finite().reshape(4, 6)
ROWS = torch.tensor([2, 0])
WHERE = torch.tensor([[0, 3, 1, 1, 2, 0]])
CASES: dict[str, Callable[..., Any]] = {
    "views": lambda z: (z.T.reshape(3, 8), z.view(2, 12), z[None].squeeze(0), z.permute(1, 0), z[1:, ::2], z[2]),
    "joins": lambda z: (torch.cat([z, z.conj(), z.real]), torch.stack([z, z * 1j], 1), torch.cat([z.imag, z])),
    "splits": lambda z: (*z.unbind(0), *z.split(4, 1), *torch.tensor_split(z, 3, 1)),
    "copies": lambda z: (z.clone(), z.contiguous(), z.repeat(2, 1), z.expand(2, 4, 6), z.flip(1), z.roll(2, 0)),
    "parts of a matrix": lambda z: (z.tril(), z.triu(1), z.diagonal(), torch.diag_embed(z[0]), z.trace()),
    "indices": lambda z: (z[ROWS], z.index_select(0, ROWS), z.gather(0, WHERE), z[:, ROWS]),
    "writes": lambda z: (
        z.scatter(0, WHERE, z[:1] * 2), z.scatter_add(0, WHERE, z[:1]), z.index_copy(0, ROWS, z[:2]),
        z.index_fill(0, ROWS, 1), torch.select_scatter(z, z[0], 0, 3), z.index_put((ROWS,), z[:2]),
    ),
    "choices": lambda z: (
        torch.where(z.real > 0, z, 1j), torch.where(z.real > 0, z, z.real), z.masked_fill(z.imag > 0, 2 - 1j),
        torch.where(z.real > 0, 1 + 1j, z), z.masked_fill(z.imag > 0, 3),
    ),
    "fillings": lambda z: (
        z + torch.ones(6, dtype=torch.complex64), torch.full_like(z, 2 + 1j), torch.ones_like(z), torch.zeros_like(z),
        torch.full((2, 3), 1j), z.new_ones(2), torch.ones_like(z.real, dtype=torch.complex64), z.new_full((3,), 2j),
    ),
    "sums": lambda z: (z.sum(), z.sum(0), z.mean(1, keepdim=True), z.cumsum(1), z.mean()),
    "padding": lambda z: (f.pad(z, (1, 2), value=3.0), f.pad(z[None], (2, 1), mode="reflect")),
    "types": lambda z: (z.real.to(z.dtype), z.to(torch.complex128), torch.arange(3).to(z.dtype), z.bool()),
    "copied views": lambda z: (
        torch.view_copy(z, [2, 12]), torch.permute_copy(z, [1, 0]), torch.diagonal_copy(z),
    ),
    "numbers": lambda z: (z * torch.scalar_tensor(3, dtype=z.dtype), torch.scalar_tensor(2 - 1j, dtype=z.dtype)),
    "sums at an index": lambda z: (z.index_add(0, ROWS, z[:2]), z.index_add(0, ROWS, z[:2].conj(), alpha=2)),
    "memory": lambda z: z.clone().mul_(2j).sub_(z.conj()),
    "writes to a part": lambda z: _scaled_real(z.clone()),
}  # fmt: skip


def _scaled_real(z: torch.Tensor) -> torch.Tensor:
    z.real.mul_(2)
    z[0].imag.zero_()
    return z


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_eager(name: str) -> None:
    agrees(CASES[name], Z)


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_a_conversion_to_real_numbers_drops_the_imaginary_part() -> None:
    agrees(lambda z: z.to(torch.float32), Z)
    agrees(lambda z: z.to(torch.float64), Z)


def test_a_part_is_no_part_of_a_reduction_of_magnitudes() -> None:
    assert is_by_parts(torch.ops.aten.cat.default)
    assert not is_by_parts(torch.ops.aten.scatter.reduce)
    assert not is_by_parts(torch.ops.aten.as_strided.default)


def test_a_view_of_a_part_costs_no_copy() -> None:
    assert "aten.clone.default" not in targets(lambda z: (z * 2).view(2, 12), Z)
