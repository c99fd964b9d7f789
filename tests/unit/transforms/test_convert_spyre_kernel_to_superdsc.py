"""Kernel text, written by hand, through `convert-spyre-kernel-to-superdsc`: equal to the example files, key for key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from spyre_mlir.backend.write import write_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.transforms.convert_spyre_kernel_to_superdsc import ConvertSpyreKernelToSuperdscPass
from spyre_mlir.universe import make_context
from tests.paths import DATA

DL16, FP32 = "SEN169_FP16", "IEEE_FP32"


@dataclass(frozen=True)
class Tensor:
    """A device tensor, the index map of the one op on it, and the segment it lies in."""

    shape: tuple[int, ...]
    layout: str
    index: str
    segment: int
    format: str = DL16

    @property
    def type(self) -> str:
        return f"!spyre.tensor<{list(self.shape)} x {self.format}, {self.layout}, hbm>"


@dataclass(frozen=True)
class Case:
    """What one example file says, as one kernel op."""

    file: str
    op: str
    tensors: tuple[Tensor, ...]
    version: str = "TS26"
    first: int = 0

    def text(self) -> str:
        """A function with buffers and the op; the last tensor is the result."""
        lines = [f"%{n} = spyre.kernel.alloc segment {t.segment} : {t.type}" for n, t in enumerate(self.tensors)]
        uses = [f"%{n}[{t.index}] : {t.type}" for n, t in enumerate(self.tensors)]
        lines.append(f"{self.op} ins({', '.join(uses[:-1])}) outs({uses[-1]})")
        return "func.func @main() {\n" + "\n".join(lines) + "\nfunc.return\n}"


# Rows of sticks, stick after stick: the stick number outermost.
COLUMNS_IN_LANES = "order [1, 0], stick 1"
ROWS_IN_LANES = "order [0, 1], stick 0"
VECTOR = "order [0], stick 0"
SPARSE_VECTOR = "order [0, unit], stick unit"


def matrices(*segments: int, form: str = DL16) -> tuple[Tensor, ...]:
    return tuple(Tensor((128, 256), COLUMNS_IN_LANES, "m, n", s, form) for s in segments)


def products(m: int, n: int, k: int) -> tuple[Tensor, ...]:
    return (
        Tensor((m, k), COLUMNS_IN_LANES, "m, k", 0),
        Tensor((k, n), COLUMNS_IN_LANES, "k, n", 1),
        Tensor((m, n), COLUMNS_IN_LANES, "m, n", 2),
    )


ADD = 'spyre.kernel.compute "add" [m = 128 over 32, n = 256]'
CASES = [
    Case(
        "superdsc_real/01_add_512x512_32core_hbm",
        'spyre.kernel.compute "add" [m = 512, n = 512 over 32]',
        tuple(Tensor((512, 512), ROWS_IN_LANES, "m, n", s) for s in (3, 1, 4)),
        version="TS25",
        first=1,
    ),
    Case(
        "superdsc_real/02_ReStickifyOpHBM_512x512",
        "spyre.kernel.restickify [m = 512 over 8, n = 512 over 4]",
        (Tensor((512, 512), COLUMNS_IN_LANES, "m, n", 0), Tensor((512, 512), ROWS_IN_LANES, "m, n", 3)),
        version="TS25",
    ),
    Case(
        "superdsc_real/03_batchmatmul_512_mb32",
        'spyre.kernel.compute "batchmatmul" [m = 512 over 32, n = 512, k = 512]',
        products(512, 512, 512),
        version="TS25",
    ),
    Case("superdsc_worked/a1_add_128x256_1core", 'spyre.kernel.compute "add" [m = 128, n = 256]', matrices(0, 1, 2)),
    Case("superdsc_worked/a32_add_128x256_32core", ADD, matrices(0, 1, 2)),
    Case(
        "superdsc_worked/b32_matmul_256x512x128_mb32",
        'spyre.kernel.compute "batchmatmul" [m = 256 over 32, n = 128, k = 512]',
        products(256, 128, 512),
    ),
    Case(
        "superdsc_worked/b32k_matmul_256x512x128_mb4_out2_in4",
        'spyre.kernel.compute "batchmatmul" [m = 256 over 4, n = 128 over 2, k = 512 over 4]',
        products(256, 128, 512),
    ),
    Case(
        "superdsc_worked/c32_sum_lastdim_128x256",
        'spyre.kernel.compute "sum" [m = 128 over 32, r = 256]',
        (Tensor((128, 256), COLUMNS_IN_LANES, "m, r", 0), Tensor((128,), SPARSE_VECTOR, "m", 1)),
    ),
    Case(
        "superdsc_worked/c32p_sum_lastdim_128x200_padded",
        'spyre.kernel.compute "sum" [m = 128 over 32, r = 200]',
        (Tensor((128, 200), COLUMNS_IN_LANES, "m, r", 0), Tensor((128,), SPARSE_VECTOR, "m", 1)),
    ),
    Case(
        "superdsc_worked/e32_add_bias_128x256_plus_256",
        ADD,
        (*matrices(0), Tensor((256,), VECTOR, "n", 1), *matrices(2)),
    ),
    Case("superdsc_worked/f32_add_fp32_128x256", ADD, matrices(0, 1, 2, form=FP32)),
    Case(
        "superdsc_worked/g8_restickify_128x256",
        "spyre.kernel.restickify [m = 128 over 2, n = 256 over 4]",
        (*matrices(0), Tensor((128, 256), ROWS_IN_LANES, "m, n", 1)),
    ),
]


def emitted(case: Case) -> Any:
    context = make_context()
    module = parse_module(case.text(), context)
    verify_module(module)
    ConvertSpyreKernelToSuperdscPass(addresses="concrete", version=case.version, first=case.first).apply(
        context, module
    )
    verify_module(module)
    (sdsc,) = (op for op in module.ops if isinstance(op, SdscOp))
    return json.loads(write_json(sdsc))


def ordered(value: object) -> object:
    """The value with its key order made part of it."""
    if isinstance(value, dict):
        return [(key, ordered(inner)) for key, inner in value.items()]
    return [ordered(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.partition("/")[2])
def test_the_pass_writes_the_file_key_for_key(case: Case) -> None:
    wanted = json.loads((DATA / f"{case.file}.json").read_text())
    found = emitted(case)
    assert found == wanted
    assert ordered(found) == ordered(wanted)


def test_a_sum_over_rows_labels_its_result_first() -> None:
    """The file c32n calls the summed dimension mb; the front end lists the result's dimensions first and calls it out.

    Worked out by hand from the front end's rules: columns mb in 4, rows out in 8, the eight cores of a column slice
    on one address.
    """
    case = Case(
        "",
        'spyre.kernel.compute "sum" [r = 128 over 8, n = 256 over 4]',
        (Tensor((128, 256), COLUMNS_IN_LANES, "r, n", 0), Tensor((256,), VECTOR, "n", 1)),
    )
    ((name, top),) = emitted(case).items()
    ((_, dsc),) = top["dscs_"][0].items()
    assert name == "0_sumnonstick"
    assert top["numWkSlicesPerDim_"] == {"mb": 4, "out": 8}
    assert dsc["N_"] == {"name_": "n", "mb_": 256, "out_": 128}
    assert [tensor["scale_"] for tensor in dsc["labeledDs_"]] == [[1, 1], [-1, 1]]
    starts = [list(node["startAddressCoreCorelet_"]["data_"].values()) for node in dsc["scheduleTree_"]]
    # A slice of columns is one stick of 128 rows, 128 bytes each; a slice of rows 16 of them.
    assert starts[0] == [str(128 * 128 * (core % 4) + 16 * 128 * (core // 4)) for core in range(32)]
    assert starts[1] == [str(2**34 + 128 * (core % 4)) for core in range(32)]


def test_the_order_of_keys_is_compared() -> None:
    assert ordered({"a": 1, "b": 2}) != ordered({"b": 2, "a": 1})


def test_an_op_of_another_level_among_kernels_is_named() -> None:
    case = Case("", ADD, matrices(0, 1, 2))
    text = case.text().replace(ADD, "%n = arith.addi %i, %i : index\n" + ADD).replace("@main()", "@main(%i: index)")
    module = parse_module(text, make_context())
    with pytest.raises(LoweringError, match=r"arith\.addi among kernel ops\n.*\n  try: run the passes"):
        ConvertSpyreKernelToSuperdscPass().apply(make_context(), module)


def test_kernels_of_two_functions_are_no_bundle() -> None:
    text = Case("", ADD, matrices(0, 1, 2)).text()
    module = parse_module(text + text.replace("@main", "@second"), make_context())
    with pytest.raises(
        LoweringError, match="2 functions have kernel ops, a bundle comes from one\n  try: put them into"
    ):
        ConvertSpyreKernelToSuperdscPass().apply(make_context(), module)
