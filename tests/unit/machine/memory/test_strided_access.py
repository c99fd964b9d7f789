"""Strided access to memory: addresses by hand, values there and back, and which elements have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from spyre_mlir.errors import FaultKind, MachineFault
from spyre_mlir.machine.faults import Place
from spyre_mlir.machine.memory import region as region_module
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.frames import Frame, StridedAxis
from spyre_mlir.machine.memory.strided_access import ByteAccess, TrackedArray

DL16, FP32, FP8 = "SEN169_FP16", "IEEE_FP32", "SEN143_FP8"
BASE = 1280
WHERE = Place(op="0:add", tensor="Tensor1", core=3)
Array = NDArray[Any]


def access(
    *axes: tuple[StridedAxis, ...], base: int = BASE, shape: tuple[int, ...] | None = None, kind: str = DL16
) -> ByteAccess:
    visible = tuple(int(np.prod([axis.count for axis in own])) for own in axes)
    return ByteAccess(base, axes, visible if shape is None else shape, kind, WHERE)


def memory_of(sticks: int = 16) -> ExactMemory:
    memory = ExactMemory()
    memory.add_region("all", BASE, sticks * 128)
    return memory


ROWS = access((StridedAxis(3, 128),), (StridedAxis(2, 384), StridedAxis(64, 2)))  # (3, 128), laid out [2, 3, 64]
TURNED = access(
    (StridedAxis(2, 256), StridedAxis(64, 2)), (StridedAxis(2, 128),)
)  # (128, 2), the lanes in the first dim
BACKWARDS = access((StridedAxis(3, -128),), (StridedAxis(4, 2),), base=BASE + 256)
STRIP = access((StridedAxis(100, 2),))  # runs through a stick and a half
ODD = access((StridedAxis(5, 6),), base=BASE + 2)  # every third element, from the second on
ROW = np.arange(3)[:, None]
COLUMN = np.arange(128)[None, :]
WANTED = {
    "rows": (ROWS, BASE + COLUMN // 64 * 384 + ROW * 128 + COLUMN % 64 * 2),
    "turned": (TURNED, BASE + (COLUMN // 64 * 256 + COLUMN % 64 * 2).T + np.arange(2) * 128),
    "backwards": (BACKWARDS, BASE + 256 - 128 * ROW + 2 * np.arange(4)),
    "strip": (STRIP, BASE + 2 * np.arange(100)),
    "odd": (ODD, BASE + 2 + 6 * np.arange(5)),
    "shifted": (access((StridedAxis(5, 2),), base=BASE + 2), BASE + 2 + 2 * np.arange(5)),
    "halves": (access((StridedAxis(3, 2),), (StridedAxis(2, 64),)), BASE + 2 * ROW + 64 * np.arange(2)),
    "one": (access((StridedAxis(1, 0),), (StridedAxis(1, 0),)), np.asarray([[BASE]])),
    "repeated": (access((StridedAxis(1, 0),), (StridedAxis(3, 256),), kind=FP32), BASE + 256 * np.arange(3)[None]),
}
NAMES = [*WANTED]


@pytest.mark.parametrize("name", NAMES)
def test_addresses_and_the_bytes_they_span(name: str) -> None:
    seen, wanted = WANTED[name]
    assert np.array_equal(seen.addresses(), wanted)
    assert seen.visible == wanted.shape
    assert (seen.low, seen.high) == (wanted.min(), wanted.max() + seen.word_bytes)
    assert seen.span == Place(op="0:add", tensor="Tensor1", core=3, low=seen.low, high=seen.high)


@pytest.mark.parametrize(("kind", "width"), [(DL16, 2), (FP32, 4), (FP8, 1)])
def test_an_element_has_the_bytes_of_its_format(kind: str, width: int) -> None:
    assert access((StridedAxis(1, 0),), kind=kind).word_bytes == width


@pytest.mark.parametrize("name", NAMES)
def test_values_written_are_found_at_the_addresses_and_read_back(name: str) -> None:
    seen, wanted = WANTED[name]
    memory = memory_of()
    values = np.arange(1.0, wanted.size + 1).reshape(wanted.shape)
    seen.write(memory, TrackedArray(values))
    found, written = memory.load(wanted, seen.format)
    assert written.all()
    assert np.array_equal(found, values)
    back = seen.read(memory)
    assert np.array_equal(back.values, values)
    assert back.written is None


@pytest.mark.parametrize("name", NAMES)
def test_elements_that_were_never_written_stay_so(name: str) -> None:
    seen, wanted = WANTED[name]
    memory, random = memory_of(), np.random.default_rng(3)
    values, written = random.standard_normal(wanted.shape), random.random(wanted.shape) < 0.5
    written.flat[0] = False
    seen.write(memory, TrackedArray(values, written))
    assert np.array_equal(memory.load(wanted, seen.format)[1], written)
    back = seen.read(memory)
    assert back.written is not None
    assert np.array_equal(back.written, written)
    assert np.array_equal(back.values[written], values[written])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("reader", NAMES)
@pytest.mark.parametrize("writer", NAMES)
def test_what_an_earlier_region_left_is_never_read(
    writer: str, reader: str, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_module, "_SMALL", 0)
    (seen, wanted), (other, _) = WANTED[writer], WANTED[reader]
    fresh, used = memory_of(), memory_of()
    (region,) = used.regions
    region.cells[...] = 0x41
    used.remove_region("all")
    used.add_region("all", BASE, 16 * 128)
    assert used.regions[0].cells is region.cells
    random = np.random.default_rng(5)
    mask = random.random(wanted.shape) < 0.5 if masked else None
    values, found = random.standard_normal(wanted.shape), list[TrackedArray]()
    for memory in (fresh, used):
        memory.step = 1
        seen.write(memory, TrackedArray(values, mask))
        if other.format == seen.format or writer == reader:
            found.append(other.read(memory))
    for one, again in zip(found[::2], found[1::2], strict=True):
        np.testing.assert_array_equal(one.values, again.values)
        np.testing.assert_array_equal(one.written is None, again.written is None)
    (left,), (right,) = fresh.regions, used.regions
    left.clear()
    right.clear()
    np.testing.assert_array_equal(left.cells, right.cells)


def test_a_mask_of_one_row_stands_for_all() -> None:
    memory = memory_of()
    ROWS.mark(memory, (np.arange(128) < 70)[None, :])
    written = ROWS.written(memory)
    assert written is not None
    assert written.shape == (1, 128)
    assert np.array_equal(written[0], np.arange(128) < 70)
    TURNED.mark(memory_of(), np.ones((128, 1), np.bool_))
    ROWS.mark(memory, None)
    assert ROWS.written(memory) is None


def test_elements_without_a_lane_are_marked_stick_by_stick() -> None:
    column = access((StridedAxis(4, 128),), (StridedAxis(1, 0),))
    memory = memory_of()
    column.mark(memory, np.asarray([[True], [False], [True], [False]]))
    written = column.written(memory)
    assert written is not None
    assert written.tolist() == [[True], [False], [True], [False]]
    region = memory.locate(BASE, BASE + 1)
    assert region.states.tags_of(0, 4).tolist()[2:] == [0, 0]  # of the stick, one element


def test_a_mark_says_which_step_it_was_and_leaves_copies_alone() -> None:
    memory = memory_of()
    memory.step = 9
    region = memory.locate(BASE, BASE + 1)
    kept = region.states
    region.shared = True
    ROWS.mark(memory, None)
    assert kept.writer.tolist() == [0] * 16
    assert region.states.writer.tolist() == [9] * 6 + [0] * 10
    ODD.mark(memory, None)
    assert region.states.writer.tolist()[:2] == [9, 9]


def test_a_view_is_memory_itself_cut_as_the_frame() -> None:
    memory = memory_of()
    frame = Frame.of([ROWS, access((StridedAxis(3, 512),), (StridedAxis(4, 128), StridedAxis(32, 4)), kind=FP32)])
    view = ROWS.view(memory, frame)
    assert view.shape == (3, 2, 2, 32)
    values = np.arange(3.0 * 128).reshape(3, 128)
    view[...] = frame.cut(values)
    ROWS.mark(memory, None)
    assert np.array_equal(memory.load(WANTED["rows"][1], DL16)[0], values)


@pytest.mark.parametrize("written", [True, False])
def test_an_operand_that_falls_short_reads_as_never_written_behind_its_end(written: bool) -> None:
    short = access((StridedAxis(2, 128),), (StridedAxis(3, 2),), shape=(4, 3))
    memory = memory_of()
    whole = np.arange(1.0, 13.0).reshape(4, 3)
    mask = np.ones((4, 3), np.bool_)
    mask[1, 2] = written
    short.write(memory, TrackedArray(whole, mask))
    back = short.read(memory)
    assert back.values.shape == (4, 3)
    assert back.written is not None
    assert back.written.tolist() == [[True] * 3, [True, True, written], [False] * 3, [False] * 3]
    assert back.values[:1].tolist() == [[1.0, 2.0, 3.0]]
    assert back.values[2:].tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    "seen", [ROWS, ODD, access((StridedAxis(2, 128), StridedAxis(2, 2))), access((StridedAxis(1, 0),))]
)
def test_elements_of_another_format_are_named_with_their_bytes(seen: ByteAccess) -> None:
    memory = memory_of()
    seen.mark(memory, None)
    address = int(seen.addresses().reshape(-1)[-1])
    stick = address // 128 * 128
    memory.store(stick + 4 * np.arange(32), np.ones(32), FP32)
    first = next(int(a) for a in seen.addresses().reshape(-1) if stick <= a < stick + 128)
    with pytest.raises(MachineFault, match=f"read as {DL16}, last written as ") as caught:
        seen.read(memory)
    assert caught.value.kind == FaultKind.WRONG_FORMAT
    assert caught.value.place == Place(op="0:add", tensor="Tensor1", core=3, low=first, high=first + 2)


def test_outside_of_memory_is_a_fault_with_the_operands_place() -> None:
    beyond = access((StridedAxis(17, 128),), (StridedAxis(64, 2),))
    for use in (beyond.read, beyond.written, lambda m: beyond.mark(m, None)):
        with pytest.raises(MachineFault) as caught:
            use(memory_of())
        assert (caught.value.kind, caught.value.place) == (FaultKind.OUT_OF_BOUNDS, beyond.span)


@pytest.mark.parametrize(
    ("axes", "apart"),
    [
        ((StridedAxis(3, 128), StridedAxis(64, 2)), True),
        ((StridedAxis(64, 2), StridedAxis(3, -128)), True),
        ((StridedAxis(3, 126), StridedAxis(64, 2)), False),
        ((StridedAxis(4, 1),), False),
        ((StridedAxis(2, 0),), False),
        ((StridedAxis(1, 0),), True),
        ((StridedAxis(2, 4), StridedAxis(2, 6)), True),
        ((StridedAxis(2, 4), StridedAxis(2, 4)), False),
    ],
)
def test_different_indices_are_different_bytes_or_may_not_be(axes: tuple[StridedAxis, ...], apart: bool) -> None:
    assert access(axes).injective is apart


def test_which_bytes_belong_to_an_element() -> None:
    """Elements of four bytes at 1280, 1288 and 1296."""
    seen = access((StridedAxis(3, 8),), kind=FP32)
    touched = [a for a in range(1276, 1304) if seen.touches(a)]
    assert touched == [1280, 1281, 1282, 1283, 1288, 1289, 1290, 1291, 1296, 1297, 1298, 1299]


def test_the_sticks_an_access_touches() -> None:
    numbers = np.arange(10, 30)
    assert ROWS.sticks_in(numbers, 10)[..., 0].tolist() == [[10, 13], [11, 14], [12, 15]]
    assert STRIP.sticks_in(numbers, 8).tolist() == [12, 13]
    assert access((StridedAxis(64, 2),)).sticks_in(numbers, 10).tolist() == [10]
    assert access((StridedAxis(64, 2),), base=BASE + 2).sticks_in(numbers, 10).tolist() == [10, 11]
    assert access((StridedAxis(63, 2),), base=BASE + 2).sticks_in(numbers, 10).tolist() == [10]
    assert access((StridedAxis(2, 512),)).sticks_in(numbers, 10).tolist() == [[10], [14]]


def test_the_place_of_an_element_is_the_last_one_where_the_buffer_ends() -> None:
    place = ROWS.place_at((2, 65))
    assert (place.low, place.high) == (BASE + 384 + 256 + 2, BASE + 384 + 256 + 4)
    assert (place.op, place.tensor, place.core) == ("0:add", "Tensor1", 3)
    short = access((StridedAxis(2, 128),), (StridedAxis(3, 2),), shape=(4, 3))
    assert short.place_at((3, 1)) == short.place_at((1, 1))
