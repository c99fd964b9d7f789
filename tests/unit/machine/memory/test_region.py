"""Regions: views of their elements, and what a region reads where nothing was written."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.machine.memory import region as region_module
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.region import MemoryRegion, StridedWindow
from spyre_mlir.machine.memory.shadow import StickBox


def _reused() -> tuple[ExactMemory, MemoryRegion]:
    """A region of four sticks in memory that held fives."""
    memory = ExactMemory()
    memory.add_region("one", 0, 512)
    memory.store(np.arange(0, 512, 2), np.full(256, 5.0), "SEN169_FP16")
    memory.remove_region("one")
    return memory, memory.add_region("two", 0, 512)


def test_sticks_are_cleared_when_they_are_written_in_part_and_all_when_memory_is_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(region_module, "_SMALL", 0)
    memory, region = _reused()
    width = 128 * region.scale
    rows = region.cells.reshape(4, width)
    assert rows.any(axis=1).all()
    region.clear(StickBox(1, (2,), (1,), 64, 2))
    assert rows.any(axis=1).tolist() == [True, False, False, True]
    region.states.write(StickBox(0, (1,), (1,), 64, 2), "SEN169_FP16", None, 1)
    cells, states = region.lend()
    assert rows.any(axis=1).tolist() == [True, False, False, False]
    assert cells is region.cells and states is region.states and region.shared
    assert memory.regions == (region,)


def test_small_contents_are_zeroed_at_once() -> None:
    _, region = _reused()
    assert not region.cells.any() and not region.used


def test_scratchpads_are_cleared_where_they_are_read() -> None:
    memory = ExactMemory()
    memory.add_region("LX", 0, 512, sparse=True)
    memory.store(128 * np.arange(3), np.full(3, 5.0), "SEN169_FP16")
    memory.remove_region("LX")
    region = memory.add_region("LX", 0, 512, sparse=True)
    rows = region.cells.reshape(4, -1)
    assert rows.any(axis=1).tolist() == [True, True, True, False]
    region.clear(StickBox(1, (2,), (2,), 64, 2))
    assert rows.any(axis=1).tolist() == [True, False, True, False]
    assert [sticks.tolist() for sticks in region.cleared or ()] == [[1, 3]]


def test_all_that_earlier_scratchpads_left_is_cleared_by_a_look_at_all() -> None:
    memory = ExactMemory()
    region = memory.add_region("LX", 0, 512, sparse=True)
    memory.store(128 * np.arange(3), np.full(3, 5.0), "SEN169_FP16")
    memory.remove_region("LX")
    again = memory.add_region("LX", 0, 512, sparse=True)
    assert again.cells is region.cells and again.cells.any()
    again.clear()
    assert not again.cells.any() and again.cleared is None
    memory.remove_region("LX")
    memory.spare = {size: [(cells, None) for cells, _ in kept] for size, kept in memory.spare.items()}
    again.cells.fill(1)
    assert not memory.add_region("LX", 0, 512, sparse=True).cells.any()


def test_a_window_steps_over_bytes_of_the_device() -> None:
    memory = ExactMemory()
    region = memory.add_region("a", 0, 256)
    memory.store(np.arange(128) * 2, np.arange(128.0), "SEN169_FP16")
    window = StridedWindow(region, 6, (2, 3), (128, 4)).elements(memory.stored_type("SEN169_FP16"))
    assert window.tolist() == [[3, 5, 7], [67, 69, 71]]
