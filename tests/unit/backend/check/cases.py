"""For each rule of the checker a file, or a bundle, that breaks it: a copy of a right one with one change."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.paths import DATA

ADD1 = "superdsc_worked/a1_add_128x256_1core"
ADD = "superdsc_worked/a32_add_128x256_32core"
MATMUL = "superdsc_worked/b32_matmul_256x512x128_mb32"
K_SPLIT = "superdsc_worked/b32k_matmul_256x512x128_mb4_out2_in4"
SUM = "superdsc_worked/c32_sum_lastdim_128x256"
SUM_ROWS = "superdsc_worked/c32n_sum_dim0_128x256_nonstick"
PADDED = "superdsc_worked/c32p_sum_lastdim_128x200_padded"
CLIP = "superdsc_worked/d32_clamp_128x256"
BIAS = "superdsc_worked/e32_add_bias_128x256_plus_256"
RESTICK = "superdsc_worked/g8_restickify_128x256"
LX = "superdsc_real/06_ReStickifyOpLx_lx"
BACK_END = "superdsc_real/09_backend_written_sdsc_dcg"

Json = dict[str, Any]
Change = Callable[[Json], None]


class Opened:
    """A file's value with short names for its parts."""

    def __init__(self, value: Json) -> None:
        self.value = value
        ((self.root, self.top),) = value.items()
        self.dscs = self.top["dscs_"]
        if self.dscs:
            ((self.name, self.dsc),) = self.dscs[0].items()

    def node(self, number: int) -> Json:
        return self.dsc["scheduleTree_"][number]

    def operand(self, number: int) -> Json:
        return self.dsc["labeledDs_"][number]

    def start(self, number: int) -> Json:
        return self.node(number)["startAddressCoreCorelet_"]["data_"]

    def coordinate(self, number: int, dim: str) -> Json:
        return self.node(number)["coordinates_"]["coordInfo"][dim]

    @property
    def compute(self) -> Json:
        return self.dsc["computeOp_"][0]


@dataclass(frozen=True)
class Case:
    """A change that breaks a rule.

    Args:
        rule: its name.
        file: what is changed.
        change: how.
        path: the end of the place that must be named.
    """

    rule: str
    file: str
    change: Callable[[Opened], object]
    path: str = ""

    def broken(self) -> Json:
        """The changed file's value."""
        opened = Opened(json.loads((DATA / f"{self.file}.json").read_text()))
        self.change(opened)
        return opened.value


def put(place: Callable[[Opened], Any], key: Any, value: Any) -> Callable[[Opened], None]:
    """The change that sets one member."""

    def change(opened: Opened) -> None:
        place(opened)[key] = value

    return change


def drop(place: Callable[[Opened], Any], key: Any) -> Callable[[Opened], None]:
    """The change that takes one member away."""

    def change(opened: Opened) -> None:
        del place(opened)[key]

    return change


def _all_starts(number: int, address: Callable[[int], int]) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        start = opened.start(number)
        for core, key in enumerate(start):
            start[key] = str(address(core))

    return change


def _index_tensor(opened: Opened) -> None:
    """The second operand becomes an index tensor; nothing else says so."""
    opened.node(1)["indirectAllocType_"] = "index_tensor"


def _both(*changes: Callable[[Opened], None]) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        for one in changes:
            one(opened)

    return change


def _root(key: str) -> Callable[[Opened], None]:
    def change(opened: Opened) -> None:
        opened.value[key] = opened.value.pop(opened.root)

    return change


def _two_reductions(opened: Opened) -> None:
    """A sum over rows whose result also lacks the columns, both divided."""
    opened.operand(1)["scale_"] = [-1, -2]


def _stretch(opened: Opened) -> None:
    """Two million rows per core: more than 256 MiB of 512-byte rows."""
    opened.dsc["N_"]["mb_"] = 1 << 21


def _index_class(opened: Opened) -> None:
    opened.dsc["primaryDsInfo_"]["KERNEL_IDX"] = dict(opened.dsc["primaryDsInfo_"]["OUTPUT"])
    opened.operand(0)["dsType_"] = "KERNEL_IDX"


