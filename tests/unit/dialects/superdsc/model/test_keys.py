"""Spellings of keys: each stands in a public file, in the published schema or on the reference page, and once here."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.model import keys
from tests.paths import DATA
from tests.unit.dialects.superdsc.model.pages import tables

SPELLED = {name: value for name, value in vars(keys).items() if name.isupper()}


def spelled_in(value: Any) -> set[str]:
    """Every key of a value, at any depth."""
    if isinstance(value, list):
        return set().union(*map(spelled_in, value))
    return set(value).union(*map(spelled_in, value.values())) if isinstance(value, dict) else set()


def public() -> set[str]:
    """Keys of public files and of the published schema, and those that the page has from other sources."""
    found = {row[0].strip("`") for table in tables().values() for row in table}
    for path in [*(DATA / "superdsc_real").glob("*.json"), DATA / "sdsc_schema.json"]:
        found |= spelled_in(json.loads(path.read_text()))
    return found


def test_every_key_is_a_public_one() -> None:
    assert set(SPELLED.values()) - public() == set()


def test_no_key_is_spelled_twice() -> None:
    assert len(set(SPELLED.values())) == len(SPELLED)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("CORES_USED", "numCoresUsed_"),
        ("SPLITS", "numWkSlicesPerDim_"),
        ("CORE_TO_SLICE", "coreIdToWkSlice_"),
        ("SIZES", "N_"),
        ("START", "startAddressCoreCorelet_"),
        ("CLASS", "dsType_"),
        ("FORMAT", "dataFormat_"),
        ("FUNCTION", "opFuncName"),
        ("HBM", "hbm"),
        ("LX", "lx"),
    ],
)
def test_keys_that_the_rest_is_decided_by(name: str, key: str) -> None:
    assert SPELLED[name] == key
