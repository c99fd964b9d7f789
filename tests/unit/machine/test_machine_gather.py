"""Gathers written as JSON; rows are found by the witness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.build import build
from spyre_mlir.dialects.superdsc.describe import describe_json
from spyre_mlir.dialects.superdsc.descriptor import (
    Descriptor,
    Dim,
    Indirect,
    IndirectKind,
    OpClass,
    Operand,
    start_offsets,
)
from spyre_mlir.dialects.superdsc.mirror import sdsc_to_json
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.memory import ExactMemory
from spyre_mlir.machine.superdsc import execute
from tests.unit.machine.programs import get, put
from tests.witness.superdsc_decoder import Decoder

ROWS, PICKS, COLUMNS = 50, 64, 128
TABLE, RESULT = 1 << 20, 1 << 21


def program(table_step: int) -> Descriptor:
    """64 rows of a (50, 128) table over 2 x 2 cores; the table is [50, 2, 64] on the device.

    Args:
        table_step: bytes by which the second slice of indices starts further into the table; 0 is right.
    """
    dims = (Dim("mb", PICKS, 2), Dim("out", COLUMNS, 2))
    index = Operand(("mb",), (PICKS,), "mb", "SENUINT32", (), indirect=Indirect(IndirectKind.INDEX, 1))
    order = ("out", "mb")
    starts = tuple(str(TABLE + c % 2 * table_step + c // 2 * 128) for c in range(4))
    table = Operand(order, (COLUMNS, PICKS), "out", "SEN169_FP16", starts, indirect=Indirect(IndirectKind.VALUE, 0))
    result = Operand(("mb", "out"), (PICKS, COLUMNS), "out", "SEN169_FP16", ())
    index = replace(index, start=tuple(str(o) for o in start_offsets(dims, index, OpClass.GATHER)))
    result = replace(result, start=tuple(str(RESULT + o) for o in start_offsets(dims, result, OpClass.GATHER)))
    return Descriptor(0, "identity", "sfp", OpClass.GATHER, dims, (index, table, result))


def test_rows_are_where_the_witness_finds_them() -> None:
    value = sdsc_to_json(build(program(0)))
    decoder, view = Decoder(value), describe_json(value)
    numbers = np.random.default_rng(5)
    picks = numbers.integers(0, ROWS, PICKS)
    table = numbers.standard_normal((ROWS, COLUMNS))
    memory = ExactMemory()
    for name, base, size in (("index", 0, 4 * PICKS), ("table", TABLE, ROWS * 256), ("result", RESULT, PICKS * 256)):
        memory.add_region(name, base, size)
    put(memory, decoder, 0, picks.astype(np.float64))
    for core in decoder.cores:
        coords, addresses = decoder.gathered_addresses(1, core, picks)
        memory.store(addresses, table[picks[coords["mb"]], coords["out"]], "SEN169_FP16")
    execute(view, memory)
    result, written = get(memory, decoder, 2)
    assert written.all()
    assert np.array_equal(result, table[picks])


def test_the_witness_s_rows_by_hand() -> None:
    decoder = Decoder(sdsc_to_json(build(program(0))))
    picks = np.arange(PICKS) % ROWS
    coords, addresses = decoder.gathered_addresses(1, 3, picks)
    (found,) = addresses[(coords["mb"] == 60) & (coords["out"] == 65)].tolist()
    assert found == TABLE + 10 * 256 + 128 + 2


def test_cores_must_start_at_the_same_row() -> None:
    view = describe_json(sdsc_to_json(build(program(32 * 256))))
    memory = ExactMemory()
    memory.add_region("index", 0, 4 * PICKS)
    memory.store(4 * np.arange(PICKS), np.zeros(PICKS), "SENUINT32")
    with pytest.raises(UnsupportedError, match="different rows of the table"):
        execute(view, memory)
