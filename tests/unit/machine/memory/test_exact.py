"""Memory by itself: regions, tags, transfers."""

from __future__ import annotations

import os

import numpy as np
import pytest

from spyre_mlir.errors import InputError, MachineFault, UnsupportedError
from spyre_mlir.machine.memory.exact import ExactMemory


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
