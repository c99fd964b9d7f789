"""The machine on published and worked files, against numpy on tensors laid out by the oracle."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.codec.describe import describe_json
from spyre_mlir.machine.superdsc.run import element_addresses, execute
from tests.oracles.superdsc_decoder import Decoder
from tests.unit.machine.programs import descriptor_of, dsc_of, get, load, memory_for, put

RNG = np.random.default_rng(20260814)
EVERY_FILE = (
    "01_add_512x512_32core_hbm",
    "02_ReStickifyOpHBM_512x512",
    "03_batchmatmul_512_mb32",
    "06_ReStickifyOpLx_lx",
    "a1_add_128x256_1core",
    "a32_add_128x256_32core",
    "b32_matmul_256x512x128_mb32",
    "b32k_matmul_256x512x128_mb4_out2_in4",
    "c32_sum_lastdim_128x256",
    "c32n_sum_dim0_128x256_nonstick",
    "c32p_sum_lastdim_128x200_padded",
    "d32_clamp_128x256",
    "e32_add_bias_128x256_plus_256",
    "f32_add_fp32_128x256",
    "g8_restickify_128x256",
)

# Per file: shapes of the inputs in iteration order, and what they give.
PROGRAMS: dict[str, tuple[list[tuple[int, ...]], Callable[..., Any]]] = {
    "01_add_512x512_32core_hbm": ([(512, 512), (512, 512)], lambda a, b: a + b),
    "02_ReStickifyOpHBM_512x512": ([(512, 512)], lambda a: a),
    "03_batchmatmul_512_mb32": ([(512, 512), (512, 512)], lambda a, b: a @ b.T),
    "06_ReStickifyOpLx_lx": ([(4, 4096, 128)], lambda a: a),
    "a1_add_128x256_1core": ([(128, 256), (128, 256)], lambda a, b: a + b),
    "a32_add_128x256_32core": ([(128, 256), (128, 256)], lambda a, b: a + b),
    "b32_matmul_256x512x128_mb32": ([(256, 512), (128, 512)], lambda a, b: a @ b.T),
    "b32k_matmul_256x512x128_mb4_out2_in4": ([(256, 512), (128, 512)], lambda a, b: a @ b.T),
    "c32_sum_lastdim_128x256": ([(128, 256)], lambda a: a.sum(1)),
    "c32n_sum_dim0_128x256_nonstick": ([(128, 256)], lambda a: a.sum(0)),
    "c32p_sum_lastdim_128x200_padded": ([(128, 200)], lambda a: a.sum(1)),
    "d32_clamp_128x256": ([(128, 256)], lambda a: np.clip(a, -0.5, 2.0)),
    "e32_add_bias_128x256_plus_256": ([(128, 256), (256,)], lambda a, b: a + b),
    "f32_add_fp32_128x256": ([(128, 256), (128, 256)], lambda a, b: a + b),
    "g8_restickify_128x256": ([(128, 256)], lambda a: a),
}


def run(obj: dict[str, Any], layout: dict[str, Any], arrays: list[Any]) -> tuple[Any, Any]:
    """Run ``obj`` on memory laid out as ``layout`` says; result as ``layout`` says too."""
    decoder = Decoder(layout)
    memory = memory_for(decoder)
    for index, array in enumerate(arrays):
        put(memory, decoder, index, array)
    execute(descriptor_of(obj), memory)
    return get(memory, decoder, decoder.output)


def arrays_for(stem: str) -> list[Any]:
    return [RNG.standard_normal(shape) for shape in PROGRAMS[stem][0]]


@pytest.mark.parametrize("stem", PROGRAMS)
def test_file_computes_what_numpy_computes(stem: str) -> None:
    arrays = arrays_for(stem)
    result, written = run(load(stem), load(stem), arrays)
    assert written.all()
    np.testing.assert_allclose(result, PROGRAMS[stem][1](*arrays), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stem", EVERY_FILE)
def test_the_compiler_s_reader_and_the_witness_agree(stem: str) -> None:
    ours, witnessed = describe_json(load(stem)), descriptor_of(load(stem))
    assert ours.slices == witnessed.slices
    assert (ours.dims, ours.operands, ours.constants) == (witnessed.dims, witnessed.operands, witnessed.constants)
    assert (ours.op_func, ours.op_class, ours.mask_constant) == (
        witnessed.op_func,
        witnessed.op_class,
        witnessed.mask_constant,
    )


@pytest.mark.parametrize("stem", EVERY_FILE)
def test_every_element_address_is_the_witness_s(stem: str) -> None:
    decoder, view = Decoder(load(stem)), describe_json(load(stem))
    for operand in range(len(view.operands)):
        for core in decoder.cores:
            coords, addresses = decoder.addresses(operand, core)
            ours, found = element_addresses(view, operand, core)
            assert set(ours) == set(coords)
            axes = list(coords)
            keys = [np.lexsort([c[d] for d in axes]) for c in (coords, ours)]
            assert all(np.array_equal(coords[d][keys[0]], ours[d][keys[1]]) for d in axes)
            assert np.array_equal(addresses[keys[0]], found[keys[1]])


@pytest.mark.parametrize("stem", ["a32_add_128x256_32core", "b32_matmul_256x512x128_mb32", "g8_restickify_128x256"])
@pytest.mark.parametrize("operand", [0, -1])
def test_a_wrong_start_address_changes_the_result(stem: str, operand: int) -> None:
    """Swapping two cores' addresses of one operand leaves every byte in range, so only the numbers can tell."""
    obj = copy.deepcopy(load(stem))
    data = dsc_of(obj)["scheduleTree_"][operand]["startAddressCoreCorelet_"]["data_"]
    data["[0, 0, 0]"], data["[5, 0, 0]"] = data["[5, 0, 0]"], data["[0, 0, 0]"]
    arrays = arrays_for(stem)
    result, _ = run(obj, load(stem), arrays)
    assert not np.allclose(result, PROGRAMS[stem][1](*arrays))


