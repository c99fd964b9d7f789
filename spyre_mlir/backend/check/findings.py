"""Findings of one check, as they print."""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.dialects.superdsc.check import Finding, Severity
from spyre_mlir.sizes import counted
from spyre_mlir.text.notebook import ShownAsText


class Findings(ShownAsText, tuple[Finding, ...]):
    """Findings of a check, errors first: a tuple that prints as a line per finding and their number."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join([*map(str, self), number_of_findings(self)])


def number_of_findings(findings: Sequence[Finding]) -> str:
    """Return how many errors and how many warnings there are, as a line."""
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    return f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
