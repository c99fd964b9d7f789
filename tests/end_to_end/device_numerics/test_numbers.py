"""Numbers besides DLFloat16 as the device holds them: 8-bit floats, 32-bit integers, truth values."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import MachineFault
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.machine.superdsc.run import execute
from spyre_mlir.machine.superdsc.stale_reads import History

DL16, FP8, INT32 = "SEN169_FP16", "SEN143_FP8", "IEEE_INT32"
SMALL = {"SEN143_FP8": ml_dtypes.float8_e4m3fn, "SEN152_FP8": ml_dtypes.float8_e5m2fnuz}
LANDMARKS = {
    "SEN143_FP8": {0x38: 1.0, 0x7E: 448.0, 0x01: 2.0**-9, 0x08: 2.0**-6, 0xB8: -1.0, 0x00: 0.0},
    "SEN152_FP8": {0x40: 1.0, 0x7F: 57344.0, 0x01: 2.0**-17, 0x04: 2.0**-15, 0xC0: -1.0, 0x00: 0.0},
}


def device(size: int = 8192, **settings: str) -> Memory:
    memory = memory_for(MachineOptions(numerics="device", **settings))  # pyright: ignore
    memory.add_region("all", 0, size)
    return memory


def raw(memory: Memory, address: int, count: int) -> npt.NDArray[np.uint8]:
    assert isinstance(memory, DeviceMemory)
    return np.frombuffer(memory.raw(address, count), np.uint8)


@pytest.mark.parametrize("name", SMALL)
def test_landmarks_of_the_8_bit_floats(name: str) -> None:
    memory = device()
    memory.store(np.arange(len(LANDMARKS[name])), list(LANDMARKS[name].values()), name)
    assert raw(memory, 0, len(LANDMARKS[name])).tolist() == list(LANDMARKS[name])


@pytest.mark.parametrize("name", SMALL)
def test_every_code_of_the_8_bit_floats(name: str) -> None:
    codes, memory = np.arange(256, dtype=np.uint8), device()
    values = codes.view(SMALL[name]).astype(np.float64)
    memory.store(np.arange(256), values, name)
    found, written = memory.load(np.arange(256), name)
    assert written.all()
    assert np.array_equal(found, values, equal_nan=True)
    numbers = ~np.isnan(values)
    assert np.array_equal(raw(memory, 0, 256)[numbers], codes[numbers])
    nan = raw(memory, 0, 256)[~numbers].view(SMALL[name]).astype(np.float32)
    assert np.isnan(nan).all()


@pytest.mark.parametrize("name", SMALL)
def test_rounding_to_the_8_bit_floats(name: str) -> None:
    """Against the library, on numbers between, beyond and half way between codes."""
    random = np.random.default_rng(3)
    codes = np.sort(np.arange(256, dtype=np.uint8).view(SMALL[name]).astype(np.float64))
    codes = codes[np.isfinite(codes)]
    given = np.concatenate([(codes[1:] + codes[:-1]) / 2, random.normal(0, 100, 500), [1e6, -1e6, 0.0, np.nan]])
    memory = device()
    memory.store(np.arange(given.size), given, name)
    expected = given.astype(SMALL[name])
    found, _ = memory.load(np.arange(given.size), name)
    assert np.array_equal(found, expected.astype(np.float64), equal_nan=True)


def conversion(function: str, source: str, target: str) -> Descriptor:
    """Two rows of 128 elements from 0 to 4096, on two cores."""

    def operand(base: int, name: str) -> Operand:
        row = 256 if name == DL16 else 128
        return Operand(("out", "mb"), (128, 2), "out", name, (str(base), str(base + row)))

    dims = (Dim("mb", 2, 2), Dim("out", 128))
    return Descriptor(0, function, "sfp", OpClass.POINTWISE, dims, (operand(0, source), operand(4096, target)))


def test_a_conversion_to_8_bits_makes_one_stick_of_two() -> None:
    """By hand, as the front end's coordinates say: element 8 s + 64 h + e of a row is at byte 16 s + 8 h + e."""
    values = np.random.default_rng(0).uniform(-2, 2, (2, 128))
    memory = device()
    memory.store(2 * np.arange(256), values.reshape(-1), DL16)
    execute(conversion("qfp8ch", DL16, FP8), memory)
    stored = memory.load(2 * np.arange(256), DL16)[0].reshape(2, 128)
    expected = np.zeros((2, 128), np.uint8)
    for s in range(8):
        for h in range(2):
            for e in range(8):
                codes = stored[:, 8 * s + 64 * h + e].astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
                expected[:, 16 * s + 8 * h + e] = codes
    assert np.array_equal(raw(memory, 4096, 256).reshape(2, 128), expected)


