"""Matrix products as nests: which loops they have, by hand, and what they compute against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, f32, i64

from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.index_views import IndexView
from spyre_mlir.transforms.aten_to_loop.contractions import MOST_WHOLE_PRODUCTS, lower_product, lower_whole_product
from spyre_mlir.transforms.aten_to_loop.nests import TensorView
from tests.unit.machine.modules import Array, numbers
from tests.unit.transforms.aten_to_loop.building import Built

Change = Callable[[IndexView], IndexView]


def plain(view: IndexView) -> IndexView:
    return view


def product(
    left: tuple[int, ...], right: tuple[int, ...], change: tuple[Change, Change] = (plain, plain)
) -> tuple[list[dict[str, int]], Array, Array, Array, tuple[int, ...]]:
    """Loops, result, inputs and the result's shape of a product of two views of arguments."""
    built, x, y = Built(left, right), numbers(*left), numbers(*right, seed=1)
    a, b = (TensorView(built.arg(n).base, c(built.arg(n).view)) for n, c in enumerate(change))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    made = lower_product(built.b, a, b, TensorType(f32, shape))
    assert made.shape == shape
    return built.loops, built.run(made, x, y), x, y, shape


def test_a_product_sums_one_loop() -> None:
    built = Built((4, 8), (8, 6))
    lower_product(built.b, built.arg(0), built.arg(1), TensorType(f32, [4, 6]))
    (nest,) = built.made
    assert isinstance(nest, NestOp) and nest.combine is not None and nest.combine.data == "arith.addf"
    assert list(nest.reduced) == ["k"]
    loops, got, x, y, _ = product((4, 8), (8, 6))
    assert loops == [{"m": 4, "n": 6, "k": 8}] and np.allclose(got, x @ y)


def test_one_element_needs_no_sum() -> None:
    built, x, y = Built((4, 1), (1, 6)), numbers(4, 1), numbers(1, 6)
    made = lower_product(built.b, built.arg(0), built.arg(1), TensorType(f32, [4, 6]))
    (nest,) = built.made
    assert isinstance(nest, NestOp) and nest.combine is None and built.loops == [{"m": 4, "n": 6}]
    assert np.allclose(built.run(made, x, y), x @ y)


def test_batches_of_one_operand_are_rows() -> None:
    loops, got, x, y, _ = product((2, 4, 8), (8, 6))
    assert loops == [{"b0": 2, "m": 4, "n": 6, "k": 8}] and np.allclose(got, x @ y)


def test_shared_batches() -> None:
    loops, got, x, y, _ = product((2, 3, 4, 8), (2, 3, 8, 6))
    assert loops == [{"b0": 2, "b1": 3, "m": 4, "n": 6, "k": 8}] and np.allclose(got, x @ y)


@pytest.mark.parametrize(
    ("left", "right", "flat"),
    [
        ((2, 3, 2, 4, 8), (2, 3, 2, 8, 6), True),  # three shared batches
        ((2, 3, 2, 4, 8), (2, 3, 1, 8, 6), False),  # two shared, one of the rows
        ((2, 4, 8), (8, 6), False),
        ((2, 3, 1, 8), (8, 6), False),
    ],
)
def test_what_needs_more_loops_has_all_batches_in_one(
    left: tuple[int, ...], right: tuple[int, ...], flat: bool
) -> None:
    loops, got, x, y, shape = product(left, right)
    assert np.allclose(got, x @ y)
    batch = int(np.prod(shape[:-2]))
    last = {"b0": batch, "m": 4, "n": 6, "k": 8}
    assert (len(loops) > 1) == flat and (not flat or last in loops)


def test_rows_of_many_loops_are_one_matrix_if_all_batches_share_the_other() -> None:
    """With m, three loops of rows."""
    loops, got, x, y, _ = product((2, 3, 4, 8), (8, 6))
    assert loops == [{"d0": 2, "d1": 3, "d2": 4, "d3": 8}, {"m": 24, "n": 6, "k": 8}]
    assert np.allclose(got, x @ y)


def heads(batches: int, rows: int) -> Change:
    """Two heads of four channels each, which are the columns of `rows` rows."""
    return lambda view: view.reshape((batches, rows, 2, 4)).permute((0, 2, 1, 3))


@pytest.mark.parametrize(
    ("batches", "rows", "columns", "stay"),
    [(3, 8, 5, True), (1, 8, 5, True), (3, 8, 257, False)],
    ids=["a matrix for each batch", "no batches", "many columns"],
)
def test_heads_that_are_columns_stay_where_they_are(batches: int, rows: int, columns: int, stay: bool) -> None:
    """There is a matrix for each batch, unless its columns are many."""
    loops, got, x, y, _ = product((batches, rows, 8), (4, columns), (heads(batches, rows), plain))
    assert np.allclose(got, x.reshape(batches, rows, 2, 4).transpose(0, 2, 1, 3) @ y)
    if batches == 1:
        assert loops == [{"b1": 2, "m": rows, "n": columns, "k": 4}]
    elif stay:
        assert loops == [{"d0": 3, "d2": 4, "d3": 5}, {"b0": 3, "b1": 2, "m": 8, "n": 5, "k": 4}]
    else:
        assert loops[-1] == {"m": batches * 2 * rows, "n": columns, "k": 4}


