"""Comparisons and arithmetic of truth values, by choices: the device compares and adds numbers only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spyre_mlir.ops.build import Build


def negated(b: Build, truth: Any) -> Any:
    """Not, by a choice: comparisons take no truth values."""
    return (not truth) if isinstance(truth, bool) else b.call("where.self", truth, False, True)


# Comparisons of truth values by a choice: arith compares numbers only.
_ON_TRUTH: dict[str, Callable[[Build, Any, Any], Any]] = {
    "eq": lambda b, x, y: b.call("where.self", x, y, negated(b, y)),
    "ne": lambda b, x, y: b.call("where.self", x, negated(b, y), y),
    "lt": lambda b, x, y: b.call("where.self", x, False, y),
    "le": lambda b, x, y: b.call("where.self", x, y, True),
    "gt": lambda b, x, y: b.call("where.self", x, negated(b, y), False),
    "ge": lambda b, x, y: b.call("where.self", x, True, negated(b, y)),
    "maximum": lambda b, x, y: b.call("where.self", x, True, y),
    "minimum": lambda b, x, y: b.call("where.self", x, y, False),
    "mul": lambda b, x, y: b.call("where.self", x, y, False),
}


def on_truth(name: str) -> Callable[..., Any]:
    """The rewrite of an entry that takes numbers, for two operands that hold truth values."""
    rule = _ON_TRUTH[name]

    def rewrite(b: Build, self: Any, other: Any) -> Any:
        if not (b.is_bool(self) and b.is_bool(other)):
            return None
        return rule(b, b.full((), self, "i1") if isinstance(self, bool) else self, other)

    return rewrite
