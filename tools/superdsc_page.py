"""The reference page of the SuperDSC format: tables of the typed model, our own files as examples."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from dialect_pages import EDIT

from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.model.certainty import FEATURES
from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, Dim, OpClass, Operand, Version
from spyre_mlir.dialects.superdsc.model.field import Field, Level, Shape
from spyre_mlir.dialects.superdsc.model.fields import FIELDS
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SPYRE, STICK_BYTES
from spyre_mlir.ops.hardware_functions import FUNCTIONS, Group

TITLES = {
    Level.SDSC: "The object of the file",
    Level.DSC: "A DSC: one operation (`dscs_`)",
    Level.ALLOCATE: "An allocate node (`scheduleTree_`)",
    Level.LABELED_DS: "An operand (`labeledDs_`)",
    Level.CONSTANT: "A constant (`constantInfo_`)",
    Level.COMPUTE: "The operation (`computeOp_`)",
}


def md_table(head: tuple[str, ...], rows: list[tuple[object, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def type_of(field: Field) -> str:
    """JSON type, what is inside, and the values allowed."""
    text = field.kind.value
    if field.inner is not None:
        inside = {Shape.ONE: "", Shape.LIST: " of", Shape.MAP: " by name of", Shape.LIST_OF_MAPS: " by name, of"}
        name = field.inner.level.value.removeprefix("superdsc.").replace("_", " ")
        text += f"{inside[field.inner.shape] or ':'} {name}".replace(" :", ":")
    if field.allowed:
        text += ": " + ", ".join(f"`{value}`" for value in field.allowed)
    return text


def level_table(level: Level) -> str:
    """One object: a row per key."""
    rows: list[tuple[object, ...]] = []
    for field in FIELDS[level].values():
        default = field.default if " " in field.default or not field.default else f"`{field.default}`"
        rows.append((f"`{field.key}`", type_of(field), field.meaning, default, field.writer.value, field.certainty))
    return md_table(("key", "type", "meaning", "default", "written by", "certainty"), rows)


def levels() -> list[str]:
    parts: list[str] = []
    for level in Level:
        title = TITLES.get(level, level.value.capitalize())
        parts += [f"### {title}", level_table(level)]
    return parts


def functions() -> list[str]:
    parts: list[str] = []
    for group in Group:
        rows: list[tuple[object, ...]] = [
            (
                f"`{f.name}`",
                f.inputs,
                f.meaning.replace("|", "\\|"),
                f.formats,
                ", ".join(f"`{name}`" for name in f.constants),
                "yes" if f.nonstick else "",
                f.seen.value,
                f.tag.value,
            )
            for f in FUNCTIONS.values()
            if f.group is group
        ]
        head = ("function", "inputs", "meaning", "formats", "constants", "`nonstick`", "seen in", "certainty")
        parts += [f"### {group.value.capitalize()}", md_table(head, rows)]
    return parts


def add() -> Descriptor:
    """(128, 256) + (128, 256) on four cores."""
    starts = tuple(tuple(str(base + 4096 * core) for core in range(4)) for base in (0, 65536, 131072))
    operands = tuple(Operand(("mb", "out"), (128, 256), "out", DL16.name, start) for start in starts)
    return Descriptor(0, "add", "sfp", OpClass.POINTWISE, (Dim("mb", 128, 4), Dim("out", 256)), operands)


def masked_sum() -> Descriptor:
    """Sum over 200 columns, padded to 256."""
    source = Operand(("mb", "out"), (128, 256), "out", DL16.name, ("0",))
    target = Operand(("mb",), (128,), None, DL16.name, ("65536",))
    dims, mask = (Dim("mb", 128), Dim("out", 256, valid=200)), Constant("samv-maskvalue", DL16.name, 0)
    return Descriptor(1, "sum", "sfp", OpClass.REDUCTION, dims, (source, target), (mask,), 0)


def spelled(value: object, room: int, indent: str = "") -> str:
    """JSON with what fits on a line on one line."""
    line = json.dumps(value)
    if len(line) <= room - len(indent) or not isinstance(value, dict | list):
        return line
    deeper = indent + "  "
    if isinstance(value, list):
        parts = [spelled(entry, room, deeper) for entry in value]
        return "[\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}]"
    pairs = [
        f"{deeper}{json.dumps(key)}: {spelled(entry, room - len(key) - 4, deeper)}" for key, entry in value.items()
    ]
    return "{\n" + ",\n".join(pairs) + f"\n{indent}}}"


def block(value: object) -> str:
    return f"```json\n{spelled(value, 118)}\n```"


def examples() -> dict[str, str]:
    """Objects of files this compiler wrote."""
    file: Any = sdsc_to_json(build(add(), Version.TS26))["0_add"]
    total: Any = sdsc_to_json(build(masked_sum(), Version.TS26))["1_sum"]
    dsc = total["dscs_"][0]["sum"]
    hidden = ("numCoresUsed_", "numCoreletsUsed_", "coreIdsUsed_", "dataStageParam_", "scheduleTree_")
    return {
        "top": block({key: value for key, value in file.items() if key != "dscs_"}),
        "node": block(file["dscs_"][0]["add"]["scheduleTree_"][1]),
        "sum": block({key: value for key, value in dsc.items() if key not in hidden}),
    }


def superdsc_page() -> str:
    """The prose of the template with tables and examples put in."""
    features: list[tuple[object, ...]] = [(f.name, f.source, f.tag.value) for f in FEATURES]
    parts = examples() | {
        "edit": EDIT.format(source="spyre_mlir/dialects/superdsc") + " The prose stands in `tools/superdsc_page.md`.",
        "stick_bytes": str(STICK_BYTES),
        "span_bytes": f"{SPYRE.span_bytes:,}",
        "functions": "\n\n".join(functions()),
        "levels": "\n\n".join(levels()),
        "features": md_table(("feature", "source", "certainty"), features),
    }
    text = (Path(__file__).parent / "superdsc_page.md").read_text(encoding="utf-8")
    return re.sub(r"<<(\w+)>>", lambda match: parts[match[1]], text)