def test_a_swapped_layout_changes_the_result() -> None:
    # Stick columns outside rows becomes rows outside stick columns: same bytes, other elements.
    obj = load("a1_add_128x256_1core")
    dsc_of(obj)["scheduleTree_"][0]["layoutDimOrder_"].reverse()
    arrays = arrays_for("a1_add_128x256_1core")
    result, _ = run(obj, load("a1_add_128x256_1core"), arrays)
    assert not np.allclose(result, arrays[0] + arrays[1])


def test_a_back_gap_reads_a_slice_of_a_larger_buffer() -> None:
    """Rows of a (144, 320) buffer: gaps of 16 rows and one stick column."""
    obj = load("a1_add_128x256_1core")
    for node in dsc_of(obj)["scheduleTree_"]:
        node["backGapCore_"] = {"mb": {"-1": "16"}, "out": {"-1": "64"}}
    arrays = arrays_for("a1_add_128x256_1core")
    result, _ = run(obj, obj, arrays)
    np.testing.assert_allclose(result, arrays[0] + arrays[1])
    decoder = Decoder(obj)
    assert int(decoder.addresses(0, 0)[1].max()) == 3 * 144 * 128 + 127 * 128 + 126


@pytest.mark.parametrize("stem", ["a32_add_128x256_32core", "b32k_matmul_256x512x128_mb4_out2_in4"])
def test_one_by_one_and_all_at_once_agree(stem: str) -> None:
    """A start address moved into a copy of the operand's data breaks the regularity, not the result."""
    obj = load(stem)
    node = dsc_of(obj)["scheduleTree_"][0]
    data = node["startAddressCoreCorelet_"]["data_"]
    decoder = Decoder(obj)
    memory = memory_for(decoder)
    arrays = arrays_for(stem)
    for index, array in enumerate(arrays):
        put(memory, decoder, index, array)
    coords, addresses = decoder.addresses(0, 6)
    low = int(addresses.min())
    elsewhere = 5 * 16 * 1024**3
    memory.add_region("copy", elsewhere, -(-(int(addresses.max()) + 2 - low) // 128) * 128)
    dims = [d for d in decoder.sizes if d in coords]
    memory.store(addresses - low + elsewhere, arrays[0][tuple(coords[d] for d in dims)], "SEN169_FP16")
    memory.store(addresses, np.full(addresses.shape, 1e9), "SEN169_FP16")
    start = data["[6, 0, 0]"]
    for core in [core for core, text in data.items() if text == start]:
        data[core] = str(elsewhere)
    execute(descriptor_of(obj), memory)
    result, _ = get(memory, decoder, decoder.output)
    np.testing.assert_allclose(result, PROGRAMS[stem][1](*arrays), rtol=1e-12, atol=1e-12)


def test_in_place_add_sees_only_old_values() -> None:
    obj = load("a32_add_128x256_32core")
    nodes = dsc_of(obj)["scheduleTree_"]
    nodes[2]["startAddressCoreCorelet_"] = copy.deepcopy(nodes[0]["startAddressCoreCorelet_"])
    arrays = arrays_for("a32_add_128x256_32core")
    result, _ = run(obj, obj, arrays)
    np.testing.assert_allclose(result, arrays[0] + arrays[1])


def test_padding_lanes_travel_through_a_sum_over_rows() -> None:
    """Lanes 200 to 255 hold nothing; a sum over rows leaves nothing there and is right elsewhere."""
    stem = "c32n_sum_dim0_128x256_nonstick"
    array = RNG.standard_normal((128, 200))
    result, written = run(load(stem), load(stem), [array])
    assert written[:200].all()
    assert not written[200:].any()
    np.testing.assert_allclose(result[:200], array.sum(0), rtol=1e-12, atol=1e-12)
