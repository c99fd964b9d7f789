"""Memory of a KTIR run: where arrays lie, and what fits a scratchpad."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.test import TestOp

from spyre_mlir.errors import FaultKind, InputError, MachineFault
from spyre_mlir.machine.ktdp.memory import FIRST_ADDRESS, KtirMemory, Scratchpad
from spyre_mlir.machine.ktdp.regions import Strided

OP = TestOp()
HALF = np.dtype(np.float16)


def halves(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.float16)


def test_arrays_lie_on_sticks_with_a_gap_between() -> None:
    """64 halves fill one stick and 65 begin a second; one stick stays free behind each."""
    memory = KtirMemory({"a": halves(64), "b": halves(65), "c": halves(1)}, (), {})
    assert FIRST_ADDRESS == 65536
    assert {name: region.base - FIRST_ADDRESS for name, region in memory.regions.items()} == {
        "a": 0,
        "b": 256,
        "c": 640,
    }
    assert [region.size for region in memory.regions.values()] == [128, 130, 2]
    assert memory.regions["b"].contents(HALF, (65,)).tolist() == [*range(65)]


def test_an_array_goes_where_the_program_knows_it_and_the_others_behind() -> None:
    memory = KtirMemory({"a": halves(64), "b": halves(64)}, (), {"b": 1 << 20})
    assert memory.regions["b"].base == 1 << 20
    assert memory.regions["a"].base == (1 << 20) + 256
    low = KtirMemory({"a": halves(64), "b": halves(64)}, (), {"b": 128})
    assert (low.regions["b"].base, low.regions["a"].base) == (128, FIRST_ADDRESS)


def test_a_blank_array_has_no_contents() -> None:
    memory = KtirMemory({"a": halves(4), "b": halves(4)}, ("b",), {})
    assert memory.regions["a"].whole
    assert not memory.regions["b"].whole
    assert memory.regions["b"].contents(HALF, (4,)).tolist() == [0, 0, 0, 0]


def test_arrays_that_overlap_are_refused() -> None:
    arrays = {"a": halves(64), "b": halves(64)}
    KtirMemory(arrays, (), {"a": 1024, "b": 1152})
    with pytest.raises(InputError, match="the arrays b and a overlap") as caught:
        KtirMemory(arrays, (), {"a": 1150, "b": 1024})
    assert caught.value.hint == "give places that are apart"


def test_an_address_leads_to_the_array_it_lies_in() -> None:
    memory = KtirMemory({"a": halves(64), "b": halves(64)}, (), {"a": 1024, "b": 2048})
    for address, name in ((1024, "a"), (1150, "a"), (2048, "b"), (2174, "b")):
        assert memory.region(Strided(address, (1,), (2,)), HALF, OP, 0).name == name
    for address, near in ((1022, "a"), (1152, "a"), (2046, "a"), (2176, "b")):
        says = f"bytes {address:#x}..{address + 2:#x} are in no array; the nearest is {near}"
        with pytest.raises(MachineFault, match=says) as caught:
            memory.region(Strided(address, (1,), (2,)), HALF, OP, 3)
        assert (caught.value.kind, caught.value.place.core) == (FaultKind.OUT_OF_BOUNDS, 3)
    with pytest.raises(MachineFault, match="the nearest is nothing"):
        KtirMemory({}, (), {}).region(Strided(0, (1,), (2,)), HALF, OP, 0)


def test_a_scratchpad_s_bytes_are_made_once() -> None:
    pad = Scratchpad(3, 256, shared=True)
    region = pad.region
    assert pad.region is region
    assert (region.name, region.base, region.size, region.unit, region.shared) == ("LX of core 3", 0, 256, 2, True)
    assert not Scratchpad(3, 256, shared=False).region.shared


def row(start: int, count: int) -> Strided:
    return Strided(start, (count,), (2,))


@pytest.mark.parametrize(("start", "count"), [(-2, 4), (0, 129), (250, 4)])
def test_a_view_beyond_the_scratchpad_is_refused(start: int, count: int) -> None:
    with pytest.raises(MachineFault, match="leave the scratchpad of 0x100 bytes") as caught:
        Scratchpad(3, 256, shared=False).reserve(row(start, count), HALF, OP)
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.OUT_OF_BOUNDS, 3)


def test_views_and_live_tensors_share_the_scratchpad() -> None:
    pad = Scratchpad(3, 256, shared=False)
    pad.reserve(row(0, 64), HALF, OP)
    pad.hold(1, 128, OP)
    with pytest.raises(MachineFault, match="130 bytes of live tensors and 128 of views do not fit 256") as caught:
        pad.hold(2, 2, OP)
    assert (caught.value.kind, caught.value.place.core) == (FaultKind.LX_OVERFLOW, 3)
    assert caught.value.hint == "take smaller tiles"


def test_views_that_overlap_take_their_bytes_once() -> None:
    """Bytes 0 to 64 and 96 to 160 are 128; 32 to 100 joins them to 160, and 160 to 192 is behind."""
    pad = Scratchpad(0, 256, shared=False)
    for start, count in ((0, 32), (48, 32), (16, 34)):
        pad.reserve(row(2 * start, count), HALF, OP)
    pad.reserve(row(0, 80), HALF, OP)
    pad.reserve(row(4, 10), HALF, OP)
    pad.hold(1, 96, OP)
    pad.release(1)
    pad.reserve(row(160, 16), HALF, OP)
    pad.hold(2, 64, OP)
    with pytest.raises(MachineFault, match="66 bytes of live tensors and 192 of views"):
        pad.hold(3, 2, OP)


def test_a_view_that_takes_a_tensor_s_room_is_refused() -> None:
    pad = Scratchpad(0, 256, shared=False)
    pad.hold(1, 200, OP)
    with pytest.raises(MachineFault, match="200 bytes of live tensors and 64 of views"):
        pad.reserve(row(0, 32), HALF, OP)


def test_a_tensor_of_two_names_takes_room_once_until_both_are_gone() -> None:
    pad = Scratchpad(0, 256, shared=False)
    pad.hold(1, 200, OP)
    pad.hold(1, 200, OP)
    pad.release(1)
    with pytest.raises(MachineFault, match="300 bytes"):
        pad.hold(2, 100, OP)
    pad.release(2)
    pad.release(1)
    pad.hold(3, 256, OP)