def gather(*picked: str) -> Callable[[Opened], None]:
    """The first operand becomes the indices, along the given dims, of rows of the second."""

    def change(opened: Opened) -> None:
        columns = {"layoutDimOrder_": [*picked], "stickDimOrder_": [picked[0]], "stickSize_": [32]}
        opened.dsc["primaryDsInfo_"]["KERNEL_IDX"] = columns
        opened.operand(0).update(dsType_="KERNEL_IDX", scale_=[1] * len(picked), dataFormat_="SENUINT32")
        opened.node(0).update(layoutDimOrder_=[*picked], indirectAllocType_="index_tensor")
        opened.node(1)["indirectAllocType_"] = "value_tensor"

    return change


TOP, DSC = (lambda f: f.top), (lambda f: f.dsc)
SEGMENT = 1 << 34

CASES = (
    # Structure.
    Case("members", ADD, drop(DSC, "primaryDsInfo_"), ".add"),
    Case("field-type", ADD, put(DSC, "maskingConstId_", "none"), ".maskingConstId_"),
    Case("field-value", ADD, put(lambda f: f.node(0), "component_", "ddr"), ".component_"),
    Case("number-range", ADD, put(DSC, "loopOrder_", [[1 << 64]]), ".loopOrder_[0][0]"),
    Case("required-field", ADD, drop(TOP, "coreFoldProp_"), "$.0_add"),
    Case("unknown-key", ADD, put(lambda f: f.coordinate(1, "mb")["folds"], "colour", 1), ".folds.colour"),
    Case("research-key", ADD, put(TOP, "onchipMove_", {}), ".onchipMove_"),
    Case("back-end-key", ADD, put(TOP, "pcfg_", {}), ".pcfg_"),
    Case("root-key", ADD, _root("0 add"), "$"),
    Case("root-name", ADD, _root("add"), "$"),
    Case("dsc-name", ADD, put(lambda f: f.compute, "opFuncName", "sub"), ".opFuncName"),
    Case("one-dsc", ADD, lambda f: f.dscs.append(f.dscs[0]), ".dscs_"),
    Case("core-lists", ADD, drop(lambda f: f.top["coreIdToDsc_"], "7"), ".coreIdToDsc_"),
    Case("core-dsc", ADD, put(lambda f: f.top["coreIdToDsc_"], "7", 1), ".coreIdToDsc_.7"),
    Case("schedule-steps", ADD, put(lambda f: f.top["coreIdToDscSchedule"], "7", [[-1, -1, 0, 0]]), "Schedule.7[0]"),
    Case("schedules-equal", ADD, put(lambda f: f.top["coreIdToDscSchedule"], "7", [[-1, 0, 1, 0]]), "Schedule.7"),
    # Division.
    Case("splits-product", ADD, put(TOP, "numCoresUsed_", 16), "$.0_add.numCoresUsed_"),
    Case("cores-on-card", ADD, put(TOP, "numCoresUsed_", 64), "$.0_add.numCoresUsed_"),
    Case("split-divides", ADD, put(lambda f: f.dsc["N_"], "mb_", 127), ".N_.mb_"),
    Case("size-divided", ADD, put(lambda f: f.dsc["N_"], "x_", 4), ".N_.x_"),
    Case("slices-distinct", ADD, put(lambda f: f.top["coreIdToWkSlice_"]["7"], "mb", 6), "WkSlice_.7"),
    Case(
        "core-map-order",
        RESTICK,
        _both(
            put(lambda f: f.top["coreIdToWkSlice_"]["0"], "mb", 1),
            put(lambda f: f.top["coreIdToWkSlice_"]["1"], "mb", 0),
        ),
        "WkSlice_.0",
    ),
    Case("stage-sizes", ADD, put(lambda f: f.dsc["dataStageParam_"]["0"]["el_"], "mb_", 8), ".el_.mb_"),
    Case("whole-sticks", RESTICK, put(lambda f: f.dsc["N_"], "out_", 128), ".N_.out_"),
    Case("one-reduction-split", SUM_ROWS, _two_reductions, ".numWkSlicesPerDim_"),
    Case("mask-extents", PADDED, put(DSC, "coordinateMasking_", {"out": [[200, 55]]}), ".coordinateMasking_.out"),
    Case("mask-constant", PADDED, put(DSC, "maskingConstId_", -1), ".maskingConstId_"),
    Case("mask-dims", PADDED, put(DSC, "coordinateMasking_", {"mb": [[100, 28]]}), ".coordinateMasking_.mb"),
    # Operands.
    Case("operand-count", ADD, lambda f: f.dsc["labeledDs_"].extend([f.operand(0)] * 6), ".labeledDs_"),
    Case("operand-number", ADD, put(lambda f: f.operand(1), "ldsIdx_", 2), ".labeledDs_[1].ldsIdx_"),
    Case("layout-class", ADD, put(lambda f: f.dsc["primaryDsInfo_"], "SPARE", {}), ".primaryDsInfo_.SPARE"),
    Case("scale-values", BIAS, put(lambda f: f.operand(1), "scale_", [-2, 1]), ".scale_[0]"),
    Case("layout-order", BIAS, put(lambda f: f.node(1), "layoutDimOrder_", ["mb", "out"]), "[1].layoutDimOrder_"),
    Case("stick-size", ADD, put(lambda f: f.dsc["primaryDsInfo_"]["OUTPUT"], "stickSize_", [32]), ".stickSize_"),
    Case("word-length", ADD, put(lambda f: f.operand(0), "wordLength", 4), "[0].wordLength"),
    Case("memory", ADD, put(lambda f: f.operand(0), "memOrg_", {"lx": {"isPresent": 1}}), "[0].memOrg_"),
    Case("dim-limits", ADD, put(lambda f: f.node(0), "maxDimSizes_", [-1, 0]), ".maxDimSizes_[1]"),
    Case("indirection", ADD, _index_tensor, "[1].indirectAllocType_"),
    Case("index-format", ADD, _index_class, "[0].dataFormat_"),
    Case(
        "own-distribution",
        ADD,
        put(lambda f: f.node(1)["coordinates_"], "coreIdToWkSlice_", {"0": {"mb": 1, "out": 0}}),
        "[1].coordinates_.coreIdToWkSlice_",
    ),
    # Addresses.
    Case("start-per-core", ADD, put(lambda f: f.start(0), "[32, 0, 0]", "0"), "[0].startAddressCoreCorelet_.data_"),
    Case("start-aligned", ADD, put(lambda f: f.start(0), "[3, 0, 0]", "1600"), ".data_.[3, 0, 0]"),
    Case("start-symbol", ADD, put(lambda f: f.start(0), "[3, 0, 0]", "-4"), ".data_.[3, 0, 0]"),
    Case(
        "segment", ADD, _all_starts(1, lambda core: 7 * SEGMENT + 512 * core), "[1].startAddressCoreCorelet_.data_.[0"
    ),
    Case("span", ADD1, _stretch, ".scheduleTree_[0]"),
    Case("starts-follow-slices", ADD, put(lambda f: f.start(0), "[3, 0, 0]", "2048"), "[0].startAddressCoreCorelet_"),
    Case(
        "outputs-disjoint", ADD, _all_starts(2, lambda core: 2 * SEGMENT + 384 * core), "[2].startAddressCoreCorelet_"
    ),
    Case("scratchpad", LX, _all_starts(0, lambda core: 1 << 21), "[0].startAddressCoreCorelet_"),
    Case("scratchpad-budget", LX, _all_starts(0, lambda core: 1_500_032), "[0].startAddressCoreCorelet_"),
    Case("scratchpad-starts", LX, put(lambda f: f.start(1), "[3, 0, 0]", "262144"), "[1].startAddressCoreCorelet_"),
    Case("operands-overlap", LX, _all_starts(1, lambda core: 65536), "[1].startAddressCoreCorelet_"),
    Case("back-gap", ADD, put(lambda f: f.node(0), "backGapCore_", {"out": {"-1": "32"}}), ".backGapCore_.out.-1"),
    # Gathers.
    Case("gather-division", ADD, gather("out"), ".numWkSlicesPerDim_.mb"),
    Case("gather-start", ADD, gather("mb"), "[1].startAddressCoreCorelet_.data_.[1, 0, 0]"),
    # Folds and coordinates.
    Case("fold-lengths", ADD, lambda f: f.coordinate(0, "mb")["folds"]["dim_prop_attr"].pop(), ".dim_prop_func"),
    Case("fold-extents", ADD, put(lambda f: f.top["sdscFolds_"]["dim_prop_attr"][0], "factor_", 0), ".factor_"),
    Case("fold-data", ADD, put(lambda f: f.top["sdscFolds_"]["data_"], "[0, 0]", "0"), ".sdscFolds_.data_.[0, 0]"),
    Case("coordinate-dims", ADD, drop(lambda f: f.node(0)["coordinates_"]["coordInfo"], "mb"), ".coordInfo"),
    Case(
        "coordinate-folds",
        ADD,
        put(lambda f: f.coordinate(0, "mb")["folds"]["dim_prop_func"][0]["Affine"], "alpha_", 8),
        ".mb.folds.dim_prop_func[0]",
    ),
    Case("coordinate-elements", ADD, put(lambda f: f.coordinate(0, "mb"), "elemArr", 2), ".coordInfo.mb.elemArr"),
    # The operation.
    Case("function-known", ADD, put(lambda f: f.compute, "opFuncName", "gather"), ".opFuncName"),
    Case("function-unit", ADD, put(lambda f: f.compute, "exUnit", "pt"), ".exUnit"),
    Case("function-inputs", SUM, put(lambda f: f.compute, "inputLabeledDs", ["Tensor0-idx0"]), ".inputLabeledDs"),
    Case("index-operands", ADD, put(lambda f: f.operand(0), "dsType_", "KERNEL_IDX"), ".computeOp_[0]"),
    Case("function-formats", CLIP, put(lambda f: f.operand(0), "dataFormat_", "BFLOAT16"), "[0].dataFormat_"),
    Case(
        "operation-format",
        ADD,
        put(lambda f: f.compute["attributes_"], "dataFormat_", "IEEE_FP32"),
        ".attributes_.dataFormat_",
    ),
    Case("nonstick", SUM, put(lambda f: f.compute, "opFuncName", "sumnonstick"), ".opFuncName"),
    Case("result-dims", BIAS, put(lambda f: f.operand(2), "scale_", [-1, 1]), "[2].scale_"),
    Case(
        "function-sticks",
        RESTICK,
        put(lambda f: f.dsc["primaryDsInfo_"]["KERNEL"], "stickDimOrder_", ["out"]),
        ".KERNEL.stickDimOrder_",
    ),
    Case("function-constants", CLIP, put(lambda f: f.dsc["constantInfo_"]["0"], "name_", "clipMax"), ".constantInfo_"),
    Case(
        "constant-word",
        CLIP,
        put(lambda f: f.dsc["constantInfo_"]["0"]["data_"]["data_"], "[0, 0, 0]", [1 << 16]),
        ".constantInfo_.0.data_.data_.[0, 0, 0][0]",
    ),
    Case(
        "constant-format",
        CLIP,
        put(lambda f: f.dsc["constantInfo_"]["1"], "dataFormat_", "IEEE_FP32"),
        ".constantInfo_.1.dataFormat_",
    ),
    Case(
        "mask-word",
        PADDED,
        put(lambda f: f.dsc["constantInfo_"]["0"]["data_"]["data_"], "[0, 0, 0]", [1]),
        ".data_.[0, 0, 0][0]",
    ),
    # The whole.
    Case("executable", ADD, put(lambda f: f.operand(0), "dataFormat_", "SEN018_INT"), "[0].dataFormat_"),
    Case("usual-value", ADD, put(TOP, "coreFoldProp_", {"factor_": 31, "label_": "core"}), ".coreFoldProp_"),
    Case("consistent", PADDED, put(DSC, "coordinateMasking_", {"out": [[0, 256]]}), ".coordinateMasking_.out"),
)
