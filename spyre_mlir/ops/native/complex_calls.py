"""The operator by which the host calls another one on complex numbers, from their parts.

Decision: docs/decisions/0144-complex-numbers-are-pairs.md
"""

from __future__ import annotations

ON_COMPLEX = "host::on_complex"


def no_form(operator: str) -> str:
    """Return why the host makes a call.

    Args:
        operator: as torch spells it, ``aten.linalg_inv.default``.
    """
    return f"{operator.removesuffix('.default')} has no form for complex numbers on the device"


__all__ = ["ON_COMPLEX", "no_form"]
