"""Functions of torch that give a truth value of Python: traced as a tensor whose number is read at the end.

`torch.export` has no form for `torch.equal`, whose result is none of its tensors. A number read from a tensor it has,
and a program that returns one runs in parts, with the host between.

Decision: docs/decisions/0149-programs-are-divided-where-data-decides-sizes.md
"""

from __future__ import annotations

from typing import Any

import torch


def equal(input: torch.Tensor, other: torch.Tensor) -> Any:
    """Return whether two tensors have one shape, and equal elements."""
    return input.shape == other.shape and input.eq(other).all().item()


def allclose(
    input: torch.Tensor, other: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:
    """Return whether all elements of two tensors, which broadcast, are close."""
    return torch.isclose(input, other, rtol=rtol, atol=atol, equal_nan=equal_nan).all().item()


def is_nonzero(input: torch.Tensor) -> Any:
    """Return whether the only element of a tensor is not 0; None for other tensors, which torch refuses."""
    return input.reshape(()).ne(0).item() if input.numel() == 1 else None


__all__ = ["allclose", "equal", "is_nonzero"]
