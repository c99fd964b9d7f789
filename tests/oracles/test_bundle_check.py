"""The check that every emitted bundle goes through can fail, each of its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emitted import check_bundle
from tests.unit.backend.check.test_bundle_rules import write


def test_a_right_bundle_passes(tmp_path: Path) -> None:
    check_bundle(write(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"1_add": {', '"first_add": {', "root-name"),
        ('"prev_": ""', '"prev_": "nothing"', "usual-value"),
        ('"prev_": ""', '"prev_": "", "mine_": 1', "sdscbundle-schema-20260814.json"),
        ('"exUnit": "sfp"', '"exUnit": 1', "sdsc_schema.json"),
    ],
)
def test_a_wrong_one_does_not(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path) / "sdsc_1.json"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(AssertionError, match=message):
        check_bundle(tmp_path)
