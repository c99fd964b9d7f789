"""Estimates of what a kernel, and those that read its result, lose by the slices in which a buffer is held for it.

The search for divisions keeps the combinations that look quickest. A buffer in slices that suit no later kernel looks
quick until that kernel is reached. The kernels are gone through from the last to the first: a division loses what it
takes longer than the kernel's quickest one, and what the slices of its result cost their readers, or, if that is less,
the way of the result through device memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf

from spyre_mlir.planning.divided_kernels import OUTSIDE, Kernel, Prices

Reader = tuple[int, Mapping[Hashable | None, float]]
"""The number of a kernel, and by the slices of a buffer the microseconds that it loses."""


def lost_later(kernels: Sequence[Kernel], prices: Prices) -> Mapping[int, list[Reader]]:
    """Return by buffer the kernels that use it, the last first, with what each loses by the buffer's slices.

    Args:
        kernels: in their order.
        prices: predicted times.
    """
    found: dict[int, list[Reader]] = {}
    read_us: dict[int, float] = {}
    for number, kernel in reversed(list(enumerate(kernels))):
        held = [n for n, b in enumerate(kernel.operands) if b != OUTSIDE]
        within, result = frozenset(held), kernel.operands[-1]
        alone = frozenset(held[:-1]) if result in found else within
        times = list(prices.floors_us(kernel.candidates, within))
        if result in found:
            outside = prices.floors_us(kernel.candidates, alone)
            for choice, (candidate, apart_us) in enumerate(zip(kernel.candidates, outside, strict=True)):
                us, view = times[choice], candidate.views[-1]
                kept = max([slower.get(view, inf) for _, slower in found[result]])
                times[choice] = us + min(kept, apart_us - us + read_us[result])
        least, best = min(zip(times, kernel.candidates, strict=True), key=lambda pair: pair[0])
        losses = [us - least for us in times]
        for place in held:
            buffer = kernel.operands[place]
            if place in kernel.copied:
                continue
            slower: dict[Hashable | None, float] = {}
            for candidate, lost in zip(kernel.candidates, losses, strict=True):
                view = candidate.views[place]
                if lost < slower.get(view, inf):
                    slower[view] = lost
            found.setdefault(buffer, []).append((number, slower))
            apart = prices.floor_us(best, within - {place}) - prices.floor_us(best, within)
            read_us[buffer] = read_us.get(buffer, 0.0) + apart
    return found


__all__ = ["Reader", "lost_later"]