def test_channels_that_are_no_columns_are_copied() -> None:
    """An image's channels come in front of its rows: the copy moves them to the lanes."""
    loops, got, x, y, _ = product((2, 4, 8, 9), (4, 5), (lambda v: v.permute((0, 2, 3, 1)), plain))
    assert loops[-1] == {"m": 144, "n": 5, "k": 4} and len(loops) == 2
    assert np.allclose(got, x.transpose(0, 2, 3, 1) @ y)


def test_products_of_the_same_rows_share_their_copy() -> None:
    """Windows of 2 x 2 of 4 x 6 rows: four loops of rows, that two matrices are multiplied with."""
    built, x, y, z = Built((4, 6, 8), (8, 5), (8, 7)), numbers(4, 6, 8), numbers(8, 5), numbers(8, 7, seed=1)
    windows = built.arg(0).view.reshape((2, 2, 3, 2, 8)).permute((0, 2, 1, 3, 4)).reshape((6, 4, 8))
    left = TensorView(built.arg(0).base, windows)
    rows = x.reshape(2, 2, 3, 2, 8).transpose(0, 2, 1, 3, 4).reshape(6, 4, 8)
    made = [
        lower_product(built.b, left, built.arg(n), TensorType(f32, [6, 4, columns])) for n, columns in ((1, 5), (2, 7))
    ]
    copied = {"d0_0": 2, "d0_1": 3, "d1_0": 2, "d1_1": 2, "d2": 8}
    assert built.loops == [copied, {"m": 24, "n": 5, "k": 8}, {"m": 24, "n": 7, "k": 8}]
    assert np.allclose(built.run(made[1], x, y, z), rows @ z)


def test_batches_of_the_second_operand_alone_are_given_to_the_first() -> None:
    loops, got, x, y, _ = product((4, 8), (3, 8, 6))
    assert loops == [{"d0": 3, "d1": 4, "d2": 8}, {"b0": 3, "m": 4, "n": 6, "k": 8}]
    assert np.allclose(got, x @ y)


def turn(view: IndexView) -> IndexView:
    return view.transpose(-1, -2)


def repeat(rows: int, columns: int) -> Change:
    return lambda view: view.expand((*view.shape[:-2], rows, columns))


