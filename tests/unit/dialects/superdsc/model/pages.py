"""The tables of fields on the reference page, and what a field of the model says in the page's words."""

from __future__ import annotations

from functools import cache

from spyre_mlir.dialects.superdsc.model.field import Field, FieldTable, Level, Shape
from tests.paths import ROOT

Row = tuple[str, ...]
TITLES = {
    Level.SDSC: "The object of the file",
    Level.DSC: "A DSC: one operation (`dscs_`)",
    Level.ALLOCATE: "An allocate node (`scheduleTree_`)",
    Level.LABELED_DS: "An operand (`labeledDs_`)",
    Level.CONSTANT: "A constant (`constantInfo_`)",
    Level.COMPUTE: "The operation (`computeOp_`)",
}


@cache
def tables() -> dict[str, list[Row]]:
    """Rows by title: key, type, meaning, default, writer, certainty."""
    found: dict[str, list[Row]] = {}
    for line in (ROOT / "docs/reference/superdsc.md").read_text().splitlines():
        if line.startswith("### "):
            found[title := line.removeprefix("### ")] = []
        elif line.startswith("| `") and found:
            found[title].append(tuple(cell.strip() for cell in line.strip("|").split(" | ")))
    return found


def rows(level: Level) -> list[Row]:
    """The rows of one object."""
    return tables()[TITLES.get(level, level.value.capitalize())]


def row(field: Field) -> Row:
    """A field in the page's words."""
    kind = field.kind.value
    if field.inner is not None:
        joint = {Shape.ONE: ": ", Shape.LIST: " of ", Shape.MAP: " by name of ", Shape.LIST_OF_MAPS: " by name, of "}
        kind += joint[field.inner.shape] + field.inner.level.value.removeprefix("superdsc.").replace("_", " ")
    if field.allowed:
        kind += ": " + ", ".join(f"`{value}`" for value in field.allowed)
    default = f"`{field.default}`" if field.default and " " not in field.default else field.default
    return (f"`{field.key}`", kind, field.meaning, default, field.writer.value, field.certainty)


def assert_as_published(level: Level, table: FieldTable) -> None:
    """A table says what the page says, in the page's order, and stands under its own keys."""
    assert [row(field) for field in table.values()] == rows(level)
    assert list(table) == [field.key for field in table.values()]


def assert_named(table: FieldTable, names: str) -> None:
    """Every field has its name in text, in the order of the table; saved texts hold these names."""
    assert [field.name for field in table.values()] == names.split()
