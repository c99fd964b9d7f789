"""Sizes that data decides, and that a program says are equal: one symbol stands for all of them.

Torch gives each call that makes a size a symbol of its own, also where two calls read the same mask. Where their
results meet, as in `x[mask] + y[mask]`, it notes that the sizes are equal, and the program checks it in each call.

Used, private: `ShapeEnv.deferred_runtime_asserts`.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from typing import Any, cast

import torch

from spyre_mlir.frontend.torch_private import expression_of


def size_expression(size: torch.SymInt) -> Any:
    """Return the expression that a size is, with one symbol for those that are equal; a number if it is known."""
    expression = expression_of(size)
    if not expression.free_symbols:
        return expression
    checks = _equalities(cast(Any, size).node.shape_env)
    for left, right in checks:
        if right.is_number and left == expression:  # parts of a tensor that was split
            return right
    equal = _equal(checks)
    return expression.subs(equal) if equal else expression


def _equalities(noted: Any) -> list[tuple[Any, Any]]:
    """Both sides of the equations that a program checks, a number on the right."""
    checks = [check.expr for of_symbol in noted.deferred_runtime_asserts.values() for check in of_symbol]
    sides = [(check.lhs, check.rhs) for check in checks if str(getattr(check, "rel_op", "")) == "=="]
    return [(right, left) if left.is_number else (left, right) for left, right in sides]


def _equal(checks: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """The symbols that have another one in their place: of equal ones the first by its name."""
    found = dict[Any, Any]()
    for left, right in checks:
        if left.is_Symbol and right.is_Symbol:
            first, other = sorted((_first(found, left), _first(found, right)), key=_order)
            if first != other:
                found[other] = first
    return {symbol: _first(found, symbol) for symbol in found}


def _first(found: dict[Any, Any], symbol: Any) -> Any:
    while symbol in found:
        symbol = found[symbol]
    return symbol


def _order(symbol: Any) -> tuple[int, str]:
    """Shorter names first: `u10` is behind `u9`."""
    return len(str(symbol)), str(symbol)


__all__ = ["size_expression"]
