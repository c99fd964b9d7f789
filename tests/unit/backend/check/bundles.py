"""A bundle of two files by hand, for the checker and for what runs bundles of others."""

from __future__ import annotations

import json
from pathlib import Path

from tests.paths import DATA

ARGUMENT = "!sdscbundle.input_arg<index>"
# Two additions of (128, 256) on two cores: the first writes scratch memory, the second reads it. Rows lie
# next to each other in columns of one stick: the second core's 64 rows begin 64 * 128 = 8192 bytes behind the first's.
BUNDLE = f"""builtin.module {{
  func.func @sdsc_bundle(%a : {ARGUMENT}, %b : {ARGUMENT}, %c : {ARGUMENT}) {{
    %pool = sdscbundle.device_mem_allocate 65536 bytes : index
    %a0 = sdscbundle.input_arg_extract value from %a : {ARGUMENT} -> index
    %b0 = sdscbundle.input_arg_extract value from %b : {ARGUMENT} -> index
    %c0 = sdscbundle.input_arg_extract value from %c : {ARGUMENT} -> index
    %step = arith.constant 8192 : index
    %a1 = arith.addi %a0, %step : index
    %b1 = arith.addi %b0, %step : index
    %c1 = arith.addi %c0, %step : index
    %p1 = arith.addi %pool, %step : index
    sdscbundle.sdsc_execute (%a0, %a1, %b0, %b1, %pool, %p1) {{sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4, -5, -6]}}
    sdscbundle.sdsc_execute (%pool, %p1, %b0, %b1, %c0, %c1) {{sdsc_filename="sdsc_1.json", symbol_ids=[-7, -8, -9, -10, -11, -12]}}
    func.return
  }}
}}
"""  # noqa: E501


def two_cores(index: int, first_id: int) -> str:
    """The add of (128, 256) on two cores with symbolic addresses, by hand from the file for one core."""
    ((_, top),) = json.loads((DATA / "superdsc_worked/a1_add_128x256_1core.json").read_text()).items()
    text = json.dumps(top)
    text = text.replace('{"factor_": 1, "label_": "core"}', '{"factor_": 2, "label_": "core"}')
    top = json.loads(text)
    top["numCoresUsed_"], top["numWkSlicesPerDim_"] = 2, {"mb": 2, "out": 1}
    top["coreIdToDsc_"] = {"0": 0, "1": 0}
    top["coreIdToWkSlice_"] = {"0": {"mb": 0, "out": 0}, "1": {"mb": 1, "out": 0}}
    top["coreIdToDscSchedule"] = {"0": [[-1, 0, 0, 0]], "1": [[-1, 0, 0, 0]]}
    dsc = top["dscs_"][0]["add"]
    dsc["numCoresUsed_"], dsc["coreIdsUsed_"] = 2, [0, 1]
    for stage in dsc["dataStageParam_"]["0"].values():
        stage["mb_"] = 64
    for number, node in enumerate(dsc["scheduleTree_"]):
        folds = node["coordinates_"]["coordInfo"]["mb"]["folds"]
        folds["dim_prop_func"][0]["Affine"]["alpha_"] = 64
        folds["dim_prop_attr"][0]["factor_"], folds["dim_prop_attr"][-1]["factor_"] = 2, 64
        ids = (first_id - 2 * number, first_id - 2 * number - 1)
        node["isStartAddrSymbolic_"] = 1
        node["startAddressCoreCorelet_"]["data_"] = {f"[{core}, 0, 0]": str(one) for core, one in enumerate(ids)}
    return json.dumps({f"{index}_add": top})


def write(directory: Path, text: str = BUNDLE) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "bundle.mlir").write_text(text)
    (directory / "sdsc_0.json").write_text(two_cores(0, -1))
    (directory / "sdsc_1.json").write_text(two_cores(1, -7))
    return directory
