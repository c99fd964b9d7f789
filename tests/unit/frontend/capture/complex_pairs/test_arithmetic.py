"""Arithmetic on parts against eager torch; products of infinities too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.unit.frontend.capture.complex_pairs.paired import agrees, edges, finite, paired

Z, W = finite(), finite().flip(0) - 0.3j
REAL = torch.linspace(-2, 2, 24)
SPECIAL = [x.flatten() for x in torch.meshgrid(edges(), edges(), indexing="ij")]

FINITE: dict[str, Callable[..., Any]] = {
    "sums": lambda z, w: z + w + 2 + 1j - (0.5 - w) + torch.add(z, w, alpha=2) - torch.sub(z, w, alpha=0.5j),
    "product": lambda z, w: z * w * (1 - 2j) * 3,
    "quotient": lambda z, w: z / w + 1 / z + z / 2 + w / 2j + 3 / w,
    "conjugates": lambda z, w: z.conj() * w + torch.conj_physical(z) - w.conj().conj(),
    "lerp": lambda z, w: (torch.lerp(z, w, 0.25), torch.lerp(z, w, w)),
    "addcmul": lambda z, w: torch.addcmul(z, z, w, value=2),
    "comparison": lambda z, w: (z == z.conj(), z != w, z == 0.05, torch.ne(w, 1 + 2j)),
    "product of all": lambda z, w: (z.reshape(8, 3).prod(1), w.reshape(8, 3).prod(0, keepdim=True), (z * 0.9).prod()),
    "spread": lambda z, w: (z.var(), torch.var(w.reshape(4, 6), 1, correction=0), z.std()),
    "parts": lambda z, w: (torch.complex(z.real, w.imag), z.real, w.imag, torch.view_as_real(z + w)),
}


@pytest.mark.parametrize("name", FINITE)
def test_agrees_with_eager(name: str) -> None:
    agrees(FINITE[name], Z, W)


def test_real_operands_take_part() -> None:
    agrees(lambda z, x: (z * x, x / z, z / x, x - z, z == x), Z, REAL + 0.1)
    agrees(lambda z, n: z * n + n, Z, torch.arange(24))
    agrees(lambda z, x: z[:, None] + x, Z, REAL)  # the imaginary part is broadcast too


def test_doubles_beside_singles_give_doubles() -> None:
    agrees(lambda z, x: (z * x, z + x, z - x), Z, REAL.double())


@pytest.mark.parametrize(
    "function", [lambda z, w: z * w, lambda z, w: z * w.real, lambda z, w: z * 2.0 + w * 0, lambda z, _: z * 1j]
)
def test_products_of_infinities_are_those_of_eager(function: Callable[..., Any]) -> None:
    agrees(lambda z, w: torch.view_as_real(function(z, w)), *SPECIAL)


def test_quotients_neither_overflow_nor_lose_infinities() -> None:
    agrees(
        lambda z, w: z / w, torch.tensor([1e30 + 1e30j, 1e-30j, 1, 1]), torch.tensor([1e30 + 2e30j, 1e-30, 0, 1e-25j])
    )
    agrees(lambda z: z / complex(0, 0), torch.tensor([1 + 1j, 2, -1j]))


def test_a_sum_with_infinities_is_taken_part_by_part() -> None:
    got = paired(lambda z, w: z + w, torch.tensor([1 + 1j]), torch.tensor([complex(float("inf"), 2)]))
    assert got[0] == complex(float("inf"), 3)
