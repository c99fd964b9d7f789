"""Gathers written as JSON; rows are found by the oracle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.describe import describe_json
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Descriptor,
    Dim,
    Indirect,
    IndirectKind,
    OpClass,
    Operand,
    start_offsets,
)
from spyre_mlir.errors import MachineFault
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from spyre_mlir.machine.superdsc.run import execute
from tests.oracles.superdsc_decoder import Decoder
from tests.unit.machine.programs import get, put

ROWS, PICKS, COLUMNS = 50, 64, 128
TABLE, RESULT = 1 << 20, 1 << 21


def program(columns: int = 1, step: int = 0) -> Descriptor:
    """64 rows of a (50, 128) table, their indices over 2 cores; the table is [50, 2, 64] on the device.

    Args:
        columns: slices of the columns; 1 is right.
        step: bytes by which each slice of columns starts further into the table; 0 is right.
    """
    dims = (Dim("mb", PICKS, 2), Dim("out", COLUMNS, columns))
    index = Operand(("mb",), (PICKS,), "mb", "SENUINT32", (), indirect=Indirect(IndirectKind.INDEX, 1))
    order = ("out", "mb")
    starts = tuple(str(TABLE + c // 2 * step) for c in range(2 * columns))
    table = Operand(order, (COLUMNS, PICKS), "out", "SEN169_FP16", starts, indirect=Indirect(IndirectKind.VALUE, 0))
    result = Operand(("mb", "out"), (PICKS, COLUMNS), "out", "SEN169_FP16", ())
    index = replace(index, start=tuple(str(o) for o in start_offsets(dims, index, OpClass.GATHER)))
    result = replace(result, start=tuple(str(RESULT + o) for o in start_offsets(dims, result, OpClass.GATHER)))
    return Descriptor(0, "identity", "sfp", OpClass.GATHER, dims, (index, table, result))


def filled(table: NDArray[Any], picks: NDArray[Any], decoder: Decoder, log: FaultLog | None = None) -> Memory:
    """Memory with the indices, and the table where the oracle finds it."""
    memory = ExactMemory()
    memory.log = log or FaultLog()
    for name, base, size in (("index", 0, 4 * PICKS), ("table", TABLE, ROWS * 256), ("result", RESULT, PICKS * 256)):
        memory.add_region(name, base, size)
    put(memory, decoder, 0, picks.astype(np.float64))
    row, column = np.indices(table.shape)
    memory.store(TABLE + row * 256 + column // 64 * 128 + column % 64 * 2, table, "SEN169_FP16")
    return memory


def test_rows_are_where_the_witness_finds_them() -> None:
    value = sdsc_to_json(build(program()))
    decoder, view = Decoder(value), describe_json(value)
    numbers = np.random.default_rng(5)
    picks = numbers.integers(0, ROWS, PICKS)
    table = numbers.standard_normal((ROWS, COLUMNS))
    memory = filled(table, picks, decoder)
    for core in decoder.cores:
        coords, addresses = decoder.gathered_addresses(1, core, picks)
        found, _ = memory.load(addresses, "SEN169_FP16")
        assert np.array_equal(found, table[picks[coords["mb"]], coords["out"]])
    execute(view, memory)
    result, written = get(memory, decoder, 2)
    assert written.all()
    assert np.array_equal(result, table[picks])


def test_the_witness_s_rows_by_hand() -> None:
    decoder = Decoder(sdsc_to_json(build(program())))
    picks = np.arange(PICKS) % ROWS
    coords, addresses = decoder.gathered_addresses(1, 1, picks)
    (found,) = addresses[(coords["mb"] == 60) & (coords["out"] == 65)].tolist()
    assert found == TABLE + 10 * 256 + 128 + 2


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (128, "core 2 starts its table at 0x100080, core 0 at 0x100000; all cores use one start"),
        (0, "dim out along the rows of the table is divided; every core reads its first slice"),
    ],
)
def test_cores_that_divide_the_rows_of_a_table(step: int, message: str) -> None:
    """Index becomes address with one start for all cores, so every core finds the columns of the first."""
    value = sdsc_to_json(build(program(columns=2, step=step)))
    decoder, view = Decoder(value), describe_json(value)
    table = np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS).astype(np.float64)
    picks = np.arange(PICKS) * 7 % ROWS
    with pytest.raises(MachineFault, match=f"divided-table: {message}") as caught:
        execute(view, filled(table, picks, decoder))
    assert caught.value.place.tensor == "Tensor1"
    memory = filled(table, picks, decoder, FaultLog("collect"))
    execute(view, memory)
    assert [fault.kind for fault in memory.log.faults] == ["divided-table"]
    result, written = get(memory, decoder, 2)
    assert written.all()
    assert np.array_equal(result, np.hstack([table[picks, :64]] * 2))


def test_cores_take_whole_sticks_of_indices() -> None:
    """16 of 32 indices are half a stick: nothing says where in it the second core would start."""
    view = program()
    dims = (replace(view.dims[0], extent=32), view.dims[1])
    view = replace(view, dims=dims, operands=tuple(replace(x, extents=(32,) * len(x.order)) for x in view.operands))
    memory = filled(np.zeros((ROWS, COLUMNS)), np.zeros(PICKS), Decoder(sdsc_to_json(build(program()))))
    with pytest.raises(MachineFault, match="misaligned: a core's 16 elements of stick dim mb are not whole sticks"):
        execute(view, memory)