def test_a_conversion_from_8_bits_makes_two_sticks_of_one() -> None:
    codes = np.random.default_rng(0).integers(0, 0x7F, 256).astype(np.uint8)
    memory = device()
    memory.store(np.arange(256), codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64), FP8)
    execute(conversion("fp8todl16", FP8, DL16), memory)
    found = memory.load(4096 + 2 * np.arange(256), DL16)[0].reshape(2, 2, 8, 8)
    # [row, half, slice, element] from [row, slice, half, element]
    expected = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64).reshape(2, 8, 2, 8).swapaxes(1, 2)
    assert np.array_equal(found, expected)


def integers(function: str) -> Descriptor:
    places = tuple(Operand(("out",), (32,), "out", INT32, (str(n * 128),)) for n in range(3))
    return Descriptor(0, function, "sfp", OpClass.POINTWISE, (Dim("out", 32),), places)


def loaded(memory: Memory, left: int, right: int) -> Memory:
    for base, value in ((0, left), (128, right)):
        memory.store(base + 4 * np.arange(32), np.full(32, value), INT32)
    return memory


@pytest.mark.parametrize("numerics", ["exact", "device"])
@pytest.mark.parametrize(
    ("function", "left", "right"), [("addi32toi32", 2**31 - 1, 1), ("muli32toi32", 2**16, -(2**15) - 1)]
)
def test_integers_beyond_32_bits_are_a_fault(numerics: str, function: str, left: int, right: int) -> None:
    memory = memory_for(MachineOptions(numerics=numerics))  # pyright: ignore
    memory.add_region("all", 0, 512)
    with pytest.raises(
        MachineFault, match="int32-overflow: 32 results are beyond the integers of IEEE_INT32"
    ) as caught:
        execute(integers(function), loaded(memory, left, right))
    assert (caught.value.place.op, caught.value.place.tensor) == (f"0:{function}", "Tensor2")


def test_integers_at_the_limits_are_none() -> None:
    memory = loaded(device(), 2**31 - 2, 1)
    execute(integers("addi32toi32"), memory)
    assert set(memory.load(256 + 4 * np.arange(32), INT32)[0]) == {2**31 - 1}


def test_integers_keep_their_low_bits_where_the_run_goes_on() -> None:
    memory = loaded(device(on_fault="collect"), 2**31 - 1, 2)
    execute(integers("addi32toi32"), memory)
    assert [fault.kind for fault in memory.log.faults] == ["int32-overflow"]
    assert set(memory.load(256 + 4 * np.arange(32), INT32)[0]) == {-(2**31) + 1}


def test_truth_values_are_the_numbers_0_and_1() -> None:
    """DL16 codes, by hand: 1.0 has exponent 31 of bias 31, and 0 is 0."""
    memory = device()
    memory.store(2 * np.arange(4), np.asarray([True, False, True, True]), DL16)
    assert raw(memory, 0, 8).tobytes() == bytes.fromhex("003e 0000 003e 003e")
    memory.store(256 + 2 * np.arange(128), np.repeat([1.0, 2.0], 64), DL16)
    stick = [Operand(("out",), (64,), "out", DL16, (str(base),)) for base in (256, 384, 512)]
    execute(Descriptor(0, "lesserthan", "sfp", OpClass.POINTWISE, (Dim("out", 64),), tuple(stick)), memory)
    assert raw(memory, 512, 128).tobytes() == bytes.fromhex("003e") * 64


def test_rules_of_their_own_have_a_history_and_count_overflows() -> None:
    """The largest magnitude of a row, times a constant; in scratch memory that nobody wrote, a stale read."""
    constants = tuple(
        Constant(name, "IEEE_FP32", int(np.float32(value).view(np.uint32)))
        for name, value in (("clipMin", 0.0), ("clipMax", 1e9), ("mulConst", 1e3))
    )
    dims = (Dim("mb", 2), Dim("out", 64))
    source = Operand(("out", "mb"), (64, 2), "out", DL16, ("0",))
    target = Operand(("mb",), (2,), None, DL16, ("4096",))
    view = Descriptor(3, "quantscalepertokenfp8", "sfp", OpClass.REDUCTION, dims, (source, target), constants)
    memory = device()
    memory.store(2 * np.arange(128), np.full(128, 1e8), DL16)
    history = History()
    execute(view, memory, history=history)
    assert {op: met.count for op, met in memory.log.overflows.items()} == {"3:quantscalepertokenfp8": 2}
    assert memory.log.depends["arithmetic"] == {"3:quantscalepertokenfp8"}
    assert history.producers[memory.step].op == "3:quantscalepertokenfp8"
    inside = replace(source, component="lx")
    with pytest.raises(MachineFault, match="stale-read: its bytes hold what was there before") as caught:
        execute(replace(view, operands=(inside, target)), device(), history=History())
    assert caught.value.place.core == 0
