"""Memory without numerics: float32 that nothing rounds, and no record of what was written."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.memory.plain import PlainMemory
from spyre_mlir.machine.superdsc.run import execute
from spyre_mlir.machine.superdsc.stale_reads import History

DL16, FP32, INT32, FP8 = "SEN169_FP16", "IEEE_FP32", "IEEE_INT32", "SEN143_FP8"
THIRD = float(np.float32(1 / 3))  # DLFloat16 has ten bits of it


def memory(sticks: int = 8) -> PlainMemory:
    made = PlainMemory()
    made.add_region("HBM", 0, sticks * 128)
    return made


def double(*starts: int) -> Descriptor:
    """Adds a stick to another."""
    operands = tuple(Operand(("out",), (64,), "out", DL16, (str(start),)) for start in starts)
    return Descriptor(0, "add", "sfp", OpClass.POINTWISE, (Dim("out", 64),), operands)


@pytest.mark.parametrize(
    ("form", "value", "held"),
    [(DL16, THIRD, THIRD), (DL16, 1e30, np.float32(1e30)), (DL16, -np.inf, -np.inf), (FP32, THIRD, THIRD)],
)
def test_nothing_is_rounded_and_infinities_stay(form: str, value: float, held: float) -> None:
    made = memory()
    made.store(np.asarray([0]), np.asarray([value]), form)
    values, written = made.load(np.asarray([0]), form)
    assert (values.dtype, values.tolist(), written.all()) == (np.float32, [held], True)
    assert (made.tally.overflows, made.tally.specials) == (0, 0)


def test_integers_compute_in_float64_and_8_bit_floats_in_float32() -> None:
    made = memory()
    made.store(np.asarray([0]), np.asarray([2**31 - 1]), INT32)
    made.store(np.asarray([128]), np.asarray([3.25]), FP8)
    (number,), (small,) = made.load(np.asarray([0]), INT32)[0], made.load(np.asarray([128]), FP8)[0]
    assert (number, number.dtype) == (2.0**31 - 1, np.float64)
    assert (small, small.dtype) == (3.25, np.float32)  # the format has 3.0 and 3.25


def test_what_nothing_wrote_reads_as_zero() -> None:
    made = memory()
    made.store(2 * np.arange(64), np.full(64, THIRD), DL16)
    execute(double(0, 128, 256), made, history=History())
    values, written = made.load(256 + 2 * np.arange(64), DL16)
    assert values.tolist() == [THIRD] * 64
    assert written.all()


def test_memory_that_was_used_before_reads_as_zero() -> None:
    made = memory()
    made.store(np.asarray([0]), np.asarray([THIRD]), DL16)
    made.remove_region("HBM")
    made.add_region("HBM", 0, 8 * 128)
    assert made.load(np.asarray([0]), DL16)[0].tolist() == [0.0]


def test_another_format_is_read_as_it_lies() -> None:
    made = memory()
    made.store(np.asarray([0]), np.asarray([1.0]), FP32)
    made.load(np.asarray([0]), DL16)
    assert made.log.faults == []


def test_partial_sums_are_handed_on_as_they_are() -> None:
    third = np.asarray([1 / 3])
    assert made_sum(third) is third


def made_sum(values: np.ndarray) -> np.ndarray:
    return memory().partial_sum(values, DL16)


@pytest.mark.parametrize(
    ("view", "kind"),
    [
        (double(0, 128, 4096), FaultKind.OUT_OF_BOUNDS),
        (double(0, 64, 256), FaultKind.MISALIGNED),
        (replace(double(0, 128, 256), slices=({"out": 1},)), FaultKind.BAD_SCHEDULE),
    ],
)
def test_faults_of_addresses_are_found(view: Descriptor, kind: FaultKind) -> None:
    with pytest.raises(MachineFault) as caught:
        execute(view, memory())
    assert caught.value.kind == kind


def test_a_format_without_arithmetic_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="SENINT24"):
        memory().stored_type("SENINT24")
