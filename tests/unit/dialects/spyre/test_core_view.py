"""Slices of buffers on cores, and how a core walks its slice, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.core_view import (
    CoreDivision,
    CoreLoop,
    CoreView,
    core_view,
    hbm_bytes,
    local_slices,
    local_walk,
)
from spyre_mlir.hw.sticks import UNIT, LinearExpr, StickAccess, StickError, StickLayout, StrideNest

M, N, K = (LinearExpr.of(name) for name in "mnk")
H_D = LinearExpr(0, (("h", 64), ("d", 1)))
# 4 x 128 halves: 8 sticks of 64, those of one column of sticks side by side.
TENSOR = DeviceTensor((4, 128), "SEN169_FP16", StickLayout((1, 0), 1, (4, 128)), "lx")
HALVED = CoreView((2, 1), ((0, 0), (1, 0)))


def loops(**said: tuple[int, int] | tuple[int, int, int]) -> dict[str, CoreLoop]:
    """Loops by name: extent and cores, and the padded extent where it is another one."""
    return {name: CoreLoop(rest[0] if rest else extent, extent, split) for name, (extent, split, *rest) in said.items()}


def rows(**splits: int) -> list[dict[str, int]]:
    """Per core, its slice of every loop; the first loop varies fastest."""
    table: list[dict[str, int]] = [{}]
    for name, split in splits.items():
        table = [row | {name: number} for number in range(split) for row in table]
    return table


def test_elements_that_a_core_runs_over() -> None:
    assert CoreLoop(128, 100, 1).per_core == 100
    assert CoreLoop(128, 100, 2).per_core == 64


def test_a_slice_in_a_scratchpad() -> None:
    assert HALVED.layout(TENSOR.layout) == StickLayout((1, 0), 1, (2, 128))
    assert HALVED.bytes_per_core(TENSOR) == 4 * 128
    assert CoreView((1, 2), ((0, 0), (0, 1))).layout(TENSOR.layout).extents == (4, 64)


@pytest.mark.parametrize(
    ("slices", "text"),
    [
        (((0, 0),), "1 core (cores 0, 1, … hold [0, 0])"),
        (((0, 0), (1, 0), (2, 0)), "3 cores (cores 0, 1, … hold [0, 0], [1, 0], [2, 0])"),
        (((0, 0), (1, 0), (2, 0), (3, 0)), "4 cores (cores 0, 1, … hold [0, 0], [1, 0], [2, 0] …)"),
    ],
)
def test_text_of_slices(slices: tuple[tuple[int, ...], ...], text: str) -> None:
    assert str(CoreView((4, 1), slices)) == f"slices [4, 1] on {text}"


@pytest.mark.parametrize(
    ("index", "said", "table", "view"),
    [
        ((M, N), loops(m=(4, 2), n=(128, 1)), rows(m=2, n=1), HALVED),
        (
            (M, N),
            loops(m=(4, 2), n=(128, 2)),
            rows(n=2, m=2),
            CoreView((2, 2), ((0, 0), (0, 1), (1, 0), (1, 1))),
        ),
        ((M, H_D), loops(m=(4, 1), h=(2, 2), d=(64, 1)), rows(h=2), CoreView((1, 2), ((0, 0), (0, 1)))),
        # The second of each two rows: a core that has both has it.
        (
            (LinearExpr(1, (("o", 2),)), N),
            loops(o=(2, 2), n=(128, 1)),
            rows(o=2, n=1),
            CoreView((2, 1), ((0, 0), (1, 0))),
        ),
        # Both loops of a dimension: a core has one step of the outer one and a part of the inner one.
        (
            (LinearExpr(0, (("o", 2), ("i", 1))), N),
            loops(i=(2, 2), o=(2, 2), n=(128, 1)),
            rows(i=2, o=2, n=1),
            CoreView((4, 1), ((0, 0), (1, 0), (2, 0), (3, 0))),
        ),
        (
            (LinearExpr(0, (("o", 2), ("i", 1))), N),
            loops(o=(2, 2), i=(2, 2), n=(128, 1)),
            rows(o=2, i=2, n=1),
            CoreView((4, 1), ((0, 0), (2, 0), (1, 0), (3, 0))),
        ),
        ((M, LinearExpr(3)), loops(m=(4, 4)), rows(m=4), CoreView((4, 1), ((0, 0), (1, 0), (2, 0), (3, 0)))),
        ((M, N, LinearExpr()), loops(m=(4, 2), n=(128, 1)), rows(m=2, n=1), HALVED),
    ],
)
def test_slices_of_a_division(
    index: tuple[LinearExpr, ...], said: Mapping[str, CoreLoop], table: list[dict[str, int]], view: CoreView
) -> None:
    assert core_view(TENSOR, index, said, table) == view


@pytest.mark.parametrize(
    ("index", "said", "message"),
    [
        (
            (M, N),
            loops(m=(4, 1), n=(128, 1), k=(8, 2)),
            "k is divided over 2 cores and walks 0 dimensions of this tensor, so several cores would need the same",
        ),
        ((M, M), loops(m=(4, 2)), "m is divided over 2 cores and walks 2 dimensions of this tensor"),
        ((M, H_D), loops(m=(4, 1), h=(2, 2), d=(64, 2)), "a slice of 32 elements is no whole sticks of 64"),
        (
            (LinearExpr(0, (("o", 1),)), LinearExpr(0, (("h", 32), ("d", 1)))),
            loops(o=(4, 1), h=(4, 2), d=(32, 2)),
            r"h and d are both divided and walk one dimension, h \* 32 \+ d, and a core has more of h",
        ),
        (
            (LinearExpr(0, (("o", 2), ("i", 1))), N),
            loops(o=(2, 2), i=(3, 3), n=(128, 1)),
            "covers 3 of the 2 elements of dimension 0, which is divided",
        ),
        (
            (M, H_D),
            loops(m=(4, 1), h=(2, 1), d=(64, 2)),
            r"d is divided but not the outermost loop of h \* 64 \+ d, so its slices are scattered",
        ),
        ((M, H_D), loops(m=(4, 1), h=(2, 2), d=(64, 1, 65)), "h is divided but not the outermost loop"),
        ((M, N), loops(m=(2, 2), n=(128, 1)), "m covers 2 of the 4 elements of dimension 0, which is divided"),
        ((M.shifted(1), N), loops(m=(4, 2), n=(128, 1)), r"m is divided but not the outermost loop of m \+ 1"),
        ((M, N), loops(m=(4, 1), n=(128, 4)), "a slice of 32 elements is no whole sticks of 64"),
        (
            (M, N, K),
            loops(m=(4, 1), n=(128, 1), k=(8, 1)),
            "a tensor that is relaid out from or to a sparse one",
        ),
    ],
)
def test_divisions_without_slices(index: tuple[LinearExpr, ...], said: Mapping[str, CoreLoop], message: str) -> None:
    with pytest.raises(StickError, match=message):
        core_view(TENSOR, index, said, [])


@pytest.mark.parametrize(("order", "has_slices"), [((0, 1), False), ((1, 0), True)])
def test_every_second_element_of_the_outermost_dimension_is_no_slice(order: tuple[int, int], has_slices: bool) -> None:
    """Core 1 reads element 2, and a file says element 1 of a tensor of half as many."""
    tensor = replace(TENSOR, layout=StickLayout(order, 1, (4, 128)))
    index, said = (LinearExpr(0, (("m", 2),)), N), loops(m=(2, 2), n=(128, 1))
    if has_slices:
        assert core_view(tensor, index, said, rows(m=2)).slices == ((0, 0), (1, 0))
    else:
        with pytest.raises(StickError, match="passes over elements of dimension 0, which is divided and outermost"):
            core_view(tensor, index, said, rows(m=2))


def test_a_tensor_with_room_for_sparse_elements_has_no_slices() -> None:
    layout = StickLayout((1, UNIT, 0), 0, (64, 3), 64)
    relaid = DeviceTensor((64, 3), "SEN169_FP16", layout, "lx")
    with pytest.raises(StickError, match="a tensor that is relaid out from or to a sparse one"):
        core_view(relaid, (M, N), loops(m=(64, 1), n=(3, 1)), [{}])


def test_a_slice_holds_both_sticks_that_one_was_widened_into() -> None:
    wide = replace(TENSOR, format="IEEE_FP32")
    assert core_view(wide, (M, N), loops(m=(4, 1), n=(128, 4)), rows(n=4)).parts == (1, 4)
    with pytest.raises(StickError, match="a slice of 32 elements is no whole sticks of 64"):
        core_view(replace(wide, arrangement="dl16_to_fp32"), (M, N), loops(m=(4, 1), n=(128, 4)), [])


def test_walk_of_a_slice() -> None:
    """2 rows of 2 sticks: the rows lie side by side, the next stick of a row is 2 further."""
    found = local_walk(TENSOR, (M, N), loops(m=(4, 2), n=(128, 1)), HALVED)
    assert found == (StickAccess(0, {"m": 1, "n": 2}, "n"), StrideNest(("m", "n"), (2, 128), ()))


def test_a_slice_is_walked_in_the_order_of_the_whole() -> None:
    """One stick per row and core: the stick keeps its place inside of the rows, as in a tensor with two."""
    outermost = replace(TENSOR, layout=StickLayout((0, 1), 1, (4, 128)))
    view = CoreView((1, 2), ((0, 0), (0, 1)))
    assert local_walk(outermost, (M, N), loops(m=(4, 1), n=(128, 2)), view) == (
        StickAccess(0, {"m": 1, "n": 1}, "n"),
        StrideNest(("n", "m"), (64, 4), ()),
    )


def test_a_step_that_no_core_takes_reserves_nothing() -> None:
    """Two heads on two cores, in one group: a core has one head, and no room for that of the other."""
    heads = DeviceTensor((2, 3, 64), "SEN169_FP16", StickLayout((0, 1, 2), 2, (2, 3, 64)), "lx")
    index = (LinearExpr(0, (("group", 2), ("head", 1))), M, N)
    said = loops(group=(1, 1), head=(2, 2), m=(3, 1), n=(64, 1))
    view = core_view(heads, index, said, rows(head=2, group=1, m=1, n=1))
    _, nest = local_walk(heads, index, said, view)
    assert dict(zip(nest.order, nest.extents, strict=True)) == {"n": 64, "m": 3, "head": 1, "group": 1}


@pytest.mark.parametrize(
    ("loops", "is_product", "slices"),
    [
        ((("m", 4, 4, 2), ("n", 128, 128, 2)), False, ((0, 0), (1, 0), (0, 1), (1, 1))),
        ((("n", 128, 128, 2), ("m", 4, 4, 2)), False, ((0, 0), (0, 1), (1, 0), (1, 1))),
        # The last loop of a product, its sum, is counted first.
        ((("m", 4, 4, 2), ("n", 128, 128, 2)), True, ((0, 0), (0, 1), (1, 0), (1, 1))),
    ],
)
def test_slices_by_the_order_in_which_loops_count(
    loops: tuple[tuple[str, int, int, int], ...], is_product: bool, slices: tuple[tuple[int, ...], ...]
) -> None:
    found = local_slices(TENSOR, (M, N), CoreDivision(loops, is_product))
    assert found is not None and found.view == CoreView((2, 2), slices)
    assert found.bytes == 2 * 128 and found.walk[1] == StrideNest(("m", "n"), (2, 64), ())


def test_slices_of_loops_with_other_names_are_the_same_object() -> None:
    one = local_slices(TENSOR, (M, N), CoreDivision((("m", 4, 4, 2), ("n", 128, 100, 1)), is_product=False))
    wide = DeviceTensor((8, 64), "SEN169_FP16", StickLayout((0, 1), 1, (8, 64)))
    other = local_slices(wide, (K, N), CoreDivision((("k", 8, 8, 2), ("n", 64, 64, 1)), is_product=False))
    assert one is not None and other is not None and one.view is other.view and one.view == HALVED
    beside = local_slices(wide, (K, N), CoreDivision((("n", 64, 64, 1), ("k", 8, 8, 4)), is_product=False))
    assert beside is not None and beside.view == CoreView((4, 1), ((0, 0), (1, 0), (2, 0), (3, 0)))


def test_no_slices_where_cores_would_need_the_same_elements() -> None:
    assert local_slices(TENSOR, (M, N), CoreDivision((("m", 4, 4, 1), ("k", 8, 8, 2)), is_product=False)) is None


def test_a_core_stays_in_its_slice() -> None:
    """A loop that is padded for another operand runs beyond the 100 rows of this one."""
    tall = DeviceTensor((100, 64), "SEN169_FP16", StickLayout((0, 1), 1, (100, 64)), "lx")
    whole = CoreView((1, 1), ((0, 0),))
    said = loops(k=(100, 1), n=(64, 1))
    assert local_walk(tall, (K, N), said, whole)[1] == StrideNest(("k", "n"), (100, 64), ())
    with pytest.raises(StickError, match="a core walks up to stick 100 and holds 100"):
        local_walk(tall, (K, N), loops(k=(100, 1, 101), n=(64, 1)), whole)
    with pytest.raises(StickError, match="a core walks up to stick 100 and holds 100"):
        local_walk(tall, (K.shifted(50), N), loops(k=(50, 1, 51), n=(64, 1)), whole)


def test_bytes_of_the_sticks_that_are_walked() -> None:
    walked = StickAccess(0, {"m": 1, "n": 4, "k": 0}, "n")
    assert hbm_bytes(walked, {"m": 4, "n": 128, "k": 9}, 64) == 4 * 2 * 128
    assert hbm_bytes(StickAccess(5, {}, None), {"m": 4}, 64) == 128
