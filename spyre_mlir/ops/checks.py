"""Operators that stop a call, or print: assertions of the model, those of operators, and prints, as steps of the host.

Nothing reads their results, so calls of them are neither dropped nor merged.
"""

from __future__ import annotations

HOLDS = "host::holds"
SUCCEEDED = "host::linalg_succeeded"
PRINTED = "host::printed"
COVERED = "host::windows_cover"
REMEDY = "; try: "  # in the text of an assertion, before what the reader of an error can do
CHECKS = frozenset({COVERED, HOLDS, PRINTED, SUCCEEDED})


def is_check(overload: str) -> bool:
    """Return whether a call only checks or prints something.

    Args:
        overload: ``.default`` dropped, with its namespace unless that is aten.
    """
    return overload in CHECKS


def refusal_text(overload: str, text: str) -> tuple[str, str | None]:
    """Return the text for a refused call, with an alternative if one is known.

    Args:
        overload: of the call.
        text: of the error.
    """
    said, _, remedy = text.partition("\n")[0].partition(REMEDY)
    who = "an assertion of the model fails" if overload == HOLDS else f"torch refuses {overload}"
    return f"{who}: {said}", remedy or None


__all__ = ["CHECKS", "COVERED", "HOLDS", "PRINTED", "REMEDY", "SUCCEEDED", "is_check", "refusal_text"]
