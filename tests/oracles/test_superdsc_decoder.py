"""The oracle against addresses worked out by hand."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from tests.oracles.superdsc_decoder import Decoder, WitnessError
from tests.paths import DATA

GIB16 = 16 * 1024**3
REAL = ("01_add_512x512_32core_hbm", "02_ReStickifyOpHBM_512x512", "03_batchmatmul_512_mb32", "06_ReStickifyOpLx_lx")
WORKED = tuple(sorted(p.stem for p in (DATA / "superdsc_worked").glob("*.json")))


def load(stem: str) -> dict[str, Any]:
    """Parse one of the copied files."""
    folder = "superdsc_real" if stem in REAL else "superdsc_worked"
    return json.loads((DATA / folder / f"{stem}.json").read_text())


def dsc_of(obj: dict[str, Any]) -> dict[str, Any]:
    """The descriptor inside a file."""
    top = next(iter(obj.values()))
    return next(iter(top["dscs_"][0].values()))


def address_of(decoder: Decoder, operand: int, core: int, **coords: int) -> int:
    """Byte address of one element."""
    grid, addresses = decoder.addresses(operand, core)
    hit = np.ones(addresses.shape, dtype=bool)
    for dim, value in coords.items():
        hit &= grid[dim] == value
    (found,) = addresses[hit].tolist()
    return found


@pytest.mark.parametrize("stem", REAL + WORKED)
def test_published_files_are_sound(stem: str) -> None:
    decoder = Decoder(load(stem))
    assert decoder.problems() == []
    assert decoder.output_coverage().ok


def test_add_on_32_cores_by_hand() -> None:
    # Device [4 stick columns, 128 rows, 64 lanes] of 2 bytes: a column is 128*64*2 = 16384 bytes, a row 128.
    decoder = Decoder(load("a32_add_128x256_32core"))
    assert address_of(decoder, 0, 0, mb=0, out=0) == 0
    assert address_of(decoder, 0, 1, mb=4, out=0) == 512
    assert address_of(decoder, 0, 1, mb=5, out=3) == 512 + 128 + 6
    assert address_of(decoder, 1, 31, mb=127, out=200) == GIB16 + 3 * 16384 + 127 * 128 + 8 * 2
    assert len(decoder.addresses(0, 0)[1]) == 4 * 256


def test_k_split_matmul_by_hand() -> None:
    decoder = Decoder(load("b32k_matmul_256x512x128_mb4_out2_in4"))
    # A is [8 columns, 256 rows, 64]: one column 32768 bytes; core 5 holds in slice 1, mb slice 1.
    assert address_of(decoder, 0, 5, mb=64, **{"in": 128}) == 2 * 32768 + 64 * 128
    # B is [2 columns, 512 rows, 64]: one column 65536 bytes; core 17 holds in slice 1, out slice 1.
    assert address_of(decoder, 1, 17, **{"in": 130}, out=65) == GIB16 + 65536 + 130 * 128 + 2
    # C is [2 columns, 256 rows, 64]; cores 0..3 are one cohort.
    assert {address_of(decoder, 2, core, mb=1, out=2) for core in range(4)} == {2 * GIB16 + 128 + 4}
    assert sorted(decoder.cohorts()[(0, 0)]) == [0, 1, 2, 3]


def test_sparse_output_by_hand() -> None:
    # One stick a row: (128,) sits at 128-byte steps, lane 0.
    decoder = Decoder(load("c32_sum_lastdim_128x256"))
    coords, addresses = decoder.addresses(1, 2)
    assert coords["mb"].tolist() == [8, 9, 10, 11]
    assert addresses.tolist() == [GIB16 + 128 * row for row in (8, 9, 10, 11)]
    assert set(coords) == {"mb"}


def test_broadcast_bias_by_hand() -> None:
    decoder = Decoder(load("e32_add_bias_128x256_plus_256"))
    coords, addresses = decoder.addresses(1, 7)
    assert set(coords) == {"out"}
    assert addresses[coords["out"] == 65].tolist() == [GIB16 + 128 + 2]


def test_float32_by_hand() -> None:
    # 32 lanes of 4 bytes: device [8, 128, 32].
    decoder = Decoder(load("f32_add_fp32_128x256"))
    assert address_of(decoder, 0, 3, mb=13, out=33) == 1 * 128 * 128 + 13 * 128 + 4


def test_restickify_by_hand() -> None:
    decoder = Decoder(load("g8_restickify_128x256"))
    assert address_of(decoder, 0, 3, mb=65, out=70) == 1 * 16384 + 65 * 128 + 12
    # Output [2 columns of mb, 256 rows of out, 64]: one column 256*128 = 32768 bytes.
    assert address_of(decoder, 1, 3, mb=65, out=70) == GIB16 + 32768 + 70 * 128 + 2


def test_published_steps_of_a_batched_matmul_operand() -> None:
    """Device [mb 32, in-sticks 2, x 64, 64 lanes], splits x4 mb4 in2: steps 2048, 8192 and 131072 bytes."""
    obj = copy.deepcopy(load("b32_matmul_256x512x128_mb32"))
    top, dsc = next(iter(obj.values())), dsc_of(obj)
    dsc["N_"] = {"name_": "n", "x_": 64, "mb_": 32, "out_": 64, "in_": 128}
    top["numWkSlicesPerDim_"] = {"x": 4, "mb": 4, "out": 1, "in": 2}
    top["coreIdToWkSlice_"] = {str(c): {"in": c % 2, "x": c // 2 % 4, "mb": c // 8, "out": 0} for c in range(32)}
    dsc["primaryDsInfo_"]["INPUT"]["layoutDimOrder_"] = ["x", "in", "mb"]
    node = dsc["scheduleTree_"][0]
    node["layoutDimOrder_"] = ["x", "in", "mb"]
    dsc["labeledDs_"][0]["scale_"] = [1, 1, 1]
    node["startAddressCoreCorelet_"]["data_"] = {f"[{c}, 0, 0]": "0" for c in range(32)}
    decoder = Decoder(obj)
    origin = address_of(decoder, 0, 0, x=0, mb=0, **{"in": 0})
    assert address_of(decoder, 0, 0, x=1, mb=0, **{"in": 0}) - origin == 128 == 2048 // 16
    assert address_of(decoder, 0, 0, x=0, mb=1, **{"in": 0}) - origin == 131072 // 8
    # A core's `in` slice is one stick column: reached here through a descriptor without that split.
    top["numWkSlicesPerDim_"]["in"] = 1
    top["coreIdToWkSlice_"] = {str(c): {"x": c % 4, "mb": c // 4, "out": 0, "in": 0} for c in range(16)}
    whole = Decoder(obj)
    assert address_of(whole, 0, 0, x=0, mb=0, **{"in": 64}) == 8192


def test_back_gap_widens_the_buffer() -> None:
    obj = load("a32_add_128x256_32core")
    dsc_of(obj)["scheduleTree_"][0]["backGapCore_"] = {"mb": {"-1": "16"}, "out": {"-1": "64"}}
    decoder = Decoder(obj)
    # 144 rows in a column now: column step 144*128.
    assert address_of(decoder, 0, 0, mb=1, out=130) == 2 * 144 * 128 + 128 + 4


def test_scratchpad_strides_use_the_cores_own_extents() -> None:
    decoder = Decoder(load("06_ReStickifyOpLx_lx"))
    # N: mb 4, x 4096, out 128, splits mb 4, x 8: a core holds x 512, out 128; order out, x, mb with stick out
    # means a row of x every 2 sticks.
    assert address_of(decoder, 0, 5, mb=1, x=512 + 3, out=70) == 3 * 256 + 128 + 12
    # Output order x, out, mb with stick x: 8 stick columns side by side, then out.
    assert address_of(decoder, 1, 5, mb=1, x=512 + 65, out=2) == 131072 + 2 * 8 * 128 + 128 + 2


def test_scratchpad_gap_may_be_per_core_or_common() -> None:
    obj = load("06_ReStickifyOpLx_lx")
    dsc_of(obj)["scheduleTree_"][0]["backGapCore_"] = {"x": {"0": "28", "-1": "0"}}
    with pytest.raises(WitnessError, match="ambiguous"):
        Decoder(obj).addresses(0, 0)
    assert address_of(Decoder(obj), 0, 1, mb=1, x=1, out=0) == 256


def test_whole_sticks_beside_a_restickify_are_no_shortfall() -> None:
    obj = load("g8_restickify_128x256")
    dsc_of(obj)["scheduleTree_"][0]["backGapCore_"] = {"mb": {"-1": "64"}}
    coords, _ = Decoder(obj).addresses(0, 1)
    assert (coords["mb"].min(), coords["mb"].max()) == (64, 127)


def test_a_dim_that_is_no_stick_of_a_restickify_has_no_shortfall() -> None:
    obj = load("06_ReStickifyOpLx_lx")
    node = dsc_of(obj)["scheduleTree_"][0]
    node["layoutDimOrder_"] = ["mb", "out", "x"]
    node["backGapCore_"] = {"mb": {"-1": "1"}}
    # A core holds 1 of mb, with room for 2: a stick of out every 2 sticks, a row of x every 4.
    assert address_of(Decoder(obj), 0, 0, mb=0, x=1, out=65) == 4 * 128 + 2 * 128 + 2


def test_restickify_shortfall_skips_what_is_outside_the_buffer() -> None:
    obj = load("g8_restickify_128x256")
    dsc_of(obj)["scheduleTree_"][0]["backGapCore_"] = {"mb": {"-1": "28"}}
    decoder = Decoder(obj, device_extents={0: {"mb": 100}})
    coords, _ = decoder.addresses(0, 1)
    assert coords["mb"].max() == 99
    assert len(decoder.addresses(0, 0)[1]) == 64 * 64
    assert len(decoder.addresses(0, 1)[1]) == 36 * 64


def test_own_distribution_wins() -> None:
    obj = load("06_ReStickifyOpLx_lx")
    node = dsc_of(obj)["scheduleTree_"][0]
    node["coordinates_"]["coreIdToWkSlice_"] = {str(c): {"mb": 0, "x": c, "out": 0} for c in range(32)}
    coords, addresses = Decoder(obj).addresses(0, 3)
    assert coords["x"].min() == 3 * 128
    assert coords["x"].max() == 4 * 128 - 1
    assert coords["mb"].max() == 3
    assert int(addresses.max()) == 4 * 128 * 128 * 2 - 2


def test_addresses_may_be_integers_and_symbols() -> None:
    obj = load("a32_add_128x256_32core")
    node = dsc_of(obj)["scheduleTree_"][2]
    node["isStartAddrSymbolic_"] = 1
    data = node["startAddressCoreCorelet_"]["data_"]
    table = {-1 - c: int(data[f"[{c}, 0, 0]"]) for c in range(32)}
    node["startAddressCoreCorelet_"]["data_"] = {f"[{c}, 0, 0]": -1 - c for c in range(32)}
    with pytest.raises(WitnessError, match="symbol -1"):
        Decoder(obj)
    assert Decoder(obj, table).output_coverage().ok


@pytest.mark.parametrize("shift", [128, -128])
def test_a_moved_output_core_is_seen(shift: int) -> None:
    obj = load("a32_add_128x256_32core")
    data = dsc_of(obj)["scheduleTree_"][2]["startAddressCoreCorelet_"]["data_"]
    data["[5, 0, 0]"] = str(int(data["[5, 0, 0]"]) + shift)
    assert Decoder(obj).output_coverage().overlaps


def test_a_torn_cohort_is_seen() -> None:
    obj = load("b32k_matmul_256x512x128_mb4_out2_in4")
    data = dsc_of(obj)["scheduleTree_"][2]["startAddressCoreCorelet_"]["data_"]
    data["[1, 0, 0]"] = str(int(data["[1, 0, 0]"]) + 128)
    assert Decoder(obj).output_coverage().cohort_mismatches


@pytest.mark.parametrize(
    ("plant", "word"),
    [
        (lambda top, dsc: top["numWkSlicesPerDim_"].update(mb=16), "do not give"),
        (lambda top, dsc: dsc["N_"].update(mb_=120), "not a multiple"),
        (lambda top, dsc: top["coreIdToWkSlice_"].update({"1": {"mb": 0, "out": 0}}), "same work slice"),
        (
            lambda top, dsc: dsc["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"].update({"[0, 0, 0]": "2"}),
            "not on a stick",
        ),
        (
            lambda top, dsc: dsc["scheduleTree_"][0]["startAddressCoreCorelet_"]["data_"].update(
                {"[0, 0, 0]": str(GIB16 - 128)}
            ),
            "segment end",
        ),
    ],
)
def test_planted_errors_are_named(plant: Any, word: str) -> None:
    obj = load("a32_add_128x256_32core")
    plant(next(iter(obj.values())), dsc_of(obj))
    assert any(word in p for p in Decoder(obj).problems())
