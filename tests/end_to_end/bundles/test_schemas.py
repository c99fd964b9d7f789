"""The published schemas, but for named deviations: what they say about the example files, and that each is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.schemas import DATA, DEVIATIONS, DRAFT, VALIDATOR, problems

FILES = sorted(path for path in DATA.glob("superdsc_*/*.json") if "segment_size" not in path.name)
# The back end wrote 09, which has no compute DSC; 06 has a key of a research build.
REFUSED = {
    VALIDATOR: {"09_backend_written_sdsc_dcg": ["is not valid under any"]},
    DRAFT: {
        "06_ReStickifyOpLx_lx": ["lxRelayoutClassifications_"],
        "09_backend_written_sdsc_dcg": ["Additional properties", "less than 1 item"],
    },
}


@pytest.mark.parametrize("schema", DEVIATIONS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_example_files(schema: str, path: Path) -> None:
    found = sorted(problems(schema, json.loads(path.read_text())))
    expected = REFUSED[schema].get(path.stem, [])
    assert len(found) == len(expected), found
    assert all(any(part in one for one in found) for part in expected), found


def _example(name: str) -> Any:
    value = json.loads((DATA / "superdsc_worked" / f"{name}.json").read_text())
    dsc = value["0_add"]["dscs_"][0]["add"]
    dsc["scheduleTree_"][0]["isStartAddrSymbolic_"] = 1
    dsc["scheduleTree_"][0]["indexTensorType_"] = "index"
    dsc["computeOp_"][0]["indirectAccessIndexLabeledDs"] = ["Tensor0-idx0"]
    return value


@pytest.mark.parametrize(
    ("schema", "deviation"), [(schema, one.name) for schema, all_ in DEVIATIONS.items() for one in all_]
)
def test_each_deviation_is_needed_and_mends_only_itself(schema: str, deviation: str) -> None:
    value = _example("f32_add_fp32_128x256")
    assert problems(schema, value) == []
    assert problems(schema, value, without=deviation)
    value["0_add"]["dscs_"][0]["add"]["labeledDs_"][0]["scale_"] = "wrong"
    assert len(problems(schema, value)) == 1
