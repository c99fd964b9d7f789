"""The published schemas of SuperDSC, and where they are known to refuse what files really say.

Each deviation stands here with its reason and nowhere else; a test shows that each is needed.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator

DATA = Path(__file__).parent / "data"
Schema = dict[str, Any]


@dataclass(frozen=True)
class Deviation:
    """One place where a schema as published is wrong.

    Args:
        name: stable, short.
        why: what files say, and who says that the schema is wrong.
        mend: changes the schema in place.
    """

    name: str
    why: str
    mend: Callable[[Schema], None]


def _properties(schema: Schema, kind: str) -> Schema:
    return schema["$defs"][kind]["properties"]


def _flag(schema: Schema) -> None:
    _properties(schema, "AllocateNode")["isStartAddrSymbolic_"] = {"enum": [True, False, 0, 1]}


def _formats(schema: Schema) -> None:
    for kind in ("LabeledDataStructure", "ConstantInfo"):
        _properties(schema, kind)["dataFormat_"] = {"type": "string"}


def _index_list(schema: Schema) -> None:
    compute = _properties(schema, "ComputeOperation")
    compute["indirectAccessIndexLabeledDs"] = compute["indirectAccessIndexLabeledDs_"]


def _index_type(schema: Schema) -> None:
    _properties(schema, "ScheduleTreeNode")["indexTensorType_"] = {"enum": ["index", "address"]}


VALIDATOR = "sdsc_schema.json"
DRAFT = "sdscbundle-schema-20260814.json"

DEVIATIONS: dict[str, tuple[Deviation, ...]] = {
    VALIDATOR: (Deviation("symbolic-flag", "typed a boolean; the front end writes 0 or 1", _flag),),
    DRAFT: (
        Deviation("data-formats", "six names, five of which no file has; the text lists others", _formats),
        Deviation("index-list", "spelled with an underscore that the front end does not write", _index_list),
        # The row "unknown keys": the one unknown key that we write; docs/decisions/0050 says why.
        Deviation("index-type", "unknown to this draft; the front end writes it on index tensors", _index_type),
    ),
}


@cache
def validator(name: str, without: str | None = None) -> Draft202012Validator:
    """A published schema with its deviations mended, but for one if asked."""
    schema = copy.deepcopy(json.loads((DATA / name).read_text()))
    for deviation in DEVIATIONS[name]:
        if deviation.name != without:
            deviation.mend(schema)
    return Draft202012Validator(schema)


def problems(name: str, value: Any, without: str | None = None) -> list[str]:
    """What a schema, mended, finds wrong with a file's value."""
    found = validator(name, without).iter_errors(value)
    return [f"{name}: {'.'.join(map(str, ['$', *error.instance_path]))}: {error.message}" for error in found]
