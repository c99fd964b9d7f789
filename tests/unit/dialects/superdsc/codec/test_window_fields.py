"""Windows in the file, against sizes counted by hand: n windows, s apart, of p places reach (n - 1) s + p elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor, Misread
from spyre_mlir.dialects.superdsc.codec.window_fields import (
    check_windows,
    coordinate,
    memories,
    pad_type,
    read_windows,
    window_sizes,
)
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand, Window
from spyre_mlir.errors import EmitError, UnsupportedError
from tests.unit.dialects.superdsc import cases
from tests.unit.dialects.superdsc.cases import DL16

# Four windows of three places, two apart, reach nine elements of ten.
WINDOW = Window("i", "ki", 10, stride=2)


def view(op_class: OpClass = OpClass.POOLING, window: Window = WINDOW, split: int = 2, **changes: Any) -> Descriptor:
    operand = Operand(("i", "out"), (10, 128), "out", DL16, ("0", "0"))
    dims = (Dim("i", 4, split), Dim("out", 128), Dim("ki", 3))
    whole = Descriptor(0, "op", "sfp", op_class, dims, (operand,) * 3, windows=(window,))
    return replace(whole, **changes)


def sizes(front: int, back: int, total: int, **more: int) -> dict[str, object]:
    pads = {"padFront_": front, "padBack_": back, **more}
    return {"i": {**pads, "totalSize_": total, "stride_": 2, "dilation_": 1, "windowDim_": "ki"}}


def unneeded(whole: int, back: int) -> dict[str, int]:
    return {"unneededPad_": whole, "unneededPadFront_": 0, "unneededPadBack_": back}


@pytest.mark.parametrize("op_class", [OpClass.POOLING, OpClass.CONVOLUTION])
@pytest.mark.parametrize("per_core", [False, True])
def test_pooling_and_convolution_write_the_same_sizes_for_one_core(op_class: OpClass, per_core: bool) -> None:
    window = replace(WINDOW, front=1, back=2)
    assert window_sizes(view(op_class, window), per_core=per_core) == sizes(1, 2, 10)
    assert window_sizes(view(op_class, windows=()), per_core=per_core) == {}


@pytest.mark.parametrize(
    ("window", "split", "per_core", "expected"),
    [
        # ten elements, nine reached: the last of two at the back is needless, or nothing is taken from none
        (replace(WINDOW, back=2), 1, False, sizes(0, 1, 10, **unneeded(1, 1))),
        (WINDOW, 1, False, sizes(0, 0, 10, **unneeded(1, 0))),
        (replace(WINDOW, total=9, front=1, back=2), 1, False, sizes(1, 2, 9, **unneeded(0, 0))),
        (replace(WINDOW, total=12, back=2), 1, False, sizes(0, 0, 12, **unneeded(3, 2))),
        (replace(WINDOW, total=8, back=2), 1, False, sizes(0, 2, 8, **unneeded(-1, 0))),
        (replace(WINDOW, back=2), 1, True, sizes(0, 1, 10, **unneeded(1, 1))),
        # of two cores, each walks two windows: 2 * 2 + 3 - 1 = 6 elements, 5 reached
        (replace(WINDOW, back=2), 2, True, sizes(0, 1, 6, **unneeded(1, 1))),
        (replace(WINDOW, back=2), 2, False, sizes(0, 1, 10, **unneeded(1, 1))),
    ],
)
def test_convolution_by_channel_counts_what_no_window_reaches(
    window: Window, split: int, per_core: bool, expected: dict[str, object]
) -> None:
    assert window_sizes(view(OpClass.DEPTHWISE, window, split), per_core=per_core) == expected


def test_how_padding_is_said() -> None:
    assert pad_type(WINDOW) == "padded_fullspan_wunneeded"
    assert pad_type(replace(WINDOW, front=1)) == pad_type(replace(WINDOW, back=1)) == "padded_nozeropad"


DIMS = {"i": Dim("i", 4, 2), "ki": Dim("ki", 3)}


def entry(**changes: object) -> dict[str, Any]:
    plain = {"padFront_": 1, "padBack_": 2, "totalSize_": 10, "stride_": 2, "dilation_": 1, "windowDim_": "ki_"}
    return plain | changes


def read(label: str = "i_", **changes: object) -> tuple[Window, ...]:
    return read_windows(Cursor({"paddingSizes_": {label: entry(**changes)}}, "$"), DIMS)


def test_windows_are_read_back() -> None:
    assert read() == (Window("i", "ki", 10, 2, 1, 1, 2),)
    assert read("i", windowDim_="ki") == read()
    assert read(unneededPadFront_=0, unneededPadBack_=1) == (Window("i", "ki", 10, 2, 1, 1, 3),)
    assert read(totalSize_=9) == (Window("i", "ki", 9, 2, 1, 1, 2),)
    assert read_windows(Cursor({}, "$"), DIMS) == ()


@pytest.mark.parametrize(
    ("label", "changes", "place", "expected", "got"),
    [
        ("j", {}, "", "one of the dims ['i', 'ki']", "j"),
        ("i", {"windowDim_": "kj"}, ".windowDim_", "one of the dims ['i', 'ki']", "kj"),
        ("i", {"totalSize_": 8}, ".totalSize_", "at least the 9 elements that the windows reach", "8"),
        ("i", {"stride_": 0}, "", "positive sizes, and padding smaller than the whole", None),
        ("i", {"dilation_": 0}, "", "positive sizes, and padding smaller than the whole", None),
        ("i", {"padFront_": -1}, "", "positive sizes, and padding smaller than the whole", None),
        ("i", {"padBack_": -1}, "", "positive sizes, and padding smaller than the whole", None),
        ("i", {"padBack_": 9}, "", "positive sizes, and padding smaller than the whole", None),
    ],
)
def test_windows_that_contradict_the_sizes(
    label: str, changes: dict[str, object], place: str, expected: str, got: str | None
) -> None:
    with pytest.raises(Misread) as caught:
        read(label, **changes)
    assert (caught.value.path, caught.value.expected) == (f"$.paddingSizes_.{label}{place}", expected)
    assert got in (None, caught.value.got)


def test_padding_may_be_all_but_one_element() -> None:
    assert read(padFront_=0, padBack_=9)[0].stored == 1


def test_needless_padding_at_the_front_is_beyond_us() -> None:
    with pytest.raises(UnsupportedError) as caught:
        read(unneededPadFront_=1)
    assert caught.value.where == "$.paddingSizes_.i_.unneededPadFront_"
    assert caught.value.message == "padding at the front that no window needs: 1"


def test_coordinates_say_what_a_core_reads_and_how_far_the_next_is() -> None:
    """Two windows a core: (2 - 1) * 2 + 3 = 5 elements, four on from core to core."""
    padded = "padded_fullspan_wunneeded"
    expected = cases.coordinate([4, 0, 0, 1], [2, 1, 1, 5], padded)
    assert coordinate(view(OpClass.CONVOLUTION), WINDOW) == expected
    expected = cases.coordinate([4, 0, 0, 1], [2, 1, 1, 6], padded)  # 2 * 2 + 3 - 1
    assert coordinate(view(OpClass.DEPTHWISE), WINDOW) == expected
    expected = cases.coordinate([5, 0, 0, 1], [2, 1, 1, 5], "padded_nozeropad")  # half of the ten
    assert coordinate(view(), replace(WINDOW, front=1)) == expected


def slot(padded: int, node: str) -> dict[str, object]:
    return {"isPresent": 1, "isPadded": padded, "isZeroPadded": 0, "dsOffset": 0, "allocateNode_": node}


def test_memories_of_windowed_operands() -> None:
    assert memories(view(), 0, "hbm") == {"hbm": slot(1, "allocate-Tensor0_hbm"), "lx": slot(1, "")}
    assert memories(view(), 1, "hbm") == {"hbm": slot(1, "allocate-Tensor1_hbm"), "lx": slot(1, "")}
    assert memories(view(), 2, "hbm") == {"hbm": slot(0, "allocate-Tensor2_hbm"), "lx": slot(0, "")}
    assert memories(view(), 0, "lx") is None


def test_memories_of_a_convolution_by_channel() -> None:
    by_channel = view(OpClass.DEPTHWISE)
    plain = {"isPresent": 1, "isPadded": 1, "isZeroPadded": 0}
    assert memories(by_channel, 0, "hbm") == {"hbm": plain, "lx": plain}
    assert memories(by_channel, 0, "lx") == {"lx": {"isPresent": 1, "isPadded": 1}}
    assert memories(by_channel, 1, "hbm") is None


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (view(window=Window("j", "ki", 10)), "a window of ki over j, dims are ['i', 'out', 'ki']"),
        (view(window=Window("i", "kj", 10)), "a window of kj over i, dims are ['i', 'out', 'ki']"),
        (
            view(dims=(Dim("i", 4), Dim("ki", 4, 2))),
            "dim ki is a window and cannot be divided over cores",
        ),
        (
            view(window=replace(WINDOW, total=8)),
            "windows over i reach 9 elements, 8 are there with padding",
        ),
        (
            view(window=replace(WINDOW, front=5, back=5)),
            "windows over i reach 9 elements, 10 are there with padding",
        ),
    ],
)
def test_windows_that_contradict_the_rest(wrong: Descriptor, message: str) -> None:
    with pytest.raises(EmitError) as caught:
        check_windows(wrong, "here")
    assert (caught.value.message, caught.value.where) == (message, "here")


def test_windows_that_are_just_right() -> None:
    check_windows(view(window=replace(WINDOW, total=9)), "here")
    check_windows(view(window=replace(WINDOW, front=5, back=4)), "here")
