"""Memory by itself: regions, tags, transfers."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.errors import InputError, MachineFault, UnsupportedError
from spyre_mlir.hw.spec import SPYRE, USER_SEGMENTS, segment_base
from spyre_mlir.machine.memory.exact import ExactMemory, element_bytes


def test_a_transfer_comes_back() -> None:
    memory = ExactMemory()
    memory.add_region("a", 1280, 256)
    memory.store(np.asarray([1280, 1284]), [1.5, -1e300], "SEN169_FP16")
    values, written = memory.load(np.asarray([1280, 1282, 1284]), "SEN169_FP16")
    assert values.tolist() == [1.5, 0.0, -1e300]
    assert written.tolist() == [True, False, True]


def test_int32_may_be_read_as_an_index() -> None:
    memory = ExactMemory()
    memory.add_region("a", 0, 128)
    memory.store(np.asarray([0, 4]), [3, 5], "IEEE_INT32")
    assert memory.load(np.asarray([0, 4]), "SENUINT32")[0].tolist() == [3, 5]
    with pytest.raises(MachineFault, match="wrong-format: read as IEEE_FP32, last written as IEEE_INT32"):
        memory.load(np.asarray([0]), "IEEE_FP32")


@pytest.mark.parametrize(("base", "size"), [(64, 128), (0, 100), (0, 0), (256, 128)])
def test_regions_are_whole_sticks_and_apart(base: int, size: int) -> None:
    memory = ExactMemory()
    memory.add_region("first", 128, 256)
    with pytest.raises(InputError, match="second"):
        memory.add_region("second", base, size)


@pytest.mark.parametrize(("address", "near"), [(126, "low"), (256, "low"), (65534, "high"), (65664, "high")])
def test_out_of_bounds_names_the_nearest_region(address: int, near: str) -> None:
    memory = ExactMemory()
    memory.add_region("high", 65536, 128)
    memory.add_region("low", 128, 128)
    with pytest.raises(MachineFault, match=f"out-of-bounds: .*nearest is {near}"):
        memory.load(np.asarray([address]), "SEN169_FP16")


def test_two_regions_side_by_side_are_two() -> None:
    memory = ExactMemory()
    memory.add_region("a", 0, 128)
    memory.add_region("b", 128, 128)
    with pytest.raises(MachineFault, match="out-of-bounds"):
        memory.load(np.asarray([126, 128]), "SEN169_FP16")


def test_formats_below_a_byte_are_named() -> None:
    memory = ExactMemory()
    memory.add_region("a", 0, 128)
    with pytest.raises(UnsupportedError, match="SENINT4"):
        memory.store(np.asarray([0]), [1.0], "SENINT4")


def resident_bytes() -> int:
    """Memory of this process that lies in RAM."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_memory_costs_nothing_until_used() -> None:
    before = resident_bytes()
    memory = ExactMemory()
    memory.add_region("pool", 0, 1024**3)
    memory.store(np.asarray([1024**3 - 128]), [1.0], "SEN169_FP16")
    assert memory.load(np.asarray([1024**3 - 128]), "SEN169_FP16")[0].tolist() == [1.0]
    assert resident_bytes() - before < 64 * 1024**2


def test_more_than_the_host_can_hold_is_said() -> None:
    with pytest.raises(InputError, match=r"segment.*host"):
        ExactMemory().add_region("segment", 0, 2**50)


HALF, BYTE, WORD = "SEN169_FP16", "SEN143_FP8", "IEEE_INT32"
SEGMENTS_END = segment_base(USER_SEGMENTS + 1)


def test_an_element_has_the_bytes_of_its_format() -> None:
    assert [element_bytes(name) for name in (BYTE, HALF, WORD)] == [1, 2, 4]


def test_memory_without_regions_says_so() -> None:
    with pytest.raises(MachineFault, match=r"out-of-bounds: bytes 0x10\.\.0x12: memory has no regions"):
        ExactMemory().load(np.asarray([16]), HALF)


def test_a_transfer_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="at least one address"):
        ExactMemory().load(np.asarray([], dtype=np.int64), HALF)


def test_the_last_element_of_a_region_is_in_it() -> None:
    memory = ExactMemory()
    region = memory.add_region("a", 128, 128)
    assert memory.locate(254, 256) is region
    assert memory.locate(128, 130) is region
    with pytest.raises(MachineFault, match=r"nearest is a at 0x80\.\.0x100"):
        memory.locate(255, 257)


def test_regions_stand_by_address_until_they_are_removed() -> None:
    memory = ExactMemory()
    for name, base in (("c", 512), ("a", 0), ("b", 256)):
        memory.add_region(name, base, 128)
    assert [region.name for region in memory.regions] == ["a", "b", "c"]
    memory.remove_region("b")
    assert [region.name for region in memory.regions] == ["a", "c"]
    memory.release_all()
    assert memory.regions == ()


def test_an_allocation_is_whole_sticks_behind_all_others() -> None:
    memory = ExactMemory()
    memory.add_scratchpads()
    sizes = [memory.allocate(name, size) for name, size in (("a", 1), ("b", 129), ("c", 128))]
    assert [(region.base, region.size) for region in sizes] == [(0, 128), (128, 256), (384, 128)]


def test_the_last_stick_of_the_segments_is_the_last_allocation() -> None:
    memory = ExactMemory()
    memory.add_region("low", SEGMENTS_END - 256, 128)
    assert memory.allocate("last", 128).end == SEGMENTS_END
    with pytest.raises(InputError, match=r"region more: 1 bytes do not fit"):
        memory.allocate("more", 1)


