"""The operator that stops a call if a condition does not hold: an assertion of the model, as a step of the host.

Nothing reads its result, so calls of it are neither dropped nor merged.
"""

from __future__ import annotations

CHECK = "host::holds"


def is_check(overload: str) -> bool:
    """Return whether a call only checks a condition.

    Args:
        overload: ``.default`` dropped, with its namespace unless that is aten.
    """
    return overload == CHECK


__all__ = ["CHECK", "is_check"]
