"""The page of the options of `compile`, for `reference_pages.py`."""

from __future__ import annotations

from dataclasses import fields

from dialect_pages import EDIT, table

from spyre_mlir.cli.flags.option_flags import flag
from spyre_mlir.options import CompileOptions, about

INTRO = """Keyword arguments of `spyre_mlir.compile`, keys of `options=` in `torch.compile(model, backend="spyre")`,
and, where one is named, flags of `spyre-compile`."""


def options_page() -> str:
    """Options with their defaults, values, flags and meanings."""
    rows: list[tuple[object, ...]] = []
    for entry in fields(CompileOptions):
        option = about(entry)
        values = ", ".join(f"`{value}`" for value in option.choices) or f"`{entry.type}`"
        meaning = option.meaning.replace("``", "`")
        rows.append(
            (f"`{entry.name}`", f"`{entry.default}`", values, f"`{flag(entry)}`" if option.flag else "", meaning)
        )
    parts = [
        "# Options",
        EDIT.format(source="spyre_mlir/options.py"),
        INTRO,
        table(("option", "default", "values", "flag", "meaning"), rows),
    ]
    return "\n\n".join(parts) + "\n"
