"""States of bytes, stick by stick: what was written, in which format, by which step."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.machine.memory.shadow import (
    CONTINUATION,
    FORMAT_TAGS,
    MIXED,
    UNINITIALISED,
    ShadowMemory,
    StickBox,
    tag_name,
)

DL16, FP32, INT32, INDEX, FP8 = "SEN169_FP16", "IEEE_FP32", "IEEE_INT32", "SENUINT32", "SEN143_FP8"
SIZE = 8 * 128
HALF, WORD = FORMAT_TAGS[DL16], FORMAT_TAGS[FP32]


def box(first: int, count: int, lanes: int = 64, width: int = 2, step: int = 1) -> StickBox:
    return StickBox(first, (count,), (step,), lanes, width)


def tags(states: ShadowMemory, stick: int, count: int = 128) -> list[int]:
    return states.tags_of(128 * stick, count).tolist()


def test_tags_have_names() -> None:
    assert tag_name(UNINITIALISED) == "nothing"
    assert tag_name(CONTINUATION) == "the second half of a wider element"
    assert [tag_name(tag) for tag in FORMAT_TAGS.values()] == [*FORMAT_TAGS]
    assert len({UNINITIALISED, MIXED, CONTINUATION, *FORMAT_TAGS.values()}) == len(FORMAT_TAGS) + 3


def test_a_box_of_sticks_at_regular_steps() -> None:
    two = StickBox(1, (2, 3), (10, 2), 5, 4)
    assert two.bytes == 20
    assert two.sticks().tolist() == [[1, 3, 5], [11, 13, 15]]
    numbers = np.arange(20)
    view = two.view(numbers)
    assert view.tolist() == [[1, 3, 5], [11, 13, 15]]
    view[1, 2] = -1
    assert numbers[15] == -1


def test_what_was_written_is_read_and_the_step_that_wrote_it_is_known() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(1, 3, step=2), DL16, None, 7)
    assert states.writer.tolist() == [0, 7, 0, 7, 0, 7, 0, 0]
    reading = states.read(box(1, 3, step=2), DL16)
    assert (reading.written, reading.wrong) == (None, None)
    assert tags(states, 1) == [HALF, CONTINUATION] * 64
    assert tags(states, 2) == [UNINITIALISED] * 128


def test_a_wide_element_is_one_tag_and_three_continuations() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 1, 32, 4), FP32, None, 1)
    assert tags(states, 0) == [WORD, CONTINUATION, CONTINUATION, CONTINUATION] * 32
    assert states.read(box(0, 1, 32, 4), FP32).written is None


def test_lanes_behind_what_was_written_have_no_value() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 2, lanes=5), DL16, None, 1)
    assert tags(states, 1) == [HALF, CONTINUATION] * 5 + [UNINITIALISED] * 118
    reading = states.read(box(0, 2, lanes=8), DL16)
    assert reading.written is not None
    assert np.broadcast_to(reading.written, (2, 8)).tolist() == [[True] * 5 + [False] * 3] * 2
    assert reading.written.shape == (1, 8)  # nothing changes from stick to stick
    assert states.read(box(0, 2, lanes=5), DL16).written is None
    states.write(box(0, 1, lanes=3), DL16, None, 2)  # less than before: what lies behind stays
    assert states.read(box(0, 1, lanes=5), DL16).written is None


def test_sticks_that_differ_are_told_apart() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(1, 1, lanes=2), DL16, None, 1)
    reading = states.read(box(0, 3, lanes=3), DL16)
    assert reading.written is not None
    assert reading.written.tolist() == [[False] * 3, [True, True, False], [False] * 3]


def test_another_format_is_named_with_its_place() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(2, 1, 32, 4), FP32, None, 1)
    reading = states.read(box(1, 3), DL16)
    assert (reading.wrong, reading.found) == ((1, 0), FP32)


@pytest.mark.parametrize(("wrote", "read"), [(INT32, INDEX), (INDEX, INT32)])
def test_indices_and_integers_are_each_other(wrote: str, read: str) -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 1, 32, 4), wrote, None, 1)
    assert states.read(box(0, 1, 32, 4), read).written is None
    assert states.read(box(0, 1, 32, 4), FP32).found == wrote
    at = np.asarray([0, 8])
    assert states.read_elements(at, 4, read).written is None
    assert states.read_elements(at, 4, FP32).wrong == (0,)


def test_in_a_scratchpad_other_formats_beside_the_right_one_are_padding() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 1, 32, 4), FP32, None, 1)
    states.write(box(1, 1), DL16, None, 1)
    reading = states.read(box(0, 2, lanes=2), DL16, scratch=True)
    assert reading.written is not None
    assert reading.written.tolist() == [[False, False], [True, True]]
    assert states.read(box(0, 1), DL16, scratch=True).found == FP32  # nothing of the right format is there
    elements = states.read_elements(np.asarray([0, 128]), 2, DL16, scratch=True)
    assert elements.written is not None
    assert elements.written.tolist() == [False, True]
    assert states.read_elements(np.asarray([0]), 2, DL16, scratch=True).found == FP32


def test_elements_that_a_write_leaves_out_lose_their_value() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 2), DL16, None, 1)
    written = np.ones((2, 64), np.bool_)
    written[1, 3:] = False  # the first three lanes of stick 1
    states.write(box(0, 2), DL16, written, 2)
    assert tags(states, 0) == [HALF, CONTINUATION] * 64
    assert tags(states, 1) == [HALF, CONTINUATION] * 3 + [UNINITIALISED] * 122
    assert states.tags.tolist()[:2] == [HALF, HALF]  # both in the short form
    states.write(box(1, 1), DL16, np.zeros((1, 64), np.bool_), 3)
    assert tags(states, 1) == [UNINITIALISED] * 128
    assert states.tags[1] == UNINITIALISED
    assert states.known[1] == 0


def test_a_mask_that_is_the_same_in_every_lane() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 2, lanes=4), DL16, np.asarray([[True], [False]]), 1)
    assert tags(states, 0) == [HALF, CONTINUATION] * 4 + [UNINITIALISED] * 120
    assert tags(states, 1) == [UNINITIALISED] * 128


def test_a_hole_in_a_stick_is_kept_byte_by_byte() -> None:
    states = ShadowMemory(SIZE)
    written = np.ones((1, 64), np.bool_)
    written[0, 1] = False
    states.write(box(0, 1), DL16, written, 1)
    assert states.tags[0] == MIXED
    assert tags(states, 0, 8) == [HALF, CONTINUATION, UNINITIALISED, UNINITIALISED] + [HALF, CONTINUATION] * 2
    reading = states.read(box(0, 2, lanes=3), DL16)
    assert reading.written is not None
    assert reading.written.tolist() == [[True, False, True], [False] * 3]
    states.write_elements(np.asarray([2]), 2, DL16, None, 4)  # the hole is filled
    assert states.tags[0] == HALF
    assert states.read(box(0, 1), DL16).written is None
    assert states.writer[0] == 4


def test_a_short_write_of_another_format_keeps_what_lies_behind() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 1), DL16, None, 1)
    states.write(box(0, 1, 2, 4), FP32, None, 2)
    assert tags(states, 0) == [WORD, CONTINUATION, CONTINUATION, CONTINUATION] * 2 + [HALF, CONTINUATION] * 60
    assert states.read(box(0, 1, 2, 4), FP32).written is None
    reading = states.read(box(0, 1), DL16)
    assert (reading.wrong, reading.found) == ((0, 0), FP32)
    states.write(box(0, 1, 32, 4), FP32, None, 3)  # a whole stick is short again
    assert states.tags[0] == WORD
    assert tags(states, 0) == [WORD, CONTINUATION, CONTINUATION, CONTINUATION] * 32


def test_a_short_write_over_several_sticks_keeps_what_lies_behind_in_each() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(1, 1), DL16, None, 1)
    states.write(box(0, 2, 1, 4), FP32, None, 2)
    assert tags(states, 0, 6) == [WORD, CONTINUATION, CONTINUATION, CONTINUATION, UNINITIALISED, UNINITIALISED]
    assert tags(states, 1, 6) == [WORD, CONTINUATION, CONTINUATION, CONTINUATION, HALF, CONTINUATION]


def test_an_element_that_would_reach_into_the_next_stick_is_read_as_what_begins_there() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 2), DL16, None, 1)
    assert states.read_elements(np.asarray([126]), 4, FP32).found == DL16


def test_a_short_write_of_the_same_format_with_a_mask_keeps_what_lies_behind() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 1, lanes=6), DL16, None, 1)
    states.write(box(0, 1, lanes=4), DL16, np.asarray([[True, True, False, False]]), 2)
    assert tags(states, 0, 12) == [HALF, CONTINUATION] * 2 + [UNINITIALISED] * 4 + [HALF, CONTINUATION] * 2


def test_half_of_a_wider_element_is_overwritten() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 1, 32, 4), FP32, None, 1)
    states.write_elements(np.asarray([2]), 2, DL16, None, 2)
    reading = states.read_elements(np.asarray([[4, 0]]), 4, FP32)
    assert (reading.wrong, reading.found) == ((0, 1), f"{FP32}, partly overwritten")
    second = states.read_elements(np.asarray([6]), 2, DL16)
    assert second.found == "the second half of a wider element"


def test_single_elements_are_written_where_they_are_and_nowhere_else() -> None:
    states = ShadowMemory(SIZE)
    at = np.asarray([[130, 126], [256, 0]])
    states.write_elements(at, 2, DL16, np.asarray([[True, False], [True, True]]), 5)
    assert states.writer.tolist() == [5, 5, 5, 0, 0, 0, 0, 0]
    reading = states.read_elements(at, 2, DL16)
    assert reading.written is not None
    assert reading.written.tolist() == [[True, False], [True, True]]
    assert states.tags_of(128, 6).tolist() == [0, 0, HALF, CONTINUATION, 0, 0]
    assert states.tags_of(254, 4).tolist() == [0, 0, HALF, CONTINUATION]
    nothing = states.read_elements(np.asarray([10]), 2, DL16)
    assert nothing.written is not None
    assert not nothing.written.any()


def test_bytes_have_no_continuation() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 1, 3, 1), FP8, None, 1)
    tag = FORMAT_TAGS[FP8]
    assert tags(states, 0, 5) == [tag, tag, tag, 0, 0]
    assert states.read(box(0, 1, 3, 1), FP8).written is None


def test_where_elements_of_each_format_start() -> None:
    states = ShadowMemory(SIZE)
    states.write(box(0, 1, lanes=2), DL16, None, 1)
    states.write_elements(np.asarray([8]), 4, FP32, None, 1)
    found = {name: at.tolist() for name, at in states.elements_of(states.tags_of(0, 16))}
    assert found == {DL16: [0, 2], FP32: [8]}


def test_a_copy_changes_on_its_own() -> None:
    states = ShadowMemory(SIZE)
    states.write_elements(np.asarray([4]), 2, DL16, None, 1)  # not at the first byte: a tag per byte
    states.write(box(1, 1), DL16, None, 2)
    other = states.copy()
    assert tags(other, 0) == tags(states, 0)
    assert other.writer.tolist() == states.writer.tolist()
    other.write_elements(np.asarray([6]), 2, DL16, None, 3)
    other.write(box(1, 1, 32, 4), FP32, None, 3)
    assert tags(states, 0, 8) == [0, 0, 0, 0, HALF, CONTINUATION, 0, 0]
    assert states.read(box(1, 1), DL16).written is None
    assert states.writer.tolist() == [1, 2, 0, 0, 0, 0, 0, 0]
    assert ShadowMemory(SIZE).copy().tags_of(0, 4).tolist() == [0, 0, 0, 0]


def test_states_are_equal_if_all_is_and_nothing_is_mixed() -> None:
    box = StickBox(1, (2,), (1,), 64, 2)
    one, other = ShadowMemory(512), ShadowMemory(512)
    assert one.empty and one.equals(other)
    one.write(box, "SEN169_FP16", None, 3)
    assert not one.empty and not one.equals(other)
    other.write(box, "SEN169_FP16", None, 4)
    assert not one.equals(other)
    other.write(box, "SEN169_FP16", None, 3)
    assert one.equals(other) and one.equals(one.copy())
    one.write_elements(np.array([6]), 4, "IEEE_FP32", None, 3)
    assert one.equals(one) and not one.equals(one.copy())