CHANGES: dict[str, tuple[tuple[int, ...], tuple[int, ...], Change, Change, int]] = {
    "turned operands are read as they are": ((8, 4), (6, 8), turn, turn, 1),
    "a summed loop of two is copied": ((2, 4, 3), (6, 5), lambda v: v.permute((1, 0, 2)).reshape((4, 6)), plain, 2),
    "rows of two loops stay": ((4, 2, 6), (6, 5), lambda v: v.permute((1, 0, 2)).reshape((8, 6)), plain, 1),
    "repeated rows are copied": ((1, 8), (8, 6), repeat(4, 8), plain, 2),
    "a repeated sum is copied": ((4, 1), (8, 6), repeat(4, 8), plain, 2),
    "repeated columns are copied": ((4, 8), (8, 1), plain, repeat(8, 6), 2),
    "a repeated sum of the second is copied": ((4, 8), (1, 6), plain, repeat(8, 6), 2),
    "columns of two loops are copied": ((4, 8), (2, 8, 3), plain, lambda v: v.permute((1, 0, 2)).reshape((8, 6)), 2),
    "a second sum of two loops is copied": (
        (4, 6),
        (2, 5, 3),
        plain,
        lambda v: v.permute((0, 2, 1)).reshape((6, 5)),
        2,
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_views(name: str) -> None:
    left, right, one, other, nests = CHANGES[name]
    built, x, y = Built(left, right), numbers(*left), numbers(*right, seed=1)
    a = TensorView(built.arg(0).base, one(built.arg(0).view))
    b = TensorView(built.arg(1).base, other(built.arg(1).view))
    shape = (a.shape[0], b.shape[1])
    made = lower_product(built.b, a, b, TensorType(f32, shape))
    assert len(built.loops) == nests
    wanted_a, wanted_b = (_copied(left, one, x), _copied(right, other, y))
    assert np.allclose(built.run(made, x, y), wanted_a @ wanted_b)


def _copied(shape: tuple[int, ...], change: Change, values: Array) -> Array:
    """The elements of a view."""
    built = Built(shape)
    return built.run(built.b.copy(TensorView(built.arg().base, change(built.arg().view))), values)


def test_a_repeated_weight_is_copied_once() -> None:
    """Its batch of one is repeated for the rows of the other: the copy is of one batch."""
    built, x, y = Built((3, 4, 6), (2, 6, 3)), numbers(3, 4, 6), numbers(2, 6, 3, seed=1)
    cut = built.arg(1).view.permute((1, 0, 2)).reshape((6, 6))
    made = lower_product(built.b, built.arg(0), TensorView(built.arg(1).base, cut), TensorType(f32, [3, 4, 6]))
    assert len(built.loops) == 2 and int(np.prod(list(built.loops[0].values()))) == 36
    assert built.loops[1] == {"b0": 3, "m": 4, "n": 6, "k": 6}
    assert np.allclose(built.run(made, x, y), x @ y.transpose(1, 0, 2).reshape(6, 6))


def test_a_first_operand_cut_in_its_sum_is_copied_before_it_is_repeated() -> None:
    """One copy makes its sum one loop, and a second one repeats that for each batch of the second operand."""
    built, x, y = Built((4, 2, 3), (5, 6, 7)), numbers(4, 2, 3), numbers(5, 6, 7, seed=1)
    cut = built.arg(0).view.permute((0, 2, 1)).reshape((4, 6))
    made = lower_product(built.b, TensorView(built.arg(0).base, cut), built.arg(1), TensorType(f32, [5, 4, 7]))
    sizes = [int(np.prod(list(loops.values()))) for loops in built.loops]
    assert sizes == [24, 120, 840] and len(built.loops[1]) == 3
    assert np.allclose(built.run(made, x, y), x.transpose(0, 2, 1).reshape(4, 6) @ y)


def test_a_first_operand_of_many_rows_is_copied_alone() -> None:
    """Its rows are three loops of two that there may be; the second operand has no batch, and stays where it is."""
    built, x, y = Built((2, 3, 4, 8), (8, 5)), numbers(2, 3, 4, 8), numbers(8, 5, seed=1)
    cut = built.arg(0).view.permute((1, 0, 2, 3)).reshape((24, 8))
    made = lower_product(built.b, TensorView(built.arg(0).base, cut), built.arg(1), TensorType(f32, [24, 5]))
    assert [int(np.prod(list(loops.values()))) for loops in built.loops] == [192, 960]
    assert np.allclose(built.run(made, x, y), x.transpose(1, 0, 2, 3).reshape(24, 8) @ y)


def test_batches_cut_apart_are_copied() -> None:
    """Six batches as 2 times 3 against 3 times 2."""
    built, x, y = Built((2, 3, 4, 8), (3, 2, 8, 5)), numbers(2, 3, 4, 8), numbers(3, 2, 8, 5, seed=1)
    a, b = (
        TensorView(r.base, r.view.permute((1, 0, 2, 3)).reshape((6, *r.shape[2:])))
        for r in (built.arg(0), built.arg(1))
    )
    made = lower_product(built.b, a, b, TensorType(f32, [6, 4, 5]))
    assert built.loops[-1] == {"b0": 6, "m": 4, "n": 5, "k": 8} and len(built.loops) == 3
    wanted = x.transpose(1, 0, 2, 3).reshape(6, 4, 8) @ y.transpose(1, 0, 2, 3).reshape(6, 8, 5)
    assert np.allclose(built.run(made, x, y), wanted)


def test_whole_numbers_are_multiplied_and_then_summed() -> None:
    rng = np.random.default_rng(3)
    x, y = rng.integers(-99, 99, (2, 3, 5)), rng.integers(-99, 99, (2, 5, 4))
    built = Built(((2, 3, 5), i64), ((2, 5, 4), i64))
    made = lower_whole_product(built.b, built.arg(0), built.arg(1), TensorType(i64, [2, 3, 4]))
    assert built.loops == [
        {"d0": 2, "d1": 3, "d2": 4, "d3": 5},
        {"d0": 2, "d1": 3, "d2": 4, "r": 5},
    ]
    assert made.shape == (2, 3, 4) and np.array_equal(built.run(made, x, y), x @ y)


def test_too_many_whole_products_are_refused() -> None:
    assert MOST_WHOLE_PRODUCTS * 4 == 64 * 2**20  # bytes of float32
    built = Built(((4096, 4096), i64), ((4096, 1), i64), ((4096, 2), i64))
    lower_whole_product(built.b, built.arg(0), built.arg(1), TensorType(i64, [4096, 1]))
    with pytest.raises(UnsupportedError, match="a product of integers with 33,554,432 products") as refused:
        lower_whole_product(built.b, built.arg(0), built.arg(2), TensorType(i64, [4096, 2]))
    assert refused.value.hint == "up to 16,777,216 are possible; convert the operands to floats if they are small"
