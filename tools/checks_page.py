"""The reference page of the checker's rules, for `reference_pages.py`."""

from __future__ import annotations

from dialect_pages import EDIT, table

from spyre_mlir.backend.check import RULES, Severity

INTRO = """`spyre-translate --check PATH` holds a SuperDSC file or a bundle directory against rules beyond the published
schemas; `spyre_mlir.check(path)` does it from Python. A finding names the rule, the file, the place in it, what was
expected, what is there, and often what to try. A right file breaks no *error*; a *warning* says that a file is unusual,
or that it uses what only the back end or research builds write. With errors the tool ends with exit code 1.

Certainty is that of the source: C certain (two public sources agree, or code and a real file), L likely (one source),
I inferred. `tests/unit/backend` has for each rule a file that breaks it, and lists what the public real files break."""
SEVERITIES = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings"}


def checks_page() -> str:
    """Every rule: name, meaning, source, certainty."""
    parts = ["# Checks", EDIT.format(source="spyre_mlir/dialects/superdsc/check, spyre_mlir/backend/check"), INTRO]
    for severity, title in SEVERITIES.items():
        rules = [rule for rule in RULES if rule.severity is severity]
        rows = [(f"`{rule.name}`", rule.meaning, rule.certainty, rule.source) for rule in rules]
        parts += [f"## {title}", table(("rule", "meaning", "certainty", "source"), rows)]
    return "\n\n".join(parts) + "\n"
