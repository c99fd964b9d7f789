"""Each kind of misbehaviour, planted once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.dialects.test import TestOp

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, Indirect, IndirectKind, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.faults import fault
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.superdsc.run import execute
from tests.oracles.superdsc_decoder import Decoder
from tests.unit.machine.programs import descriptor_of, dsc_of, get, load, memory_for, put

ADD = "a32_add_128x256_32core"
SUM = "c32_sum_lastdim_128x256"
MATMUL = "b32k_matmul_256x512x128_mb4_out2_in4"
GIB16 = 16 * 1024**3
RNG = np.random.default_rng(7)


def starts_of(obj: dict[str, Any], operand: int) -> dict[str, str]:
    """The address table of one operand, to be changed in place."""
    return dsc_of(obj)["scheduleTree_"][operand]["startAddressCoreCorelet_"]["data_"]


def prepared(stem: str, *shapes: tuple[int, ...]) -> ExactMemory:
    """Memory with random inputs of the given shapes where the file expects them."""
    decoder = Decoder(load(stem))
    memory = memory_for(decoder)
    for index, shape in enumerate(shapes):
        put(memory, decoder, index, RNG.standard_normal(shape))
    return memory


def kind_of(obj: dict[str, Any], memory: ExactMemory) -> MachineFault:
    """Run and return the fault."""
    with pytest.raises(MachineFault) as caught:
        execute(descriptor_of(obj), memory)
    return caught.value


def test_uninitialised_lane_zero() -> None:
    fault = kind_of(load(ADD), prepared(ADD, (128, 256)))
    assert fault.kind == "uninitialised-read"
    assert "Tensor1" in str(fault)
    assert "0:add" in str(fault)
    assert hex(GIB16) in str(fault)


def test_uninitialised_lane_in_a_sum() -> None:
    fault = kind_of(load(SUM), prepared(SUM, (128, 200)))
    assert fault.kind == "uninitialised-read"
    assert "reduction" in str(fault)


def test_uninitialised_lane_in_a_contraction() -> None:
    fault = kind_of(load(MATMUL), prepared(MATMUL, (256, 500), (128, 512)))
    assert fault.kind == "uninitialised-read"
    assert "Tensor0" in str(fault)


def test_padding_columns_of_a_weight_are_no_fault() -> None:
    decoder = Decoder(load(MATMUL))
    memory = prepared(MATMUL, (256, 512), (100, 512))
    execute(descriptor_of(load(MATMUL)), memory)
    _, written = get(memory, decoder, 2)
    assert written[:, :100].all()
    assert not written[:, 100:].any()


def test_an_add_carries_padding_lanes_along() -> None:
    decoder = Decoder(load(ADD))
    memory = prepared(ADD, (128, 256), (128, 200))
    execute(descriptor_of(load(ADD)), memory)
    _, written = get(memory, decoder, 2)
    assert written[:, :200].all()
    assert not written[:, 200:].any()


def test_a_restickify_copies_what_was_never_written() -> None:
    stem = "g8_restickify_128x256"
    decoder = Decoder(load(stem))
    memory = prepared(stem, (128, 70))
    execute(descriptor_of(load(stem)), memory)
    _, written = get(memory, decoder, 1)
    assert written[:, :70].all()
    assert not written[:, 70:].any()


def test_out_of_bounds() -> None:
    obj = load(ADD)
    for core in range(32):
        starts_of(obj, 0)[f"[{core}, 0, 0]"] = str(3 * GIB16 + 512 * core)
    fault = kind_of(obj, prepared(ADD, (128, 256), (128, 256)))
    assert fault.kind == "out-of-bounds"
    assert "argument 2" in str(fault)


def test_a_start_off_the_stick_grid() -> None:
    obj = load(ADD)
    starts_of(obj, 1)["[3, 0, 0]"] = str(GIB16 + 1536 + 64)
    fault = kind_of(obj, prepared(ADD, (128, 256), (128, 256)))
    assert fault.kind == "misaligned"
    assert "core 3" in str(fault)
    assert "Tensor1" in str(fault)


def test_a_broken_stick() -> None:
    obj = load(ADD)
    top = next(iter(obj.values()))
    top["numWkSlicesPerDim_"] = {"mb": 4, "out": 8}
    top["coreIdToWkSlice_"] = {str(c): {"mb": c % 4, "out": c // 4} for c in range(32)}
    fault = kind_of(obj, prepared(ADD, (128, 256), (128, 256)))
    assert fault.kind == "misaligned"
    assert "whole sticks" in str(fault)


def test_wrong_format() -> None:
    memory = prepared(ADD, (128, 256), (128, 256))
    memory.store(np.asarray([GIB16 + 512]), [1.0], "BFLOAT16")
    fault = kind_of(load(ADD), memory)
    assert fault.kind == "wrong-format"
    assert "BFLOAT16" in str(fault)


def test_half_of_a_wide_element() -> None:
    memory = prepared(ADD, (128, 256), (128, 256))
    memory.store(np.asarray([GIB16]), [1.0], "IEEE_FP32")
    assert kind_of(load(ADD), memory).kind == "wrong-format"


def test_a_wide_element_overwritten_in_part() -> None:
    stem = "f32_add_fp32_128x256"
    memory = prepared(stem, (128, 256), (128, 256))
    memory.store(np.asarray([6]), [1.0], "SEN169_FP16")
    assert "partly overwritten" in str(kind_of(load(stem), memory))


@pytest.mark.parametrize("target", ["[4, 0, 0]", "[0, 0, 0]"])
def test_double_write(target: str) -> None:
    obj = load(ADD)
    starts_of(obj, 2)["[5, 0, 0]"] = starts_of(obj, 2)[target]
    fault = kind_of(obj, prepared(ADD, (128, 256), (128, 256)))
    assert fault.kind == "double-write"
    assert "core 5" in str(fault)


def test_all_cores_on_one_output() -> None:
    obj = load(ADD)
    for core in range(32):
        starts_of(obj, 2)[f"[{core}, 0, 0]"] = str(2 * GIB16)
    assert kind_of(obj, prepared(ADD, (128, 256), (128, 256))).kind == "double-write"


def test_a_restickify_onto_its_own_input() -> None:
    stem = "g8_restickify_128x256"
    obj = load(stem)
    for core, address in starts_of(obj, 1).items():
        starts_of(obj, 1)[core] = str(int(address) - GIB16)
    fault = kind_of(obj, prepared(stem, (128, 256)))
    assert fault.kind == "read-write-race"
    assert "65536 bytes" in str(fault)


def test_an_add_onto_one_row_further() -> None:
    obj = load("a1_add_128x256_1core")
    starts_of(obj, 2)["[0, 0, 0]"] = "128"
    memory = prepared("a1_add_128x256_1core", (128, 256), (128, 256))
    memory.add_region("after", 65536, 128)
    fault = kind_of(obj, memory)
    assert fault.kind in ("read-write-race", "out-of-bounds")


def test_a_torn_cohort() -> None:
    obj = load(MATMUL)
    starts_of(obj, 2)["[1, 0, 0]"] = str(2 * GIB16 + 128)
    assert kind_of(obj, prepared(MATMUL, (256, 512), (128, 512))).kind == "cohort-mismatch"


def test_an_unbound_symbol() -> None:
    view = descriptor_of(load(ADD))
    operand = view.operands[0]
    symbolic = Operand(operand.order, operand.extents, operand.stick, operand.format, ("-1",) * 32, symbolic=True)
    view = Descriptor(0, "add", "sfp", view.op_class, view.dims, (symbolic, *view.operands[1:]), slices=view.slices)
    with pytest.raises(MachineFault, match="unbound-symbol"):
        execute(view, prepared(ADD, (128, 256), (128, 256)), {-2: 0})


def test_scratchpad_overflow() -> None:
    obj = load("06_ReStickifyOpLx_lx")
    for core in range(32):
        starts_of(obj, 1)[f"[{core}, 0, 0]"] = str(2 * 1024 * 1024 - 128)
    memory = ExactMemory()
    assert kind_of(obj, memory).kind == "lx-overflow"


@pytest.mark.parametrize(("rows", "kind"), [(2**22, "span"), (2**21 - 32, "out-of-bounds")])
def test_a_span_over_256_mib(rows: int, kind: str) -> None:
    """The limit is 2,097,120 rows of one stick on one core; 32 cores share twice as many without a span fault."""
    dims = (Dim("mb", rows, 32), Dim("out", 64))
    start = tuple(str(c * rows // 32 * 128) for c in range(32))
    narrow = Operand(("mb", "out"), (rows, 64), "out", "SEN169_FP16", start)
    one_core = Operand(("out", "mb"), (64, rows), "out", "SEN169_FP16", ("0",))
    for dim, operand, expected in (
        (dims, narrow, "out-of-bounds"),
        ((Dim("mb", rows), Dim("out", 64)), one_core, kind),
    ):
        with pytest.raises(MachineFault) as caught:
            execute(Descriptor(0, "abs", "sfp", OpClass.POINTWISE, dim, (operand, operand)), ExactMemory())
        assert caught.value.kind == expected


def where_program(stick_lanes: int) -> tuple[Descriptor, ExactMemory]:
    """where3 on one stick: condition, x, y and result at 0, 128, 256, 384."""
    dims = (Dim("out", stick_lanes),)
    operands = tuple(Operand(("out",), (stick_lanes,), "out", "SEN169_FP16", (str(128 * place),)) for place in range(4))
    memory = ExactMemory()
    memory.add_region("all", 0, 512)
    return Descriptor(0, "where3", "sfp", OpClass.POINTWISE, dims, operands), memory


def test_a_select_counts_only_what_it_picks() -> None:
    view, memory = where_program(64)
    lanes = 2 * np.arange(64)
    memory.store(lanes, np.ones(64), "SEN169_FP16")
    memory.store(lanes + 128, np.arange(64), "SEN169_FP16")
    execute(view, memory)
    values, written = memory.load(lanes + 384, "SEN169_FP16")
    assert written.all()
    assert values.tolist() == list(range(64))


def test_a_select_of_what_was_never_written() -> None:
    view, memory = where_program(64)
    lanes = 2 * np.arange(64)
    memory.store(lanes, np.zeros(64), "SEN169_FP16")
    memory.store(lanes + 128, np.arange(64), "SEN169_FP16")
    with pytest.raises(MachineFault, match="uninitialised-read"):
        execute(view, memory)


def gather_program(indices: list[int]) -> tuple[Descriptor, ExactMemory]:
    """Pick 32 rows of a (10, 128) table: index at 0, table [10, 2, 64] at 4096, result [2, 32, 64] at 65536."""
    dims = (Dim("mb", 32), Dim("out", 128))
    operands = (
        Operand(("mb",), (32,), "mb", "SENUINT32", ("0",), indirect=Indirect(IndirectKind.INDEX, 1)),
        Operand(
            ("out", "mb"),
            (128, 32),
            "out",
            "SEN169_FP16",
            ("4096",),
            indirect=Indirect(IndirectKind.VALUE, 0, (-1, -1)),
        ),
        Operand(("mb", "out"), (32, 128), "out", "SEN169_FP16", ("65536",)),
    )
    memory = ExactMemory()
    memory.add_region("index", 0, 128)
    memory.add_region("table", 4096, 10 * 256)
    memory.add_region("result", 65536, 2 * 32 * 128)
    memory.store(4096 + 2 * np.arange(1280), np.arange(1280), "SEN169_FP16")
    if indices:
        memory.store(4 * np.arange(len(indices)), indices, "IEEE_INT32")
    return Descriptor(0, "identity", "sfp", OpClass.GATHER, dims, operands), memory


def test_gather_picks_rows() -> None:
    picks = [7, 0, 9, 3] * 8
    view, memory = gather_program(picks)
    execute(view, memory)
    row, column = np.indices((32, 128))
    values, written = memory.load(65536 + (column // 64) * 32 * 128 + row * 128 + column % 64 * 2, "SEN169_FP16")
    assert written.all()
    assert np.array_equal(values, np.arange(1280).reshape(10, 128)[picks])


def test_gather_index_out_of_range() -> None:
    view, memory = gather_program([1] * 11 + [10] + [1] * 20)
    with pytest.raises(
        MachineFault, match=r"index-out-of-range: index 10 at \{'mb': 11\} is outside a table of 10 rows"
    ):
        execute(view, memory)


def test_gather_index_never_written() -> None:
    view, memory = gather_program([1] * 31)
    with pytest.raises(MachineFault, match="uninitialised-read: an index"):
        execute(view, memory)


def test_what_the_machine_has_no_rule_for_is_no_fault() -> None:
    view = descriptor_of(load(ADD))
    unknown = Descriptor(0, "conv2d", "pt", view.op_class, view.dims, view.operands, slices=view.slices)
    with pytest.raises(UnsupportedError, match="conv2d"):
        execute(unknown, ExactMemory())


def test_the_place_of_an_op_has_its_core_if_known() -> None:
    op = TestOp()
    assert fault(FaultKind.DEADLOCK, "two wait", op).where == "test.op"
    found = fault(FaultKind.LX_OVERFLOW, "too large", op, core=0, tensor="input 1", span=(128, 256), hint="less")
    assert (found.kind, found.where, found.hint) == ("lx-overflow", "test.op, core 0", "less")
    place = found.place
    assert (place.op, place.tensor, place.core, place.low, place.high) == ("test.op", "input 1", 0, 128, 256)
    assert (place.level, place.line) == ("test", None)


def test_the_place_of_an_op_has_its_line_if_known() -> None:
    op = TestOp()
    op.location = FileLineColLoc(StringAttr("m.py"), IntAttr(3), IntAttr(1))
    found = fault(FaultKind.DEADLOCK, "two wait", op)
    assert found.place.line == "m.py:3"
    assert found.where == f"test.op {op.location}"
