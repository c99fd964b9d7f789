"""Other plans for a sequence of kernels: the quickest with each division of one of them."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from spyre_mlir.planning.divisions import Division, Kernel, Prices, divide_within


@dataclass(frozen=True)
class Alternative:
    """A plan in which one kernel has a given division.

    Attributes:
        choice: the candidate of this kernel.
        plan: of the whole sequence; its own choice of this kernel is `choice`, too.
    """

    choice: int
    plan: Division


def alternatives(
    kernels: Sequence[Kernel], number: int, prices: Prices, count: int, chosen: int | None = None
) -> list[Alternative]:
    """Return the quickest plans that differ in the division of one kernel, the quickest first.

    Args:
        kernels: the sequence.
        number: of the kernel.
        prices: of the profile.
        count: how many to return at most.
        chosen: a candidate that is left out.
    """
    kernel = kernels[number]
    everything = frozenset(range(len(kernel.operands)))
    # Those that are quickest alone first, so that most of the others end early.
    order = sorted(range(len(kernel.candidates)), key=lambda c: prices.floor_us(kernel.candidates[c], everything))
    found: list[Alternative] = []
    for choice in order:
        if choice == chosen:
            continue
        most_us = inf if len(found) < count else found[-1].plan.us
        only = replace(kernel, candidates=(kernel.candidates[choice],))
        plan = divide_within([*kernels[:number], only, *kernels[number + 1 :]], most_us, prices)
        if plan is not None:
            choices = (*plan.chosen[:number], choice, *plan.chosen[number + 1 :])
            insort(found, Alternative(choice, replace(plan, chosen=choices)), key=lambda a: (a.plan.us, a.choice))
            del found[count:]
    return found


__all__ = ["Alternative", "alternatives"]
