"""The typed model of the format: every key of every public file and schema, spelled once."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from spyre_mlir.dialects import superdsc
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.field import Field, FieldWriter, JsonKind, Level
from spyre_mlir.dialects.superdsc.model.fields import FIELDS, visit
from tests.paths import DATA

FILES = sorted(p for p in DATA.glob("superdsc_*/*.json") if "segment_size" not in p.name)
SPELLED = {value for name, value in vars(keys).items() if name.isupper()}
ROOM = Path(superdsc.__file__).parent


def _object(path: Path) -> dict[str, Any]:
    ((_, value),) = json.loads(path.read_text()).items()
    return value


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_key_of_every_file_is_known(path: Path) -> None:
    assert [found.path for found in visit(_object(path)) if found.field is None] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_member_of_every_file_is_visited(path: Path) -> None:
    """As many members as a walk that knows nothing finds, but for the maps whose keys are dims, cores or numbers."""

    def named(value: Any) -> Counter[str]:
        found: Counter[str] = Counter()
        if isinstance(value, dict):
            found.update(key for key in value if key in SPELLED)
            for member in value.values():
                found += named(member)
        elif isinstance(value, list):
            for member in value:
                found += named(member)
        return found

    assert named(_object(path)) == Counter(found.key for found in visit(_object(path)) if found.key in SPELLED)


def test_keys_of_the_published_schema_are_known() -> None:
    """But for spellings of padding and symbolic sizes that no emitter uses: newer texts spell those as we do."""
    definitions = json.loads((DATA / "sdsc_schema.json").read_text())["$defs"]
    pairs = {
        "SuperDSCObject": Level.SDSC,
        "AllocateNode": Level.ALLOCATE,
        "LabeledDsInfo": Level.LABELED_DS,
        "ConstantInfo": Level.CONSTANT,
        "ComputeOp": Level.COMPUTE,
        "DataStructDims": Level.SIZES,
        "FoldManager": Level.FOLDS,
        "FoldDimProp": Level.FOLD_PROP,
        "CoordInfoValue": Level.COORDINATE,
        "MemOrgEntry": Level.MEMORY,
        "LdsShareInfoEntry": Level.SHARE,
    }
    missing = {
        f"{name}.{key}"
        for name, level in pairs.items()
        for key in definitions[name]["properties"].keys() - FIELDS[level]
    }
    entry = definitions["DSCEntry"]["additionalProperties"]["properties"]
    missing |= {f"DSCEntry.{key}" for key in entry.keys() - FIELDS[Level.DSC]}
    assert missing == set()


def _all_fields() -> list[tuple[Level, Field]]:
    return [(level, field) for level, table in FIELDS.items() for field in table.values()]


def test_every_level_has_a_table_and_every_field_says_all_it_must() -> None:
    assert set(FIELDS) == set(Level)
    for level, field in _all_fields():
        assert field.meaning, (level, field.key)
        assert field.certainty in ("C", "L", "I"), (level, field.key)
        if field.inner is not None:
            assert field.kind in (JsonKind.OBJECT, JsonKind.LIST, JsonKind.CONSTANTS), (level, field.key)
        if field.writer is FieldWriter.SPEC:
            assert field.certainty != "C", (level, field.key)


def test_unknown_keys_are_found_at_every_depth() -> None:
    value = _object(FILES[0])
    value["mine"] = 1
    node = value["dscs_"][0]["add"]["scheduleTree_"][1]
    node["coordinates_"]["coordInfo"]["mb"]["folds"]["extra"] = 2
    assert [found.path for found in visit(value) if found.field is None] == [
        "$.dscs_[0].add.scheduleTree_[1].coordinates_.coordInfo.mb.folds.extra",
        "$.mine",
    ]


def test_values_of_other_shapes_are_not_entered() -> None:
    assert [found.path for found in visit({"dscs_": 3, "coreFoldProp_": [1]})] == ["$.dscs_", "$.coreFoldProp_"]


# Common words that are also keys, and the two modules whose job is the first check of a file.
WORDS = {"hbm", "lx", "padding", "location", "op", "name", "type", "level", "folds"}


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.name)
def test_keys_are_spelled_once(path: Path) -> None:
    if path.name == "keys.py":
        counts = Counter(value for name, value in vars(keys).items() if name.isupper())
        assert [key for key, count in counts.items() if count > 1] == []
        return
    literals = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    assert [(node.lineno, node.value) for node in literals if node.value in SPELLED - WORDS] == []


def _literals(path: Path) -> list[str]:
    found = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    return [value for value in found if isinstance(value, str)]


def test_no_other_room_spells_a_key() -> None:
    """But for keys that are common words."""
    package = Path(superdsc.__file__).parents[2]
    telling = {key for key in SPELLED if key.endswith("_") or key != key.lower()}
    others = [path for path in sorted(package.rglob("*.py")) if ROOM not in path.parents]
    assert others and telling
    assert [(path.name, value) for path in others for value in _literals(path) if value in telling] == []
