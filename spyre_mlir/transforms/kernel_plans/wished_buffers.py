"""Buffers that a plan has in the scratchpads if any plan can: widened weights.

Decision: docs/decisions/0156-narrow-weights-stay-narrow.md
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace
from math import inf
from typing import Self

from xdsl.ir import SSAValue

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.hints import HintError
from spyre_mlir.planning.divisions import Division, Kernel, Prices, divide_within

# The time that a loop is taken to save which keeps such a buffer out of device memory: more than any loop costs.
STORED_WIDE_US = 1e6


@dataclass
class WideWeights:
    """Widened weights of the kernels of a block, by where a plan without loops has them.

    Attributes:
        stored: by kernel, those that it has in device memory, if there are any.
        held: those that the plan has in the scratchpads.
    """

    stored: dict[kernel.KernelOp, frozenset[SSAValue]] = field(
        default_factory=dict[kernel.KernelOp, frozenset[SSAValue]]
    )
    held: set[SSAValue] = field(default_factory=set[SSAValue])

    @classmethod
    def of(
        cls, ops: Sequence[kernel.KernelOp], kernels: Sequence[Kernel], buffers: Sequence[SSAValue], flat: Division
    ) -> Self:
        """Return those of kernels by their division without loops."""
        stored = [frozenset([buffers[b] for b in k.wished - flat.local]) for k in kernels]
        held = {buffers[b] for k in kernels for b in k.wished & flat.local}
        return cls({op: values for op, values in zip(ops, stored, strict=True) if values}, held)

    def us(self, ops: Iterable[kernel.KernelOp]) -> float:
        """Return the time that kernels are taken to need for those in device memory."""
        return sum([len(self.stored.get(op, ())) for op in ops]) * STORED_WIDE_US

    def saved_us(
        self, ops: Sequence[kernel.KernelOp], operands: Sequence[Sequence[SSAValue]], inside: Set[SSAValue]
    ) -> float | None:
        """Return the time that a loop saves by those that it has in the scratchpads, and a plan without it has not.

        Args:
            ops: the kernels in the loop.
            operands: of each of them, the result last.
            inside: buffers that only they use.

        None if the loop has only one of the kernels that write and read one: no other loop could then have it there.
        """
        if not self.stored and not self.held:
            return 0.0
        outside = self.held.union(*self.stored.values()) - inside
        if outside and not all(map(outside.isdisjoint, operands)):
            return None
        return sum([len(self.stored[op] & inside) for op in ops if op in self.stored]) * STORED_WIDE_US


def not_wished(found: Kernel) -> Kernel:
    """Return a kernel that asks for none of them."""
    return replace(found, required=found.required - found.wished, wished=frozenset())


def without_impossible(kernels: Sequence[Kernel], prices: Prices) -> list[Kernel]:
    """Return kernels that no longer ask for the widened weights that no division keeps in the scratchpads."""
    users: dict[int, list[Kernel]] = {}
    for found in kernels:
        for buffer in dict.fromkeys(found.operands):
            users.setdefault(buffer, []).append(found)
    wished = {b for k in kernels for b in k.wished}
    impossible = {b for b in wished if not _seen_alike(b, users[b], prices.spec.lx_usable_bytes)}
    if not impossible:
        return list(kernels)
    return [replace(k, required=k.required - (k.wished & impossible), wished=k.wished - impossible) for k in kernels]


def _seen_alike(buffer: int, users: Sequence[Kernel], room: int) -> bool:
    """Whether all kernels that use a buffer can see the same slices of it, and a scratchpad has room for one."""
    common: set[Hashable] | None = None
    for user in users:
        places = [n for n, b in enumerate(user.operands) if b == buffer]
        seen = set[Hashable]()
        for candidate in user.candidates:
            views = {candidate.views[n] for n in places}
            if len(views) == 1 and None not in views and candidate.sizes[places[0]] <= room:
                seen |= views
        common = seen if common is None else common & seen
    return bool(common)


def divide_or_refuse(ops: Sequence[kernel.KernelOp], kernels: Sequence[Kernel], prices: Prices) -> Division:
    """Return the quickest division that the search finds.

    Raises:
        HintError: none has all the buffers in the scratchpads that hints ask for.
    """
    kernels = without_impossible(kernels, prices)
    found = divide_within(kernels, inf, prices)
    if found is None and any(k.wished for k in kernels):
        found = divide_within([not_wished(k) for k in kernels], inf, prices)
    if found is not None:
        return found
    asked = {b: op for op, k in zip(ops, kernels, strict=True) for b in k.required if k.operands[-1] == b}
    alone = (b for b in asked if divide_within([_asking(k, b) for k in kernels], inf, prices) is None)
    number = next(alone, None)
    op = asked[next(iter(asked)) if number is None else number]
    together = ", together with the others that hints ask for" if number is None else ""
    raise HintError(
        f"a hint asks for a buffer in LX, and no plan keeps it there{together}",
        where=placed(op.function_name, op.location),
        hint="its kernels must be able to see the same slices of it, and these must fit: divide them so, or place=hbm",
    )


def _asking(found: Kernel, buffer: int) -> Kernel:
    return replace(found, required=found.required & {buffer})


__all__ = ["STORED_WIDE_US", "WideWeights", "divide_or_refuse", "not_wished", "without_impossible"]
