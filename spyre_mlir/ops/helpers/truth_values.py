"""Comparisons and arithmetic of truth values, by choices: the device compares and adds numbers only."""

from __future__ import annotations

from collections.abc import Callable

from spyre_mlir.ops.build import Build
from spyre_mlir.ops.value import Value


def negated(truth: Value) -> Value | bool:
    """Not, by a choice: comparisons take no truth values."""
    return truth.where(False, True) if truth.number is None else not truth.number


# Comparisons of truth values by a choice: arith compares numbers only.
_ON_TRUTH: dict[str, Callable[[Value, Value], Value]] = {
    "eq": lambda x, y: x.where(y, negated(y)),
    "ne": lambda x, y: x.where(negated(y), y),
    "lt": lambda x, y: x.where(False, y),
    "le": lambda x, y: x.where(y, True),
    "gt": lambda x, y: x.where(negated(y), False),
    "ge": lambda x, y: x.where(True, negated(y)),
    "maximum": lambda x, y: x.where(True, y),
    "minimum": lambda x, y: x.where(y, False),
    "mul": lambda x, y: x.where(y, False),
}


def on_truth(name: str) -> Callable[..., Value | None]:
    """The rewrite of an entry that takes numbers, for two operands that hold truth values."""
    rule = _ON_TRUTH[name]

    def rewrite(b: Build, self: Value, other: Value) -> Value | None:
        if not (self.is_bool and other.is_bool):
            return None
        return rule(self if self.number is None else b.full((), self.number, "i1"), other)

    return rewrite
