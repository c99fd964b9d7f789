"""What a check found: a table per file for people on a terminal, one line per finding for pipes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spyre_mlir.backend.check import Finding


def print_findings(findings: Sequence[Finding]) -> None:
    """Writes findings to stdout, and how many there are of each kind."""
    from spyre_mlir.backend.check import Severity

    if sys.stdout.isatty():
        _print_tables(findings)
    else:
        sys.stdout.write("".join(f"{finding}\n" for finding in findings))
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = len(findings) - errors
    print(f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}")


def _print_tables(findings: Sequence[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from spyre_mlir.backend.check import Severity

    console = Console(file=sys.stdout)
    for file in dict.fromkeys(finding.file for finding in findings):
        console.print(Text(file, style="bold"))
        table = Table("")
        for name in ("rule", "place", "expected", "got", "try"):
            table.add_column(name, overflow="fold")
        for one in (finding for finding in findings if finding.file == file):
            kind = Text(one.severity.value, style="red" if one.severity is Severity.ERROR else "yellow")
            table.add_row(kind, *map(Text, (one.rule, one.path, one.expected, one.got, one.hint or "")))
        console.print(table)
