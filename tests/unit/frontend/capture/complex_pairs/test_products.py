"""Products of complex matrices, and layers, against eager torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as f

from tests.unit.frontend.capture.complex_pairs.paired import agrees, finite

A, B = finite().reshape(4, 6), finite(18).reshape(6, 3) - 0.5
VECTOR = finite(6) * 1j
CASES: dict[str, Callable[..., Any]] = {
    "matmul": lambda a, b, v: (a @ b, a.mH @ a, a @ v, torch.mv(a, v), torch.bmm(a[None], b[None])),
    "vectors": lambda a, b, v: (torch.dot(v, a[0]), torch.vdot(v, a[0]), torch.outer(v, b[0])),
    "addmm": lambda a, b, v: (torch.addmm(b[:4], a, b, beta=2j, alpha=0.5), torch.addmv(a[:, 0], a, v)),
    "nothing added": lambda a, b, v: torch.addmm(b[:4] * float("nan"), a, b, beta=0),
    "baddbmm": lambda a, b, v: torch.baddbmm(b[None, :4], a[None], b[None]),
    "linear": lambda a, b, v: (f.linear(a, b.T), f.linear(a, b.T, b[0])),
    "einsum": lambda a, b, v: torch.einsum("ij,jk,j->ik", a, b, v),
    "convolutions": lambda a, b, v: (
        f.conv1d(a[None], a[None, :, :2].transpose(0, 1).reshape(2, 4, 1), b[:2, 0]),
        f.conv2d(a[None, None], b[None, None, :2], stride=2, padding=1),
        f.conv1d(a[None], b[:4, None].expand(4, 4, 3), padding="same"),
        f.conv_transpose1d(a[None], b[None, :4].transpose(0, 1)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_eager(name: str) -> None:
    agrees(CASES[name], A, B, VECTOR, rtol=1e-4, atol=1e-5)
