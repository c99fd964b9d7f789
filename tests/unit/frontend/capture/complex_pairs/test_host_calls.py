"""Operators without a rule on pairs: the host calls torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.unit.frontend.capture.complex_pairs.paired import agrees, finite, rewritten, targets

Z = finite(16).reshape(4, 4)


@pytest.mark.parametrize(
    "function",
    [
        lambda z: torch.linalg.inv(z + 5 * torch.eye(4)) * 2,
        lambda z: torch.linalg.eigh(z @ z.mH)[0] + 1,  # a real result beside a complex one
        lambda z: (lambda values, vectors: vectors * values @ vectors.mH)(*torch.linalg.eigh(z @ z.mH)),
        lambda z: torch.linalg.solve(z + 5 * torch.eye(4), z.real.to(z.dtype)),
        lambda z: z.cumprod(0, dtype=torch.complex128),
        lambda z: torch.logsumexp(z, (0, 1)),
        lambda z: (z.acos() + z.real, z.sinc()),
    ],
)
def test_results_are_those_of_eager(function: Callable[..., Any]) -> None:
    agrees(function, Z)


def test_the_operator_and_its_numbers_stand_in_the_call() -> None:
    program, _ = rewritten(lambda z: z.cumprod(1), Z)
    (call,) = [node for node in program.graph.nodes if "on_complex" in str(node.target)]
    assert call.args[1:] == ("aten.cumprod.default", "{'self': {'ComplexAt': [0, 1]}, 'dim': 1}")


def test_operators_with_a_rule_stay_on_the_device() -> None:
    assert not [name for name in targets(lambda z: (z * z).exp().sum(), Z) if "on_complex" in name]


@pytest.mark.parametrize(
    "function", [lambda z: z + torch.randn(4, 4, dtype=torch.complex64), lambda z: torch.randn_like(z) * z]
)
def test_random_numbers_are_refused(function: Callable[..., Any]) -> None:
    """They come in an order that the program says."""
    _, refused = rewritten(function, Z)
    assert [finding.reason for finding in refused] == ["it has no form for complex numbers (torch.complex64)"]
