"""Copies of buffers that kernels write to device memory, for several readers that see the same slices of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from spyre_mlir.hw.cost import CostKind
from spyre_mlir.planning.divided_kernels import OUTSIDE, Kernel, Prices
from spyre_mlir.planning.divisions import Division, divide_within

MOST_HELD = 4  # buffers in the scratchpads that are tried in device memory


def with_copies(kernels: Sequence[Kernel], plan: Division, prices: Prices) -> Division:
    """Return a plan, or a quicker one in which some buffers are in device memory and copied for their readers.

    Products read a buffer while they multiply, and gain nothing by a copy; a single reader gains nothing, either.

    Args:
        kernels: in their order.
        plan: the quickest without such copies.
        prices: predicted times.
    """
    several = _read_by_several(kernels)
    stored = [b for b in several if b not in plan.local]
    best, copied = plan, list[int]()
    if stored and (found := _quicker(kernels, stored, plan, prices)) is not None:
        best, copied = found, stored
    held = [b for b in several if b in plan.local and (_is_made_by_product(kernels, b) or _is_gathered(kernels, b))]
    for buffer in held[:MOST_HELD]:
        if (found := _quicker(kernels, [*copied, buffer], best, prices)) is not None:
            best, copied = found, [*copied, buffer]
    return best


def _quicker(kernels: Sequence[Kernel], stored: Collection[int], plan: Division, prices: Prices) -> Division | None:
    """A quicker plan with buffers in device memory; the copies of them are no buffers in its scratchpads."""
    found = divide_within([_reading(kernel, stored) for kernel in kernels], plan.us, prices)
    return replace(found, local=found.local.difference(stored)) if found is not None and found.us < plan.us else None


def _reading(kernel: Kernel, stored: Collection[int]) -> Kernel:
    """A kernel that writes buffers to device memory, and reads them from there or from a copy."""
    copies = set[int]() if _is_product(kernel) else {n for n, b in enumerate(kernel.operands[:-1]) if b in stored}
    operands = [b if n in copies or b not in stored else OUTSIDE for n, b in enumerate(kernel.operands)]
    return replace(kernel, operands=tuple(operands), copied=kernel.copied | copies)


def _read_by_several(kernels: Sequence[Kernel]) -> list[int]:
    """Buffers that one kernel writes, and several without a product read; no plan has to hold them."""
    written = [k.operands[-1] for k in kernels]
    found = list[int]()
    for number, buffer in enumerate(written):
        if buffer == OUTSIDE or written.count(buffer) > 1 or any(buffer in k.required | k.throughout for k in kernels):
            continue
        readers = [k for k in kernels[number + 1 :] if buffer in k.operands]
        if sum(not _is_product(k) for k in readers) > 1:
            found.append(buffer)
    return found


def _is_made_by_product(kernels: Sequence[Kernel], buffer: int) -> bool:
    return any(_is_product(k) for k in kernels if k.operands[-1] == buffer)


def _is_gathered(kernels: Sequence[Kernel], buffer: int) -> bool:
    return any(k.candidates[0].work.kind is CostKind.GATHER for k in kernels if k.operands[-1] == buffer)


def _is_product(kernel: Kernel) -> bool:
    return kernel.candidates[0].work.product is not None


__all__ = ["with_copies"]
