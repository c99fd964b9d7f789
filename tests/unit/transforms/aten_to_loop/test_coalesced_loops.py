"""Loops that walk together made one, and shuffles made of several steps: maps and orders by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw.sticks import IndexMap, LinearExpr
from spyre_mlir.ops.index_views import IndexView
from spyre_mlir.transforms.aten_to_loop.coalesced_loops import loop_count, merged, staged, stored_order
from spyre_mlir.transforms.aten_to_loop.nests import NestLoops, TensorView
from tests.unit.machine.modules import numbers
from tests.unit.transforms.aten_to_loop.building import Built


def expr(const: int = 0, **terms: int) -> LinearExpr:
    return LinearExpr(const, tuple(terms.items()))


def joined(*maps: IndexMap, extents: tuple[int, ...] = (2, 3, 4)) -> tuple[dict[str, int], list[IndexMap]]:
    """The loops a, b, c, … joined, and the maps, the last of the result."""
    names = tuple((n,) for n in "abcd"[: len(extents)])
    loops, out = merged(NestLoops(names, tuple((e,) for e in extents), maps[:-1]), maps[-1])
    return {n: e for (n,), (e,) in zip(loops.names, loops.extents, strict=True)}, [*loops.maps, out]


def test_loops_are_counted_over_all_dimensions() -> None:
    assert loop_count(NestLoops((("a", "b"), (), ("c",)), ((2, 3), (), (4,)), ())) == 3
    assert loop_count(NestLoops((), (), ())) == 0


def test_loops_that_all_maps_walk_as_one_are_one() -> None:
    """12 a + 4 b + c is one index of 24; the inner loop's step stays."""
    whole = (expr(a=12, b=4, c=1),)
    assert joined(whole, whole) == ({"a": 24}, [(expr(a=1),)] * 2)
    wide = (expr(5, a=24, b=8, c=2),)
    assert joined(wide, whole) == ({"a": 24}, [(expr(5, a=2),), (expr(a=1),)])


def test_one_map_that_walks_otherwise_keeps_loops_apart() -> None:
    whole, turned = (expr(a=12, b=4, c=1),), (expr(a=1, b=8, c=2),)
    # Only b and c are neighbours in both.
    assert joined(turned, whole) == ({"a": 2, "b": 12}, [(expr(a=1, b=2),), (expr(a=12, b=1),)])
    assert joined(whole, (expr(b=4, c=1), expr(a=1))) == (
        {"a": 2, "b": 12},
        [(expr(a=12, b=1),), (expr(b=1), expr(a=1))],
    )
    apart = (expr(a=1), expr(b=1), expr(c=1))
    assert joined(whole, apart) == ({"a": 2, "b": 3, "c": 4}, [whole, apart])


def test_a_loop_that_is_not_walked_joins_another_that_is_not() -> None:
    whole, none = (expr(a=12, b=4, c=1),), ()
    assert joined(none, whole) == ({"a": 24}, [(), (expr(a=1),)])
    row = (expr(c=1),)  # repeated over a and b
    assert joined(row, whole) == ({"a": 6, "c": 4}, [(expr(c=1),), (expr(a=4, c=1),)])


def test_joined_loops_join_the_next() -> None:
    whole = (expr(a=60, b=20, c=5, d=1),)
    assert joined(whole, whole, extents=(2, 3, 4, 5))[0] == {"a": 120}


def view(*shape: int) -> IndexView:
    return IndexView.identity(shape)


def test_the_order_in_which_a_base_stores_axes() -> None:
    cut = view(24).reshape((2, 3, 4))
    axes = [a for (a,) in cut.dims]
    assert stored_order(cut) == axes
    assert stored_order(cut.permute((2, 0, 1))) == axes
    both = view(4, 6).reshape((2, 2, 3, 2))
    assert stored_order(both.permute((3, 2, 1, 0))) == [a for (a,) in both.dims]
    assert stored_order(view(1, 5).squeeze()) == [0]


@pytest.mark.parametrize(
    "part",
    [
        view(24).reshape((2, 3, 4)).slice(0, 0, 1),
        view(24).reshape((2, 3, 4)).slice(1, 1, 3),
        view(24).reshape((2, 3, 4)).slice(2, 0, 3),
        view(24).reshape((8, 3)).slice(1, 0, 2),  # three elements hold one and a half times two
        view(24).slice(0, 0, 12, 2),
        view(24).slice(0, 4, 24),
        view(24).reshape((6, 4)).expand((2, 6, 4)),
        view(2, 3).slice(0, 1, 2),
        view(24).slice(0, 0, 12),
    ],
)
def test_a_part_or_a_repetition_has_no_such_order(part: IndexView) -> None:
    assert stored_order(part) is None


@pytest.mark.parametrize("order", [(7, 6, 5, 4, 3, 2, 1, 0), (1, 0, 3, 2, 5, 4, 7, 6), (6, 7, 4, 5, 2, 3, 0, 1)])
def test_a_shuffle_is_read_from_a_tensor_that_is_nearer_to_its_order(order: tuple[int, ...]) -> None:
    shape = (2, 3, 2, 3, 2, 3, 2, 3)
    built, x = Built((36, 36)), numbers(36, 36)
    reading = TensorView(built.arg().base, built.arg().view.reshape(shape).permute(order))
    nearer = staged(built.b.copy, reading)
    assert nearer is not None and nearer.shape == reading.shape
    assert max(map(len, built.loops)) <= 6
    # What is left has six runs at most, so six loops copy it.
    made = built.b.copy(nearer, (1296,))
    assert max(map(len, built.loops)) <= 6
    assert np.array_equal(built.run(made, x), x.reshape(shape).transpose(order).reshape(-1))


def test_axes_move_two_at_a_time_and_only_while_runs_are_many() -> None:
    shape = (2, 3, 2, 3, 2, 3, 2, 3)
    built = Built((1296,))
    reading = TensorView(built.arg().base, built.arg().view.reshape(shape).permute((7, 6, 5, 4, 3, 2, 1, 0)))
    staged(built.b.copy, reading)
    # A copy in one dimension, then 1 and 0 to the front, then 3 and 2: runs of 10 | 234567, and 3 | 2 | 10 | 4567.
    assert [list(loops.values()) for loops in built.loops] == [[1296], [3, 2, 216], [3, 2, 6, 36]]
    few = Built((1296,))
    staged(few.b.copy, TensorView(few.arg().base, few.arg().view.reshape(shape).permute((4, 5, 6, 7, 0, 1, 2, 3))))
    assert len(few.loops) == 1


def test_what_is_no_shuffle_has_no_stages() -> None:
    built = Built((36, 36), (2,) * 7, (2,) * 6)
    part = TensorView(built.arg(0).base, built.arg(0).view.slice(0, 0, 35))
    assert staged(built.b.copy, part) is None
    turned = [
        TensorView(a.base, a.view.permute(tuple(reversed(range(len(a.shape)))))) for a in (built.arg(1), built.arg(2))
    ]
    assert staged(built.b.copy, turned[0]) is None  # a base of seven dimensions takes seven loops itself
    assert built.made == []
    assert staged(built.b.copy, turned[1]) is not None