def test_every_core_has_a_scratchpad_of_two_mebibytes() -> None:
    memory = ExactMemory()
    pads = memory.add_scratchpads()
    assert memory.add_scratchpads() is pads
    assert pads.scratch and not memory.add_region("a", 0, 128).scratch
    assert (pads.base, pads.size) == (SEGMENTS_END, 32 * 2 * 1024**2)
    assert memory.scratchpad_address(3, 5) == SEGMENTS_END + 3 * 2 * 1024**2 + 5
    memory.forget_scratchpads()
    assert [region.name for region in memory.regions] == ["a"]


def test_scratchpads_are_those_of_the_card() -> None:
    assert ExactMemory(replace(SPYRE, cores_per_card=2)).add_scratchpads().size == 2 * 2 * 1024**2


@pytest.mark.parametrize("count", [1, 60])
def test_a_region_in_the_place_of_another_one_begins_unwritten(count: int) -> None:
    """Few or many of its elements were written; both are cleared."""
    memory, addresses = ExactMemory(), np.arange(64) * 2
    first = memory.add_region("first", 0, 128)
    memory.store(addresses[:count], np.arange(1, count + 1), HALF)
    memory.remove_region("first")
    second = memory.add_region("second", 0, 128)
    assert second.cells is first.cells
    values, written = memory.load(addresses, HALF)
    assert not values.any() and not written.any()
    assert memory.add_region("third", 128, 128).cells is not first.cells


def test_shared_contents_are_copied_before_a_write() -> None:
    source, memory = ExactMemory(), ExactMemory()
    image = source.add_region("image", 0, 128)
    source.store(np.asarray([0]), [1.0], HALF)
    region = memory.add_region("a", 0, 128)
    region.share(image.cells, image.states)
    assert memory.load(np.asarray([0]), HALF)[0].tolist() == [1.0]
    memory.store(np.asarray([0]), [2.0], HALF)
    assert memory.load(np.asarray([0]), HALF)[0].tolist() == [2.0]
    assert source.load(np.asarray([0]), HALF)[0].tolist() == [1.0]


def test_shared_contents_are_not_used_again() -> None:
    source, memory = ExactMemory(), ExactMemory()
    image = source.add_region("image", 0, 128)
    memory.add_region("a", 0, 128).share(image.cells, image.states)
    memory.remove_region("a")
    assert memory.add_region("b", 0, 128).cells is not image.cells


@pytest.mark.parametrize(
    ("name", "values", "outside"),
    [
        (WORD, [-(2**31), 2**31 - 1], 0),
        (WORD, [-(2**31) - 1, 2**31, 0], 2),
        ("SENUINT32", [-1, 0], 1),
        (HALF, [1e30, -1e30], 0),
    ],
)
def test_integers_outside_their_format_are_counted(name: str, values: list[float], outside: int) -> None:
    memory = ExactMemory()
    memory.add_region("a", 0, 128)
    memory.store(np.arange(len(values)) * 4, values, name)
    assert memory.tally.integers == outside


def test_the_running_operation_rounds() -> None:
    memory = ExactMemory()
    memory.add_region("a", 0, 128)
    third = 1 / 3
    memory.store(np.asarray([0]), [third], "IEEE_FP32")
    assert memory.load(np.asarray([0]), "IEEE_FP32")[0].tolist() == [third]
    memory.element = "f32"
    memory.store(np.asarray([0]), [third], "IEEE_FP32")
    assert memory.load(np.asarray([0]), "IEEE_FP32")[0].tolist() == [float(np.float32(third))]
    memory.element = "i32"
    assert memory.load(np.asarray([0]), "IEEE_FP32")[0].dtype == np.int64


def test_bytes_are_stored_in_float32_and_parts_of_a_sum_stay() -> None:
    memory = ExactMemory()
    assert memory.stored_type(BYTE) == np.float32
    assert memory.stored_type(HALF) == np.float64
    assert memory.partial_sum(np.asarray([1 / 3]), HALF).tolist() == [1 / 3]
    assert memory.partial_sums_are_wide


@pytest.mark.parametrize(("zeroed", "held"), [(True, 0.0), (False, 5.0)])
def test_memory_that_is_written_as_a_whole_is_not_cleared_before(zeroed: bool, held: float) -> None:
    memory = ExactMemory()
    memory.add_region("one", 0, 128)
    memory.store(np.asarray([0]), np.asarray([5.0]), "SEN169_FP16")
    memory.remove_region("one")
    region = memory.add_region("two", 1024, 128, zeroed=zeroed)
    values, written = memory.load(np.asarray([1024]), "SEN169_FP16")
    assert (values.tolist(), written.tolist()) == ([held], [False])
    assert region.name == "two"


def test_what_was_found_is_forgotten_when_regions_change() -> None:
    memory = ExactMemory()
    one = memory.add_region("one", 0, 128)
    assert memory.locate(0, 128) is one
    memory.remove_region("one")
    with pytest.raises(MachineFault):
        memory.locate(0, 128)
    assert memory.add_region("two", 0, 256) is memory.locate(0, 128)


def test_free_memory_begins_behind_the_regions_of_the_segments() -> None:
    memory = ExactMemory()
    memory.add_scratchpads()
    assert memory.free == 0
    memory.add_region("one", 1024, 128)
    assert memory.free == 1152
