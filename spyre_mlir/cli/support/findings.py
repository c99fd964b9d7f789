"""Findings of a check: a table per file on a terminal, one line per finding in a pipe, JSON for programs.

`docs/reference/check.schema.json` is the schema of the JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spyre_mlir.errors import InputError
from spyre_mlir.sizes import counted

if TYPE_CHECKING:
    from spyre_mlir.backend.check import Finding


_SHOWN = 5
FORMAT, VERSION = "spyre-check", 1


def refuse_errors(path: Path, *, insist: bool) -> None:
    """Check a bundle directory or a SuperDSC file that is about to run; ignore anything else.

    Args:
        path: what is to be run.
        insist: whether it is to be run whatever it breaks.

    Raises:
        InputError: it breaks rules; names the first of them.
    """
    if insist or not (path.is_dir() or path.suffix == ".json"):
        return
    from spyre_mlir.backend.check import Severity, check_path
    from spyre_mlir.universe import make_context

    errors = [one for one in check_path(path, make_context()) if one.severity is Severity.ERROR]
    if errors:
        shown = "".join(
            f"\n  {one.rule}: {one.file}: {one.path}: expected {one.expected}, got {one.got}" for one in errors[:_SHOWN]
        )
        more = f"\n  … and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
        raise InputError(
            f"this breaks {counted(len(errors), 'rule')}, so its results could be wrong:{shown}{more}",
            where=str(path),
            hint="spyre-translate --check lists everything; --no-check runs it all the same",
        )


def print_findings(findings: Sequence[Finding]) -> None:
    """Write findings to stdout, and the number of each kind."""
    from spyre_mlir.backend.check import number_of_findings

    if sys.stdout.isatty():
        _print_tables(findings)
    else:
        sys.stdout.write("".join(f"{finding}\n" for finding in findings))
    print(number_of_findings(findings))


def findings_json(findings: Sequence[Finding]) -> str:
    """Return findings as the text of a JSON file."""
    from spyre_mlir.backend.check import Severity
    from spyre_mlir.backend.json_file import dump_text

    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    return dump_text(
        {
            "format": FORMAT,
            "version": VERSION,
            "errors": errors,
            "warnings": len(findings) - errors,
            "findings": [
                {
                    "rule": finding.rule,
                    "severity": finding.severity.value,
                    "file": finding.file,
                    "place": finding.path,
                    "expected": finding.expected,
                    "got": finding.got,
                    "hint": finding.hint,
                }
                for finding in findings
            ],
        }
    )


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
