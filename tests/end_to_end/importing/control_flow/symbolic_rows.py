"""Rows of which sizes are symbols, for programs with control flow: a weight, a count, and two calls."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.export import Dim

WEIGHT = torch.linspace(-0.5, 0.5, 36).reshape(6, 6)
SHAPES = (({0: Dim("rows", min=2, max=64)}, None),)


def rows(count: int) -> Tensor:
    """Rows of six features."""
    return torch.linspace(-1.0, 1.5, count * 6).reshape(count, 6)


N = torch.tensor(3)
FEW, MANY = (rows(4), N), (rows(9).flip(0) - 0.5, N - 2)
