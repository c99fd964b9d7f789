"""Layouts in sticks: published vectors, and walks against addresses computed one element at a time."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spyre_mlir.hw.sticks import UNIT, LinearExpr, StickAccess, StickError, StickLayout, access, round_up, walk

N = LinearExpr.of

# Host shape, dimension order with the stick last (-1: sparse), elements per stick, device sizes, bytes.
# Source: the layout rule of torch-spyre, worked out in its documentation and layout unit tests.
PUBLISHED = [
    ((200,), (0,), 64, (4, 64), 512),
    ((200,), (0, -1), 64, (1, 200, 64), 25_600),
    ((128, 256), (0, 1), 64, (4, 128, 64), 65_536),
    ((128, 256), (1, 0), 64, (2, 256, 64), 65_536),
    ((128, 200), (0, 1), 64, (4, 128, 64), 65_536),
    ((128, 256), (0, 1), 32, (8, 128, 32), 131_072),
    ((1024, 256), (0, 1), 64, (4, 1024, 64), 524_288),
    ((64, 300), (0, 1), 128, (3, 64, 128), 24_576),
    ((64, 300), (0, 1), 64, (5, 64, 64), 40_960),
    ((5, 100, 150), (0, 1, 2), 64, (100, 3, 5, 64), 192_000),
    ((5, 100, 150), (1, 0, 2), 64, (5, 3, 100, 64), 192_000),
    ((128, 256, 512), (0, 1, 2), 64, (256, 8, 128, 64), 33_554_432),
    ((2, 8, 100, 80), (0, 1, 2, 3), 64, (8, 100, 2, 2, 64), 409_600),
    ((2, 8, 128), (0, 1, 2, -1), 64, (8, 128, 1, 2, 64), 262_144),
    ((2, 3, 4, 5, 70), (0, 1, 2, 3, 4), 64, (3, 4, 5, 2, 2, 64), 30_720),
    ((512, 8, 256), (0, 2, 1), 64, (256, 1, 512, 64), 16_777_216),
    ((512, 256), (0, 1, -1), 64, (256, 1, 512, 64), 16_777_216),
]
STICK_BYTES = 128


@pytest.mark.parametrize(("shape", "order", "lanes", "sizes", "size_bytes"), PUBLISHED)
def test_published_layouts(
    shape: tuple[int, ...], order: tuple[int, ...], lanes: int, sizes: tuple[int, ...], size_bytes: int
) -> None:
    stick = order[-1]
    device = (*order[1:-1], stick, order[0]) if len(order) > 1 else order
    extents = tuple(round_up(e, lanes) if d == stick else e for d, e in enumerate(shape))
    layout = StickLayout(device, stick, extents)
    assert (*(layout.count(d, lanes) for d in layout.order), lanes) == sizes
    assert layout.sticks(lanes) * STICK_BYTES == size_bytes


@pytest.mark.parametrize(
    ("shape", "stick", "lanes", "order"),
    [
        ((200,), 0, 64, (0,)),
        ((128, 256), 1, 64, (1, 0)),
        ((5, 100, 150), 2, 64, (1, 2, 0)),
        ((2, 8, 100, 80), 3, 64, (1, 2, 3, 0)),
    ],
)
def test_published_constructor_puts_the_first_dimension_next_to_the_stick(
    shape: tuple[int, ...], stick: int, lanes: int, order: tuple[int, ...]
) -> None:
    layout = StickLayout.published(shape, stick, lanes)
    assert layout.order == order
    assert all(have >= need for have, need in zip(layout.extents, shape, strict=True))


def test_scalar_takes_one_stick() -> None:
    assert StickLayout((UNIT,), UNIT, ()).sticks(64) * STICK_BYTES == 128


def test_published_sparse_layout() -> None:
    assert StickLayout.published((200,), UNIT, 64).sticks(64) == 200
    assert StickLayout.published((2, 8, 128), UNIT, 64).order == (1, 2, UNIT, 0)


def test_gather_table_has_its_rows_outermost() -> None:
    layout = StickLayout.rows_outermost((10, 70), 1, 64)
    assert layout.strides(64) == {0: 2, 1: 1}


def test_strides_of_the_published_example() -> None:
    # (128, 256) is [4, 128, 64]: a row further is the next stick, a column stick further is 128 sticks on.
    assert StickLayout.published((128, 256), 1, 64).strides(64) == {0: 1, 1: 128}


def test_order_must_list_every_dimension_once() -> None:
    with pytest.raises(StickError, match="does not list each dimension"):
        StickLayout((0, 0), 0, (64, 64))
    with pytest.raises(StickError, match="does not list each dimension"):
        StickLayout((0, 1), UNIT, (64, 64))


def test_extents_are_positive() -> None:
    with pytest.raises(StickError, match="not all positive"):
        StickLayout((0,), 0, (0,))


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("0", LinearExpr()),
        ("m", N("m")),
        ("m + 3", N("m").shifted(3)),
        ("h * 64 + d", LinearExpr(0, (("h", 64), ("d", 1)))),
        ("i * -1 + 4", LinearExpr(4, (("i", -1),))),
        ("m - 2", N("m").shifted(-2)),
    ],
)
def test_text_of_expressions(text: str, expr: LinearExpr) -> None:
    assert str(expr) == text


def test_a_moved_expression_counts_each_of_its_terms() -> None:
    twice = LinearExpr(5, (("m", 2), ("n", 1), ("m", -3)))
    assert twice.moved("m", 10) == LinearExpr(-5, twice.terms)
    assert twice.moved("k", 10) == twice


ROWS = StickLayout((1, 0), 1, (8, 128))  # 8 rows of 2 sticks, published order


@pytest.mark.parametrize(
    ("index", "extents", "message"),
    [
        ((N("m"), N("n").shifted(3)), {"m": 8, "n": 64}, "starts inside a stick"),
        ((N("m").shifted(1), N("n")), {"m": 8, "n": 128}, "runs over 1 to 8, dimension 0 has 8"),
        ((N("m"), LinearExpr(0, (("n", 2),))), {"m": 8, "n": 64}, "does not walk the 64 lanes"),
        ((N("m"), LinearExpr(0, (("n", 1), ("p", 3)))), {"m": 8, "n": 32, "p": 4}, "does not walk the 64 lanes"),
        ((LinearExpr(7, (("m", -1),)), N("n")), {"m": 8, "n": 128}, "runs backwards"),
        ((N("n"), N("n")), {"n": 8}, "n is in the lanes and in another dimension"),
    ],
)
def test_accesses_that_sticks_cannot_express(
    index: tuple[LinearExpr, ...], extents: dict[str, int], message: str
) -> None:
    with pytest.raises(StickError, match=message):
        access(ROWS, 64, index, extents)


def test_access_by_hand() -> None:
    # Rows 2.. of the second stick column: 2 sticks in, plus one column of 8 sticks.
    got = access(ROWS, 64, (N("m").shifted(2), N("n").shifted(64)), {"m": 4, "n": 64})
    assert (got.offset, dict(got.strides), got.lane) == (10, {"m": 1, "n": 8}, "n")


def test_access_to_lane_0_of_some_sticks() -> None:
    got = access(ROWS, 64, (N("m"), LinearExpr(0, (("c", 64),))), {"m": 8, "c": 2})
    assert (got.offset, dict(got.strides), got.lane) == (0, {"m": 1, "c": 8}, None)


def test_walk_by_hand() -> None:
    got = walk(StickAccess(0, {"m": 1, "n": 8}, "n"), {"m": 4, "n": 128}, 64)
    assert (got.order, got.extents, got.fillers) == (("m", "n"), (8, 128), ())


def test_a_lane_dimension_of_one_stick_stands_outermost() -> None:
    """(5, 100, 64) as published: the device has [100, 1, 5] sticks, and the one is dropped."""
    layout = StickLayout.published((5, 100, 64), 2, 64)
    index, extents = (N("b"), N("m"), N("n")), {"b": 5, "m": 100, "n": 64}
    got = walk(access(layout, 64, index, extents), extents, 64)
    assert (got.order, got.extents) == (("b", "m", "n"), (5, 100, 64))
    two = StickLayout.published((5, 100, 128), 2, 64)
    extents["n"] = 128
    got = walk(access(two, 64, index, extents), extents, 64)
    assert (got.order, got.extents) == (("b", "n", "m"), (5, 128, 100))


def test_the_rows_that_indices_pick_stay_outermost() -> None:
    acc = StickAccess(0, {"n": 1, "m": 1}, "n")
    assert walk(acc, {"m": 100, "n": 64}, 64).order == ("m", "n")
    assert walk(acc, {"m": 100, "n": 64}, 64, gathered=True).order == ("n", "m")


def test_a_core_walks_its_one_stick_where_the_whole_tensor_has_it() -> None:
    acc = StickAccess(0, {"b": 1, "n": 5, "m": 5}, "n")
    extents = {"b": 5, "m": 100, "n": 64}
    assert walk(acc, extents, 64, like=("b", "n", "m")).order == ("b", "n", "m")
    assert walk(acc, extents, 64, like=("b", "m", "n")).order == ("b", "m", "n")


def test_walk_with_a_gap_below_its_innermost_dimension() -> None:
    got = walk(StickAccess(0, {"n": 8}, "n"), {"n": 128}, 64)
    assert (got.order, got.extents, got.fillers) == (("_0", "n"), (8, 128), ("_0",))


@pytest.mark.parametrize(
    ("strides", "extents", "message"),
    [
        ({"m": 2, "n": 3}, {"m": 1, "n": 2}, "no multiple"),
        ({"m": 1, "n": 4}, {"m": 8, "n": 2}, "runs into n"),
    ],
)
def test_walks_that_do_not_nest(strides: dict[str, int], extents: dict[str, int], message: str) -> None:
    with pytest.raises(StickError, match=message):
        walk(StickAccess(0, strides, None), extents, 64)


def place(layout: StickLayout, lanes: int, index: tuple[int, ...]) -> tuple[int, int]:
    """Stick and lane of one element, by the definition: dense row-major in the order of the layout."""
    stick = 0
    for dim in layout.order:
        at = 0 if dim == UNIT else index[dim] // lanes if dim == layout.stick else index[dim]
        extent = 1 if dim == UNIT else layout.extents[dim] // lanes if dim == layout.stick else layout.extents[dim]
        stick = stick * extent + at
    return stick, 0 if layout.stick == UNIT else index[layout.stick] % lanes


@st.composite
def layouts(draw: st.DrawFn, lanes: int) -> StickLayout:
    rank = draw(st.integers(1, 3))
    stick = draw(st.integers(-1, rank - 1))
    extents = tuple(draw(st.integers(1, 3)) * lanes if d == stick else draw(st.integers(1, 5)) for d in range(rank))
    order = draw(st.permutations([*range(rank), *([UNIT] if stick == UNIT else [])]))
    return StickLayout(tuple(order), stick, extents)


@given(st.data())
@settings(max_examples=150)
def test_access_is_addressing_element_by_element(data: st.DataObject) -> None:
    lanes = data.draw(st.sampled_from([4, 8]))
    layout = data.draw(layouts(lanes))
    names = [f"d{i}" for i in range(len(layout.extents))]
    index, extents = [], dict[str, int]()
    for dim, (name, extent) in enumerate(zip(names, layout.extents, strict=True)):
        step = lanes if dim == layout.stick else 1
        start = step * data.draw(st.integers(0, extent // step - 1))
        extents[name] = data.draw(st.integers(1, extent - start))
        index.append(N(name).shifted(start))
    acc = access(layout, lanes, tuple(index), extents)
    seen: set[tuple[int, int]] = set()
    for point in product(*(range(extents[n]) for n in names)):
        at = dict(zip(names, point, strict=True))
        stick = acc.offset + sum(s * (at[n] // lanes if n == acc.lane else at[n]) for n, s in acc.strides.items())
        lane = at[acc.lane] % lanes if acc.lane is not None else 0
        element = tuple(e.const + at[n] for e, n in zip(index, names, strict=True))
        assert (stick, lane) == place(layout, lanes, element)
        seen.add((stick, lane))
    assert len(seen) == prod(extents.values())


@given(st.data())
@settings(max_examples=150)
def test_split_dimension_reads_the_same_elements(data: st.DataObject) -> None:
    lanes = 4
    outer, inner = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([4, 8]))
    layout = StickLayout((1, 0), 1, (3, outer * inner))
    acc = access(layout, lanes, (N("m"), LinearExpr(0, (("h", inner), ("d", 1)))), {"m": 3, "h": outer, "d": inner})
    assert acc.lane == "d"
    for m, h, d in product(range(3), range(outer), range(inner)):
        stick = acc.offset + acc.strides["m"] * m + acc.strides["h"] * h + acc.strides["d"] * (d // lanes)
        assert (stick, d % lanes) == place(layout, lanes, (m, h * inner + d))


@given(st.data())
@settings(max_examples=150)
def test_walk_enumerates_the_sticks_of_the_access_once(data: st.DataObject) -> None:
    lanes = 4
    layout = data.draw(layouts(lanes))
    names = [f"d{i}" for i in range(len(layout.extents))]
    extents = dict(zip(names, layout.extents, strict=True))
    acc = access(layout, lanes, tuple(N(n) for n in names), extents)
    try:
        nested = walk(acc, extents, lanes)
    except StickError:
        assume(False)
        return
    # Dense nesting by the walk's reserved extents: the stride of an entry is the product of those inside it.
    unit, strides = 1, dict[str, int]()
    for name, reserved in zip(nested.order, nested.extents, strict=True):
        strides[name] = unit
        unit *= reserved // lanes if name == acc.lane else reserved
    counts = {n: extents[n] // lanes if n == acc.lane else extents[n] for n in names}
    sticks = [
        sum(strides[n] * i for n, i in zip(names, p, strict=True)) for p in product(*(range(counts[n]) for n in names))
    ]
    direct = [
        sum(acc.strides[n] * i for n, i in zip(names, p, strict=True))
        for p in product(*(range(counts[n]) for n in names))
    ]
    assert sticks == direct
    assert len(set(sticks)) == len(sticks)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        # One stick a row: rows first or last are the same places.
        (StickLayout((1, 0), 1, (5, 64)), StickLayout((0, 1), 1, (5, 64)), True),
        (StickLayout((1, 0), 1, (5, 128)), StickLayout((0, 1), 1, (5, 128)), False),
        (StickLayout((1, 0), 1, (5, 64)), StickLayout((1, 0), 1, (6, 64)), False),
        (StickLayout((1, 0), 1, (5, 64)), StickLayout((1, 0), 0, (64, 5)), False),
        # A batch of one reserves nothing, wherever it stands.
        (StickLayout((1, 2, 0), 2, (1, 5, 128)), StickLayout((0, 1, 2), 2, (1, 5, 128)), True),
        (StickLayout((1, 2, 0), 2, (1, 5, 128)), StickLayout((0, 2, 1), 2, (1, 5, 128)), False),
    ],
)
def test_layouts_with_the_same_places(one: StickLayout, other: StickLayout, alike: bool) -> None:
    assert one.lies_as(other, 64) == alike
    assert other.lies_as(one, 64) == alike


@pytest.mark.parametrize(
    ("shape", "layout", "written"),
    [
        # Torch-spyre's own examples, with orders 1, 0; 1, 0, 2; 0, -1; and 0, 1, 2, -1.
        ((128, 256), StickLayout.published((128, 256), 0, 64), ([2, 256, 64], [16384, 1, 256])),
        ((5, 100, 150), StickLayout((0, 2, 1), 2, (5, 100, 192)), ([5, 3, 100, 64], [15000, 64, 150, 1])),
        ((200,), StickLayout.published((200,), UNIT, 64), ([1, 200, 64], [-1, 1, -1])),
        ((2, 8, 128), StickLayout.published((2, 8, 128), UNIT, 64), ([8, 128, 1, 2, 64], [128, 1, -1, 1024, -1])),
    ],
)
def test_layouts_as_torch_spyre_writes_them(
    shape: tuple[int, ...], layout: StickLayout, written: tuple[list[int], list[int]]
) -> None:
    assert layout.device_sizes(shape, 64) == written
