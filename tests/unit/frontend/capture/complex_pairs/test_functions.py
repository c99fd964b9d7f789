"""Functions of complex numbers on parts against eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.unit.frontend.capture.complex_pairs.paired import agrees, edges, finite

NAMES = (
    *("abs", "angle", "exp", "log", "log2", "log10", "sqrt", "rsqrt", "sinh", "cosh", "tanh", "sin", "cos", "tan"),
    *("sigmoid", "sgn", "exp2", "isnan", "isinf", "isfinite", "logical_not", "square"),
)


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_eager(name: str) -> None:
    agrees(getattr(torch, name), finite(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["abs", "angle", "isnan", "isinf", "isfinite", "logical_not"])
def test_edges_are_those_of_eager(name: str) -> None:
    agrees(lambda z: getattr(torch, name)(z), edges())


def test_roots_on_the_axes() -> None:
    agrees(torch.sqrt, torch.tensor([0j, 4, -4, 4j, -4j, complex(-4, -0.0), complex(-1e-8, 1e-12)]))


def test_a_saturated_tanh_is_one() -> None:
    agrees(torch.tanh, torch.tensor([30 + 1j, -60 - 2j, 88j, 200.0]), atol=1e-6)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 0.5, -0.5, -1, -2, 1.5, 7, 2 - 1j])
def test_powers(exponent: complex) -> None:
    agrees(lambda z: z**exponent, finite(), rtol=5e-5, atol=5e-5)


def test_powers_of_tensors() -> None:
    agrees(lambda z, w: (z**w, 2**w, (1 + 1j) ** w), finite(), finite().flip(0), rtol=5e-5, atol=5e-5)
    agrees(lambda z, w: z**w, torch.tensor([0j, 0j, 2j]), torch.tensor([0j, 2 + 0j, 0j]))


def test_polar_and_silu() -> None:
    agrees(lambda z: torch.polar(z.abs(), z.angle()), finite())
    agrees(lambda z: z * torch.sigmoid(z), finite())


def test_norms_and_truth() -> None:
    z = finite().reshape(4, 6) * torch.tensor([0, 1, 0, 1, 1, 0])
    cases: list[Callable[..., Any]] = [
        lambda z: (torch.linalg.vector_norm(z), torch.linalg.vector_norm(z, 1, dim=1), z.norm()),
        lambda z: (z.any(), z.any(1), z.all(0), z.all(), torch.count_nonzero(z, 1)),
        lambda z: (torch.logical_and(z, z.real), torch.logical_xor(z, z.T.reshape(4, 6)), z.bool()),
    ]
    for case in cases:
        agrees(case, z)


def test_exponentials_of_infinities_that_point_somewhere() -> None:
    z = edges()
    agrees(torch.exp, z[z.imag.isfinite() | (z.real == -torch.inf)])
