"""The text of a SuperDSC file: the values and the order that were read."""

from __future__ import annotations

import json

from spyre_mlir.backend.read import read_json
from spyre_mlir.backend.write import write_json
from tests.paths import DATA


def test_a_file_is_written_with_the_values_and_the_order_it_was_read_with() -> None:
    path = DATA / "superdsc_worked/a1_add_128x256_1core.json"
    text = write_json(read_json(path))
    assert json.dumps(json.loads(text)) == json.dumps(json.loads(path.read_text()))
    assert text.startswith('{\n "0_add": {\n')
    assert text.endswith("}\n")
