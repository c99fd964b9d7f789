"""`--list-passes` and `--list-ops`: a table on a terminal, tab-separated text in a pipe, JSON for programs.

`docs/reference/passes.schema.json` and `docs/reference/ops.schema.json` are the schemas of the JSON.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from xdsl.passes import ModulePass

from spyre_mlir.plugins import registry

if TYPE_CHECKING:
    from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject

PASS_COLUMNS = ("pass", "from", "options", "meaning")
VERSION = 1
XDSL = "xdsl"  # the owner of passes that are not loaded for a list
OP_COLUMNS = ("op", "support", "family", "hardware function", "unit", "formats")


def pass_rows(
    available: Mapping[str, Callable[[], type[ModulePass]]], ours: Iterable[str]
) -> list[tuple[str, str, str, str]]:
    """Return our passes and those of plugins in execution order, then xDSL's, which are named without being loaded."""
    own, owners = list(ours), {registered.op: registered.owner for registered in registry.all_passes()}
    rows = [(name, owners.get(name, "spyre"), *_described(available[name]())) for name in own]
    return rows + [(name, XDSL, "", "") for name in sorted(set(available) - set(own))]


def _described(pass_type: type[ModulePass]) -> tuple[str, str]:
    options = " ".join(f"{name}={'|'.join(values)}" for name, values in option_values(pass_type).items())
    return options, (inspect.getdoc(pass_type) or "").partition("\n")[0]


def option_values(pass_type: type[ModulePass]) -> dict[str, tuple[str, ...]]:
    """Return for every option of a pass its values, or the names of their types."""
    hints = get_type_hints(pass_type)
    return {entry.name: _values(hints[entry.name]) for entry in fields(pass_type)}


def _values(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) is Literal:
        return tuple(str(value) for value in get_args(hint))
    if get_origin(hint) is tuple:
        kinds = "|".join(value for one in get_args(hint) if one is not Ellipsis for value in _values(one))
        return (f"{kinds},...",)
    alternatives = get_args(hint)
    if not alternatives:
        return ("None" if hint is type(None) else str(getattr(hint, "__name__", hint)),)
    return tuple(value for one in alternatives for value in _values(one))


def op_rows() -> list[tuple[str, ...]]:
    """Return every overload of the op table; the last three columns are empty without a hardware function.

    An overload that is not there runs on the host.
    """
    from spyre_mlir.ops import ATEN

    rows: list[tuple[str, ...]] = []
    for entry in ATEN:
        formats = "DL16 FP32" if entry.fp32 else "DL16"
        support = ATEN.support(entry.overloads[0]).value
        runs = (entry.opfunc, entry.unit.value, formats) if entry.opfunc else ("", "", "")
        rows += [(f"aten.{overload}", support, entry.family.value, *runs) for overload in entry.overloads]
    return rows


def passes_json(available: Mapping[str, Callable[[], type[ModulePass]]], ours: Iterable[str]) -> str:
    """Return the rows of `pass_rows` as the text of a JSON file."""
    listed: list[Json] = []
    for name, owner, _, meaning in pass_rows(available, ours):
        entry: JsonObject = {"name": name, "from": owner, "options": None, "meaning": meaning or None}
        if owner != XDSL:
            entry["options"] = {option: [*values] for option, values in option_values(available[name]()).items()}
        listed.append(entry)
    return _listed("passes", listed)


def ops_json() -> str:
    """Return the rows of `op_rows` as the text of a JSON file."""
    listed: list[Json] = []
    for name, support, family, function, unit, formats in op_rows():
        entry: JsonObject = {"name": name, "support": support, "family": family, "function": function or None}
        listed.append({**entry, "unit": unit or None, "formats": [*formats.split()]})
    return _listed("ops", listed)


def _listed(what: str, entries: list[Json]) -> str:
    from spyre_mlir.backend.json_file import dump_text

    return dump_text({"format": f"spyre-{what}", "version": VERSION, what: entries})


def print_list(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write rows to stdout, as a table on a terminal."""
    if not sys.stdout.isatty():
        sys.stdout.write("".join("\t".join(row) + "\n" for row in [columns, *rows]))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in columns:
        table.add_column(column, overflow="fold")  # whole, where rich would cut a long word
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=sys.stdout).print(table)
