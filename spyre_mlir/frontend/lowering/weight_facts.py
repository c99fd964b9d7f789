"""Facts of the numbers of integer weights that decide how a program is lowered.

A program looks at them again at every call, and refuses a weight of which they no longer hold.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

import torch

from spyre_mlir.frontend.lowering.zero_points import is_zero
from spyre_mlir.hw.few_bits import NIBBLE, Words


def few_bits(value: torch.Tensor | None) -> int | None:
    """Return the bits that the numbers of a weight of 8-bit integers need, None if they need all or are not known."""
    if value is None or value.dtype is not torch.int8 or value.is_meta or value.dim() < 2 or not value.numel():
        return None
    low, high = (int(n) for n in torch.aminmax(value))
    return NIBBLE if Words(NIBBLE).holds(low, high) else None


def weight_facts(value: torch.Tensor) -> str:
    """Return a key that differs where the numbers of a weight may give another program."""
    if value.is_floating_point() or value.is_complex():
        return ""
    return "0" if is_zero(value) else str(few_bits(value) or "")


__all__ = ["few_bits", "weight_facts"]
