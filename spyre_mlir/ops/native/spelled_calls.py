"""Operators by which the host calls another one, by its name: on complex numbers from their parts, or on copies.

Decisions: docs/decisions/0144-complex-numbers-are-pairs.md, docs/decisions/0215-operators-that-write-run-on-copies.md
"""

from __future__ import annotations

from collections.abc import Mapping

ON_COMPLEX, ON_COPIES = "host::on_complex", "host::on_copies"
_REASONS: Mapping[str, str] = {
    ON_COMPLEX: "has no form for complex numbers on the device",
    ON_COPIES: "writes to its arguments, and has no form on the device",
}


def no_form(overload: str, operator: str) -> str:
    """Return why the host makes a call.

    Args:
        overload: `ON_COMPLEX` or `ON_COPIES`.
        operator: what it calls, as torch spells it, ``aten.linalg_inv.default``.
    """
    return f"{operator.removesuffix('.default')} {_REASONS[overload]}"


__all__ = ["ON_COMPLEX", "ON_COPIES", "no_form"]
