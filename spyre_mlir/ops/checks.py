"""Operators that stop a call: assertions of the model, and those of operators, as steps of the host.

Nothing reads their results, so calls of them are neither dropped nor merged.
"""

from __future__ import annotations

HOLDS = "host::holds"
SUCCEEDED = "host::linalg_succeeded"
CHECKS = frozenset({HOLDS, SUCCEEDED})


def is_check(overload: str) -> bool:
    """Return whether a call only checks something.

    Args:
        overload: ``.default`` dropped, with its namespace unless that is aten.
    """
    return overload in CHECKS


__all__ = ["CHECKS", "HOLDS", "SUCCEEDED", "is_check"]
