"""Published and worked files in device numerics: each result is rounded once, where it is stored.

The rounding of the expected values is the oracle's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.options import ArithmeticWidth, MachineOptions, PartialSums
from spyre_mlir.machine.superdsc.run import execute
from tests.oracles.dl16_emulation import rounded
from tests.oracles.superdsc_decoder import Decoder
from tests.unit.machine.programs import Floats, descriptor_of, get, load, memory_for, put

RNG = np.random.default_rng(7)

PROGRAMS: dict[str, tuple[list[tuple[int, ...]], Callable[..., Any]]] = {
    "01_add_512x512_32core_hbm": ([(512, 512), (512, 512)], lambda a, b: a + b),
    "b32_matmul_256x512x128_mb32": ([(256, 512), (128, 512)], lambda a, b: a @ b.T),
    "b32k_matmul_256x512x128_mb4_out2_in4": ([(256, 512), (128, 512)], lambda a, b: a @ b.T),
    "c32n_sum_dim0_128x256_nonstick": ([(128, 256)], lambda a: a.sum(0)),
    "c32p_sum_lastdim_128x200_padded": ([(128, 200)], lambda a: a.sum(1)),
    "d32_clamp_128x256": ([(128, 256)], lambda a: np.clip(a, -0.5, 2.0)),
    "g8_restickify_128x256": ([(128, 256)], lambda a: a),
}


def dl16(values: Any) -> Floats:
    return rounded(torch.from_numpy(np.array(values, dtype=np.float64))).numpy()


def run(
    stem: str, arrays: list[Any], partial_sums: PartialSums = "wide", arithmetic: ArithmeticWidth = "float32"
) -> Floats:
    obj = load(stem)
    decoder = Decoder(obj)
    options = MachineOptions(numerics="device", partial_sums=partial_sums, arithmetic=arithmetic)
    memory = memory_for(decoder, DeviceMemory(options=options))
    for index, array in enumerate(arrays):
        put(memory, decoder, index, array)
    execute(descriptor_of(obj), memory)
    values, written = get(memory, decoder, len(arrays))
    return np.where(written, values, np.nan)


def steps_apart(got: Floats, expected: Floats) -> float:
    """Largest difference in units of the last place of the larger magnitude of the two's binade."""
    ulp = np.exp2(np.floor(np.log2(np.maximum(np.abs(expected), 2.0**-31))) - 9)
    return float(np.max(np.abs(got - expected) / ulp))


@pytest.mark.parametrize("stem", PROGRAMS)
def test_inputs_and_results_are_rounded_once(stem: str) -> None:
    shapes, meaning = PROGRAMS[stem]
    arrays = [RNG.standard_normal(shape) for shape in shapes]
    exact = meaning(*(dl16(array) for array in arrays))
    got = run(stem, arrays, arithmetic="float64")
    got = got[tuple(slice(0, n) for n in exact.shape)]
    # A sum in another order may fall on the other side of a tie; where nothing is summed there is only one answer.
    assert np.mean(got != dl16(exact)) < (1e-3 if "sum" in stem or "matmul" in stem else 1e-12)
    assert steps_apart(got, dl16(exact)) <= 1


@pytest.mark.parametrize("stem", PROGRAMS)
def test_by_default_sums_are_as_good_as_float32(stem: str) -> None:
    shapes, meaning = PROGRAMS[stem]
    arrays = [dl16(RNG.standard_normal(shape)) for shape in shapes]
    exact, size = meaning(*arrays), meaning(*(np.abs(array) for array in arrays))
    got = run(stem, arrays)[tuple(slice(0, n) for n in exact.shape)]
    # The bound of a sum of n float32 numbers, n 2^-24 of the sum of magnitudes, and half a step of DLFloat16.
    slack = 0.0 if "sum" not in stem and "matmul" not in stem else 512 * 2.0**-24
    assert (np.abs(got - exact) <= np.abs(exact) * 2.0**-10 + size * slack * 1.01 + 2.0**-30).all()
    if not slack:
        assert np.array_equal(got, dl16(exact))


def test_float32_results_are_float32() -> None:
    a, b = RNG.standard_normal((128, 256)), RNG.standard_normal((128, 256))
    expected = a.astype(np.float32) + b.astype(np.float32)
    assert np.array_equal(run("f32_add_fp32_128x256", [a, b]), expected.astype(np.float64))


def test_a_rounded_partial_sum_is_rounded_between_cores() -> None:
    a, b = dl16(RNG.standard_normal((256, 512))), dl16(RNG.standard_normal((128, 512)))
    total = np.zeros((256, 128))
    for low in range(0, 512, 128):  # the file cuts the 512 summed elements in four
        total = dl16(total) + a[:, low : low + 128] @ b[:, low : low + 128].T
    stem = "b32k_matmul_256x512x128_mb4_out2_in4"
    got, wide = run(stem, [a, b], "rounded"), run(stem, [a, b])
    assert np.mean(got != dl16(total)) < 1e-3
    assert np.mean(got != wide) > 0.1
    exact = a @ b.T
    assert np.square(got - exact).mean() > np.square(wide - exact).mean()


def test_nan_and_overflow_in_an_addition() -> None:
    a, b = np.zeros((128, 256)), np.zeros((128, 256))
    a[0, :4] = 8.5e9, -8.5e9, np.inf, np.nan
    b[0, :4] = 8.5e9, -8.5e9, 1.0, 1.0
    got = run("a1_add_128x256_1core", [a, b])
    largest = (1 + 510 / 512) * 2.0**32
    assert np.array_equal(got[0, :4], [largest, -largest, np.nan, np.nan], equal_nan=True)
    assert not got[1:].any()
