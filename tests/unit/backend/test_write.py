"""The text of a SuperDSC file: the values and the order that were read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.backend.read import read_json
from spyre_mlir.backend.write import write_json
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from tests.paths import DATA


def test_a_file_is_written_with_the_values_and_the_order_it_was_read_with() -> None:
    path = DATA / "superdsc_worked/a1_add_128x256_1core.json"
    text = write_json(read_json(path))
    assert json.dumps(json.loads(text)) == json.dumps(json.loads(path.read_text()))
    assert text.startswith('{\n "0_add": {\n')
    assert text.endswith("}\n")


@pytest.mark.parametrize("number", [0, 7, 123456789])
@pytest.mark.parametrize("file", sorted((DATA / "superdsc_worked").glob("*.json")), ids=lambda path: path.stem)
def test_twins_are_written_as_if_each_were_alone(file: Path, number: int) -> None:
    """Root keys and addresses of all lengths: what fits on a line depends on them."""
    value = json.loads(file.read_text())
    ((root, fields),) = value.items()
    (dsc,) = fields["dscs_"][0].values()
    for node in dsc["scheduleTree_"]:
        data = node.get("startAddressCoreCorelet_", {}).get("data_", {})
        for core in data:
            data[core] = str(-1 - number) if node.get("isStartAddrSymbolic_") else str(128 * number)
    op = read_json(json.dumps({f"{number}_{root.partition('_')[2]}": fields}), "f.json")
    assert write_json(op) == dump_text(sdsc_to_json(op))
