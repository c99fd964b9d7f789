"""Memory of device numerics by itself: bytes, rounding at a store, formats."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import InputError, MachineFault, UnsupportedError
from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.options import MachineOptions


def memory_of(options: MachineOptions | None = None) -> DeviceMemory:
    memory = DeviceMemory(options=options)
    memory.add_region("a", 1280, 256)
    return memory


def at(*offsets: int) -> np.ndarray:
    return 1280 + np.asarray(offsets)


def test_the_bytes_are_the_codes() -> None:
    memory = memory_of()
    memory.store(at(0, 4, 6), [1.0, -1e4, 65504.0], "SEN169_FP16")
    memory.store(at(8, 12), [1.5, -2.0], "IEEE_FP32")
    memory.store(at(16, 20), [-2, 2**31 - 1], "IEEE_INT32")
    memory.store(at(24), [2**32 - 1], "SENUINT32")
    expected = "003e 0000 71d8 005e  0000c03f 000000c0  feffffff ffffff7f  ffffffff"
    assert memory.raw(1280, 28) == bytes.fromhex(expected)


def test_single_numbers_are_rounded_as_double_ones_are() -> None:
    memory = memory_of()
    memory.store(at(0, 4, 6), np.array([1.0, -1e4, 65504.0], np.float32), "SEN169_FP16")
    assert memory.raw(1280, 8) == bytes.fromhex("003e 0000 71d8 005e")


def test_a_transfer_comes_back_rounded() -> None:
    memory = memory_of()
    memory.store(at(0, 4), [1 + 2.0**-10, 1e300], "SEN169_FP16")
    values, written = memory.load(at(0, 2, 4), "SEN169_FP16")
    assert values.tolist() == [1 + 2.0**-9, 0.0, 8_573_157_376.0]
    assert written.tolist() == [True, False, True]
    memory.store(at(8, 12), [1 + 2.0**-24, 1e300], "IEEE_FP32")
    assert memory.load(at(8, 12), "IEEE_FP32")[0].tolist() == [1.0, np.inf]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, -np.nan])
def test_the_merged_symbol_has_one_spelling(value: float) -> None:
    memory = memory_of()
    memory.store(at(0), [value], "SEN169_FP16")
    assert memory.raw(1280, 2) == b"\xff\x7f"
    assert np.isnan(memory.load(at(0), "SEN169_FP16")[0]).all()


def test_overflow_is_a_choice_and_infinity_is_not() -> None:
    values = [1e30, -1e30, np.inf]
    saturating, merging = memory_of(), memory_of(MachineOptions(numerics="device", overflow="nan"))
    for memory in (saturating, merging):
        memory.store(at(0, 2, 4), values, "SEN169_FP16")
    assert saturating.raw(1280, 6) == bytes.fromhex("fe7f feff ff7f")
    assert merging.raw(1280, 6) == bytes.fromhex("ff7f ff7f ff7f")


def test_integer_results_keep_their_low_bits() -> None:
    memory = memory_of()
    memory.store(at(0, 4, 8, 12), [2.0**31, -(2.0**32) - 5, np.nan, -7], "IEEE_INT32")
    assert memory.load(at(0, 4, 8, 12), "IEEE_INT32")[0].tolist() == [-(2.0**31), -5, 0, -7]
    memory.store(at(16, 20), [2.0**32 + 3, -1], "SENUINT32")
    assert memory.load(at(16, 20), "SENUINT32")[0].tolist() == [3, 2**32 - 1]


def test_the_last_element_of_a_region_is_inside() -> None:
    memory = memory_of()
    memory.store(at(252), [2.5], "IEEE_FP32")
    assert memory.load(at(252), "IEEE_FP32")[0].tolist() == [2.5]
    with pytest.raises(MachineFault, match="out-of-bounds"):
        memory.store(at(254), [2.5], "IEEE_FP32")


def test_other_formats_are_a_fault_or_unsupported() -> None:
    memory = memory_of()
    memory.store(at(0), [3], "IEEE_INT32")
    assert memory.load(at(0), "SENUINT32")[0].tolist() == [3]
    with pytest.raises(MachineFault, match="wrong-format: read as IEEE_FP32, last written as IEEE_INT32"):
        memory.load(at(0), "IEEE_FP32")
    with pytest.raises(UnsupportedError, match="SENINT4"):
        memory.store(at(0), [1.0], "SENINT4")


def test_functions_compute_in_single_precision_unless_asked_for_double() -> None:
    """Integers always in double: single precision does not hold all that a format has."""
    narrow, wide = memory_of(), memory_of(MachineOptions(numerics="device", arithmetic="float64"))
    for memory, width in ((narrow, np.float32), (wide, np.float64)):
        memory.store(at(0), [0.3], "SEN169_FP16")
        memory.store(at(128), [2**31 - 1], "IEEE_INT32")
        assert [memory.load(at(0), "SEN169_FP16")[0].dtype, memory.load(at(128), "IEEE_INT32")[0].dtype] == [
            width,
            np.float64,
        ]
        assert memory.load(at(0), "SEN169_FP16")[0].tolist() == [0.2998046875]  # 614 / 2048: ten bits of 0.3
        assert memory.load(at(128), "IEEE_INT32")[0].tolist() == [2**31 - 1]


def test_partial_sums_are_wide_by_default() -> None:
    third = np.asarray([1 / 3])
    rounded = DeviceMemory(options=MachineOptions(numerics="device", partial_sums="rounded"))
    assert DeviceMemory().partial_sum(third, "SEN169_FP16").tolist() == [1 / 3]
    assert rounded.partial_sum(third, "SEN169_FP16").tolist() == [683 / 2048]
    assert ExactMemory().partial_sum(third, "SEN169_FP16").tolist() == [1 / 3]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"numerics": "fast"}, "numerics must be one of exact, device, none, got 'fast'"),
        ({"numerics": "device", "overflow": "wrap"}, "overflow must be one of saturate, nan"),
        ({"numerics": "device", "partial_sums": "dl16"}, "partial_sums must be one of wide, rounded"),
        ({"partial_sums": "rounded"}, "exact numerics never do"),
        ({"overflow": "nan"}, "exact numerics never do"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MachineOptions(**settings)


def test_codes_are_stored_as_the_numbers_that_they_encode() -> None:
    """Every code, among them the merged symbol, in both of its spellings."""
    codes = np.arange(1 << 16, dtype=np.uint16).reshape(-1, 64)
    numbers, memory = np.empty(codes.shape, np.float32), memory_of()
    memory.put_codes(numbers, codes, "SEN169_FP16")
    merged = codes & 0x7FFF == 0x7FFF
    assert np.isnan(numbers[merged]).all()
    magnitude = np.ldexp(1 + (codes & 511) / 512, ((codes >> 9) & 63).astype(np.int64) - 31)
    expected = np.where(codes & 0x7FFF == 0, 0.0, magnitude) * np.where(codes & 0x8000, -1.0, 1.0)
    assert np.array_equal(numbers[~merged], expected[~merged])
    assert np.array_equal(np.signbit(numbers[~merged]), (codes & 0x8000 > 0)[~merged])
    words = np.arange(8, dtype=np.float32)
    sent = np.empty(8, np.float32)
    memory.put_codes(sent, words, "IEEE_FP32")
    assert sent.tolist() == words.tolist()


def test_what_is_rounded_already_is_moved_as_it_is() -> None:
    memory = DeviceMemory()
    held, moved = np.zeros(3, np.float32), np.zeros(3, np.float32)
    memory.put(held, [1.0, 1e10, 1.0 + 2**-12], "SEN169_FP16")
    memory.move(moved, held, "SEN169_FP16")
    assert moved.tobytes() == held.tobytes()
    memory.move(moved, np.array([1.0, 2.0, 1.0 + 2**-12]), "SEN169_FP16")  # wide numbers are rounded as any others
    assert moved.tolist() == [1.0, 2.0, 1.0]
    assert memory.tally.overflows == 1
