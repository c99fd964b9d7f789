"""What the text says of layouts, against what is legal."""

import pytest
from xdsl.dialects.test import TestOp

from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice, LayoutError
from spyre_mlir.hw.sticks import UNIT, StickLayout
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import (
    Lane,
    allowed_lanes,
    allowed_sticks,
    check_said,
    lane_choice,
    put_in_order,
)

# A sum over k: two of its loops leave a sparse result.
LEGAL: list[Lane] = [("k", UNIT), ("m", 0), (None, UNIT)]


def saying(choice: LayoutChoice | None) -> TestOp:
    op = TestOp()
    if choice is not None:
        op.attributes[LAYOUT] = LayoutAttr(choice)
    return op


@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        (None, LEGAL),
        (LayoutChoice("m"), [("m", 0)]),
        (LayoutChoice("none"), [(None, UNIT)]),
        (LayoutChoice(stick=UNIT), [("k", UNIT), (None, UNIT)]),
        (LayoutChoice(order=(0, 1)), LEGAL),
    ],
)
def test_legal_lanes_that_agree_with_the_text(said: LayoutChoice | None, allowed: list[Lane]) -> None:
    assert allowed_lanes(saying(said), LEGAL) == allowed


def test_lanes_that_are_not_legal_are_refused() -> None:
    with pytest.raises(LayoutError, match="cannot be lanes m, stick unit") as met:
        allowed_lanes(saying(LayoutChoice("m", UNIT)), LEGAL)
    assert met.value.hint == "legal are lanes k, stick unit; lanes m, stick 0; lanes none, stick unit"
    with pytest.raises(LayoutError, match="cannot be stick 4: for a reason"):
        allowed_lanes(saying(LayoutChoice(stick=4)), LEGAL, "for a reason")


def test_tensors_without_loops_say_their_stick_dimension() -> None:
    assert allowed_sticks(saying(None), [1, 0]) == [1, 0]
    assert allowed_sticks(saying(LayoutChoice(order=(0, 1))), [1, 0]) == [1, 0]
    assert allowed_sticks(saying(LayoutChoice(stick=0)), [1, 0]) == [0]
    with pytest.raises(LayoutError, match="has no loops, got lanes m"):
        allowed_sticks(saying(LayoutChoice("m")), [0])
    with pytest.raises(LayoutError, match="cannot be stick 2"):
        allowed_sticks(saying(LayoutChoice(stick=2)), [1, 0])


def test_a_buffer_gets_the_order_that_is_said_and_keeps_it() -> None:
    buffer = PlannedBuffer((4, 64), "SEN169_FP16", StickLayout.published((4, 64), 1, 64))
    assert not put_in_order(saying(LayoutChoice("n", 1)), buffer).ordered
    assert put_in_order(saying(LayoutChoice(order=(0, 1))), buffer) is buffer
    assert (buffer.layout.order, buffer.ordered) == ((0, 1), True)


def test_a_result_that_lies_as_another_tensor_says_nothing_else() -> None:
    lane: Lane = ("n", 1)
    for choice in (None, LayoutChoice("n", 1, (1, 0)), LayoutChoice(stick=1)):
        check_said(saying(choice), lane, (1, 0), "it lies there")
    for choice in (LayoutChoice("m"), LayoutChoice(stick=0), LayoutChoice(order=(0, 1))):
        with pytest.raises(LayoutError, match="it lies there"):
            check_said(saying(choice), lane, (1, 0), "it lies there")


def test_no_loop_in_the_lanes_has_a_name() -> None:
    assert str(lane_choice((None, UNIT))) == "lanes none, stick unit"
