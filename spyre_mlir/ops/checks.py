"""Operators that stop a call, or print: assertions of the model, those of operators, and prints, as steps of the host.

Nothing reads their results, so calls of them are neither dropped nor merged.
"""

from __future__ import annotations

HOLDS = "host::holds"
SUCCEEDED = "host::linalg_succeeded"
PRINTED = "host::printed"
COVERED = "host::windows_cover"
CHECKS = frozenset({COVERED, HOLDS, PRINTED, SUCCEEDED})


def is_check(overload: str) -> bool:
    """Return whether a call only checks or prints something.

    Args:
        overload: ``.default`` dropped, with its namespace unless that is aten.
    """
    return overload in CHECKS


__all__ = ["CHECKS", "COVERED", "HOLDS", "PRINTED", "SUCCEEDED", "is_check"]
