"""SuperDSC files: read, written, and refused with file, place, expected and got."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spyre_mlir.backend.read import read_json
from spyre_mlir.backend.write import write_json
from spyre_mlir.errors import ReadError
from tests.paths import DATA

FILES = sorted(path for path in DATA.glob("superdsc_*/*.json") if "segment_size" not in path.name)
ADD = (DATA / "superdsc_worked/a1_add_128x256_1core.json").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_written_file_has_the_values_and_order_read(path: Path) -> None:
    text = write_json(read_json(path))
    assert json.dumps(json.loads(text)) == json.dumps(json.loads(path.read_text()))
    assert write_json(read_json(text, "again.json")) == text


def test_written_file_is_readable() -> None:
    lines = write_json(read_json(ADD, "a.json")).splitlines()
    assert '  "numWkSlicesPerDim_": {"mb": 1, "out": 1},' in lines
    assert max(map(len, lines)) <= 120


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("", "f.json:1:1", "got 'the end of the file'"),
        (ADD[:500], "f.json:", "expected JSON"),
        ('{"a": {"dscs_": [], "x": NaN}}', "f.json", "got NaN"),
        ('{"a": {"dscs_": [], "x": 1, "x": 2}}', "f.json", "got 'x' twice"),
        ("[" * 100_000, "f.json", "nested at most 64 deep, got much deeper"),
        ("[" * 65 + "]" * 65, "f.json", "nested at most 64 deep, got deeper"),
        ("1" * 5000, "f.json", "sensible length"),
        ("[]", "f.json: $", "one root key, got []"),
        ("{}", "f.json: $", "one root key, got keys []"),
        ('{"a": 1, "b": 2}', "f.json: $", "keys ['a', 'b']"),
        ('{"a": 1}', "f.json: $.a", "expected an object, got 1"),
        ('{"a": {"memReqPerSegment": 1}}', "f.json: $.a", "expected a list dscs_"),
        ('{"a": {"dscs_": 1}}', "f.json: $.a.dscs_", "expected a list, got 1"),
        (
            ADD.replace('"maskingConstId_": -1', '"maskingConstId_": "x"'),
            "f.json: $.0_add.dscs_[0].add.maskingConstId_",
            "integer",
        ),
        (ADD.replace('"ldsIdx_": 1', '"ldsIdx_": 1.5', 1), "$.0_add.dscs_[0].add.scheduleTree_[1].ldsIdx_", "got 1.5"),
        (ADD.replace('"numCoresUsed_": 1', '"numCoresUsed_": 2', 1), "f.json: $.0_add", "numCoresUsed_ is 2"),
        (
            ADD.replace('"[0, 0, 0]": "0"', '"[0, 0, 0]": "64"', 1),
            "f.json: $.0_add.dscs_[0].add.scheduleTree_[0]",
            "start address of core [0, 0, 0] is 64",
        ),
        ('{"a": {"dscs_": [], "x": 1e999}}', "f.json", "got 1e999"),
    ],
)
def test_bad_text_is_refused(text: str, where: str, message: str) -> None:
    with pytest.raises(ReadError) as caught:
        read_json(text, "f.json")
    assert where in (caught.value.where or "")
    assert message in caught.value.message


def test_missing_and_unreadable_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="No such file"):
        read_json(tmp_path / "none.json")
    with pytest.raises(ReadError, match="directory"):
        read_json(tmp_path)
    (tmp_path / "b.json").write_bytes(b'{"\xff": 1}')
    with pytest.raises(ReadError, match="0xff"):
        read_json(tmp_path / "b.json")
