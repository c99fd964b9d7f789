"""Calls on complex numbers that the host makes, from real and imaginary parts.

Decision: docs/decisions/0144-complex-numbers-are-pairs.md
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from spyre_mlir.frontend.spelled_calls import meant, spelled_operator

Tensor = torch.Tensor


def on_complex(tensors: list[Tensor], operator: str, arguments: str) -> list[Tensor]:
    """Call an operator of torch.

    Args:
        tensors: real tensors, and parts of complex ones.
        operator: as torch spells it, ``aten.linalg_inv.default``.
        arguments: as `spelled` gives them.

    Returns:
        its tensors, two for each that is complex.
    """
    made = spelled_operator(operator)(**meant(arguments, tensors))
    several: Sequence[Tensor] = [made] if isinstance(made, torch.Tensor) else made
    return [part for value in several for part in _parts(value)]


def _parts(value: Tensor) -> list[Tensor]:
    """A real tensor, or both parts of a complex one, each with memory of its own."""
    if not value.is_complex():
        return [value.clone(memory_format=torch.contiguous_format)]
    whole = torch.view_as_real(value.resolve_conj())
    return [whole.select(-1, part).clone(memory_format=torch.contiguous_format) for part in (0, 1)]


__all__ = ["on_complex"]
