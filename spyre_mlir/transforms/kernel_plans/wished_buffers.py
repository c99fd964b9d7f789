"""Buffers that a plan has in the scratchpads if any plan can: widened weights.

Decision: docs/decisions/0156-narrow-weights-stay-narrow.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from spyre_mlir.planning.divisions import Kernel, Prices, divide_within

# The time that a loop is taken to save which keeps such a buffer out of device memory: more than any loop costs.
STORED_WIDE_US = 1e6


def not_wished(found: Kernel) -> Kernel:
    """Return a kernel that asks for none of them."""
    return replace(found, required=found.required - found.wished, wished=frozenset())


def without_impossible(kernels: Sequence[Kernel], prices: Prices) -> list[Kernel]:
    """Return kernels that no longer ask for the widened weights that no division keeps in the scratchpads."""
    found = list(kernels)
    for buffer in sorted({b for k in kernels for b in k.wished}):
        at = [n for n, k in enumerate(kernels) if buffer in k.operands]
        alone = [replace(k, required=k.required & {buffer}) for k in kernels[at[0] : at[-1] + 1]]
        if divide_within(alone, inf, prices) is None:
            found = [replace(k, required=k.required - {buffer}, wished=k.wished - {buffer}) for k in found]
    return found


__all__ = ["STORED_WIDE_US", "not_wished", "without_impossible"]
