"""Frames of operations: dims cut where sticks and slices end, and arrays handed out a cache's worth at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from spyre_mlir.machine.memory.frames import BLOCK, Frame, StridedAxis, blocks, fine_axes


@dataclass(frozen=True)
class Cut:
    """An access as a frame sees it."""

    axes: tuple[tuple[StridedAxis, ...], ...]
    shape: tuple[int, ...]
    visible: tuple[int, ...]


def cut(*axes: tuple[StridedAxis, ...], shape: tuple[int, ...] | None = None) -> Cut:
    visible = tuple(int(np.prod([axis.count for axis in own])) for own in axes)
    return Cut(axes, visible if shape is None else shape, visible)


def sticks(count: int, lanes: int) -> tuple[StridedAxis, ...]:
    return StridedAxis(count, 128), StridedAxis(lanes, 128 // lanes)


def test_sticks_of_64_and_of_32_lanes_are_cut_alike() -> None:
    """128 columns are 2 sticks of 64 and 4 sticks of 32: two sticks of two halves of 32."""
    frame = Frame.of([cut((StridedAxis(3, 256),), sticks(2, 64)), cut((StridedAxis(3, 512),), sticks(4, 32))])
    assert frame.counts == ((3,), (2, 2, 32))
    assert not frame.dense


def test_an_operand_without_a_dim_cuts_nothing() -> None:
    frame = Frame.of([cut((StridedAxis(1, 0),), sticks(2, 64)), cut((StridedAxis(6, 256),), (StridedAxis(1, 0),))])
    assert frame.counts == ((6,), (2, 64))


def test_dims_of_one_element_keep_an_axis() -> None:
    assert Frame.of([cut((StridedAxis(1, 0),), (StridedAxis(4, 2),))]).counts == ((1,), (4,))


@pytest.mark.parametrize(
    "accesses",
    [
        [
            cut((StridedAxis(2, 8), StridedAxis(3, 2))),
            cut((StridedAxis(3, 4), StridedAxis(2, 2))),
        ],  # cut at 3 and at 2: neither divides the other
        [cut((StridedAxis(6, 2),)), cut((StridedAxis(3, 2),))],  # two extents
        [cut((StridedAxis(6, 2),)), cut((StridedAxis(4, 2),), shape=(6,))],  # a buffer that falls short
        [cut((StridedAxis(6, 2),)), cut((StridedAxis(0, 2),), shape=(6,))],  # a buffer of nothing
    ],
)
def test_operands_that_no_cut_suits_are_copied(accesses: list[Cut]) -> None:
    frame = Frame.of(accesses)
    assert frame == Frame(((6,),), dense=True)


def test_a_plain_frame_has_the_largest_extents() -> None:
    assert Frame.plain(
        [cut((StridedAxis(1, 0),), (StridedAxis(5, 2),)), cut((StridedAxis(4, 2),), (StridedAxis(1, 0),))]
    ).counts == ((4,), (5,))


def test_axes_are_numbered_through_all_dims() -> None:
    frame = Frame(((3,), (2, 4), (5, 1, 2)))
    assert frame.starts == (0, 1, 3, 6)
    assert frame.axes_of([0, 2]) == [0, 3, 4, 5]
    assert frame.axes_of([1]) == [1, 2]


def test_arrays_are_cut_and_joined_again() -> None:
    frame = Frame(((3,), (2, 4)))
    whole = np.arange(24).reshape(3, 8)
    assert frame.cut(whole).shape == (3, 2, 4)
    assert np.array_equal(frame.joined(frame.cut(whole)), whole)
    assert frame.cut(whole[:, :1]).shape == (3, 1, 1)
    assert frame.joined(np.ones((1, 2, 4))).shape == (1, 8)


@pytest.mark.parametrize(
    ("axes", "counts", "fine"),
    [
        (
            [StridedAxis(2, 512), StridedAxis(64, 2)],
            [2, 2, 32],
            [StridedAxis(2, 512), StridedAxis(2, 64), StridedAxis(32, 2)],
        ),
        (
            [StridedAxis(4, 384), StridedAxis(32, 4)],
            [2, 2, 32],
            [StridedAxis(2, 768), StridedAxis(2, 384), StridedAxis(32, 4)],
        ),
        ([StridedAxis(12, 10)], [2, 3, 2], [StridedAxis(2, 60), StridedAxis(3, 20), StridedAxis(2, 10)]),
        ([StridedAxis(1, 7), StridedAxis(6, 2)], [6], [StridedAxis(6, 2)]),
        ([StridedAxis(1, 7)], [2, 3], [StridedAxis(1, 0), StridedAxis(1, 0)]),
        ([], [4], [StridedAxis(1, 0)]),
    ],
)
def test_axes_of_an_operand_are_cut_as_the_frame(
    axes: list[StridedAxis], counts: list[int], fine: list[StridedAxis]
) -> None:
    assert fine_axes(axes, counts) == fine


def test_a_small_array_is_one_block() -> None:
    a, target = np.ones(BLOCK), np.zeros(BLOCK)
    ((parts, place),) = blocks([a], target)
    assert place is target
    assert parts[0] is a


@pytest.mark.parametrize(
    "shape", [(3, BLOCK), (2, 3, BLOCK // 2 + 7), (BLOCK + 5,), (5, 1, BLOCK // 3), (3, 2 * BLOCK)]
)
def test_blocks_cover_an_array_once_in_parts_that_fit(shape: tuple[int, ...]) -> None:
    a = np.arange(np.prod(shape)).reshape(shape)
    row = np.arange(shape[-1])
    target = np.zeros(shape, np.int64)
    for (part, line), place in blocks([a, row], target):
        assert part.size <= BLOCK
        assert place.shape == part.shape
        place += part + line
    assert np.array_equal(target, a + row)


def test_blocks_follow_memory_whatever_the_order_of_the_axes() -> None:
    """64 neighbours in memory are a column here: 3072 columns of 64 are three blocks without a gap."""
    a = np.arange(64.0 * 96 * 32).reshape(64, 96 * 32)
    target = np.zeros((96 * 32, 64)).T
    seen = list(blocks([a], target))
    assert [place.size for _, place in seen] == [BLOCK, BLOCK, BLOCK]
    for (part,), place in seen:
        place[...] = part
    assert np.array_equal(target, a)


@pytest.mark.parametrize(("rows", "sticks"), [(2048, 8), (1030, 9), (4096, 1), (3000, 20)])
def test_rows_that_become_sticks_are_worked_on_in_tiles_of_several_sticks(rows: int, sticks: int) -> None:
    source = np.arange(float(rows * sticks * 64)).reshape(rows, sticks, 64)
    target = np.zeros((sticks, rows, 64)).transpose(1, 0, 2)
    seen = list(blocks([source], target))
    assert all(place.size <= BLOCK for _, place in seen)
    assert sum(place.size for _, place in seen) == source.size
    for (part,), place in seen:
        assert (place == 0).all()
        place[...] = part + 1
    assert np.array_equal(target, source + 1)
    if sticks > 1:
        assert max(place.shape[0] for _, place in seen) == 8


@pytest.mark.parametrize(("rows", "sticks"), [(2048, 8), (1030, 9), (70, 40)])
def test_parts_are_runs_of_the_array_they_go_along(rows: int, sticks: int) -> None:
    source = np.arange(float(rows * sticks * 64)).reshape(rows, sticks, 64)
    target = np.zeros((sticks, rows, 64)).transpose(1, 0, 2)
    seen = list(blocks([source], target, along=source))
    assert all(part.flags.c_contiguous and part.size <= BLOCK for (part,), _ in seen)
    for (part,), place in seen:
        assert (place == 0).all()
        place[...] = part + 1
    assert np.array_equal(target, source + 1)


def test_dense_arrays_of_many_dims_are_worked_on_as_one_line() -> None:
    shape = (4, 6, BLOCK // 8)
    a, target = np.arange(float(np.prod(shape))).reshape(shape), np.zeros(shape)
    seen = list(blocks([a], target))
    assert [place.shape for _, place in seen] == [(BLOCK,)] * 3
    for (part,), place in seen:
        place[...] = part
    assert np.array_equal(target, a)
