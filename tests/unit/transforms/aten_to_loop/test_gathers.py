"""Rows of a table: which of three forms they take, and that all of them choose what numpy chooses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import TensorType, UnitAttr, f16, f32, i1, i32, i64
from xdsl.ir import Attribute

from spyre_mlir.dialects.spyre.loop import LoopConstantOp, LoopGatherOp, NestOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.transforms.aten_to_loop.gathers import (
    MOST_COMPARISONS,
    beyond_reach,
    lower_pages,
    lower_rows,
)
from spyre_mlir.transforms.aten_to_loop.nests import TensorView
from spyre_mlir.transforms.loop_to_kernel.settling.reachable_layouts import table_beyond_reach
from tests.unit.machine.modules import Array, numbers
from tests.unit.transforms.aten_to_loop.building import Built

INDICES = np.array([[4, 0, 3], [3, 3, 1]])


def kinds(built: Built) -> list[str]:
    """What the ops are: gathers, constants, sums and other nests."""
    names = {LoopGatherOp: "gather", LoopConstantOp: "constant"}
    return [
        names.get(type(op), "sum" if isinstance(op, NestOp) and op.combine is not None else "nest") for op in built.made
    ]


def rows(
    table: tuple[int, ...], indices: tuple[int, ...], element: Attribute = f32, index: Attribute = i64
) -> tuple[Built, TensorType[Attribute]]:
    return Built((table, element), (indices, index)), TensorType(element, [*indices, *table[1:]])


def test_a_table_and_indices_of_the_host_are_gathered() -> None:
    built, result = rows((5, 8), (2, 3))
    made = lower_rows(built.b, built.arg(0), built.arg(1), result)
    (op,) = built.made
    assert isinstance(op, LoopGatherOp) and op.axis.value.data == 0 and op.from_end is None
    assert dict(op.space.extents) == {"d0": 2, "d1": 3, "d2": 8}
    table = numbers(5, 8)
    assert np.array_equal(built.run(made, table, INDICES), table[INDICES])


def test_negative_indices_count_from_the_end_where_asked() -> None:
    built, result = rows((5, 8), (4,))
    made = lower_rows(built.b, built.arg(0), built.arg(1), result, from_end=True)
    (gather,) = built.made[:1]
    assert isinstance(gather, LoopGatherOp) and gather.from_end == UnitAttr()
    table, indices = numbers(5, 8), np.array([-1, 0, -5, 2])
    assert np.array_equal(built.run(made, table, indices), table[indices])


def computed(built: Built, number: int) -> TensorView:
    """An argument that a nest has copied: the host does not have it."""
    return built.b.copy(built.arg(number))


def test_rows_that_computed_indices_name_are_chosen_by_a_product() -> None:
    built, result = rows((5, 8), (2, 3))
    made = lower_rows(built.b, built.arg(0), computed(built, 1), result)
    assert "gather" not in kinds(built) and kinds(built).count("sum") == 2
    values = numbers(5, 8)
    assert np.allclose(built.run(made, values, INDICES), values[INDICES])


def test_a_table_that_the_program_computes_is_gathered_from() -> None:
    built, result = rows((5, 8), (2, 3))
    made = lower_rows(built.b, computed(built, 0), built.arg(1), result)
    assert kinds(built) == ["nest", "gather"]
    values = numbers(5, 8)
    assert np.array_equal(built.run(made, values, INDICES), values[INDICES])


@pytest.mark.parametrize("form", ["gathered", "computed indices"])
def test_pages_are_joined_by_head(form: str) -> None:
    """A gather writes them so; rows of a product are copied there."""
    built, at = Built(((5, 3, 2, 8), f32), ((2, 2), i64)), np.array([[4, -5], [2, 2]])
    if form != "gathered":
        at %= 5
    indices = built.arg(1) if form == "gathered" else computed(built, 1)
    made = lower_pages(built.b, built.arg(0), indices, TensorType(f32, [2, 2, 6, 8]))
    assert (kinds(built) == ["gather"]) == (form == "gathered")
    pages = numbers(5, 3, 2, 8)
    wanted = [[np.concatenate([pages[n, :, head] for n in row]) for head in range(2)] for row in at]
    assert np.allclose(built.run(made, pages, at), wanted)


@pytest.mark.parametrize(("first", "count", "form"), [(0, 1, "gathered"), (2, 1, "gathered"), (1, 2, "copied")])
def test_one_head_of_pages_is_gathered_where_the_cache_lies(first: int, count: int, form: str) -> None:
    """Several heads would have to lie inside of the pages; they are a tensor of their own."""
    built, at = Built(((5, 3, 4, 8), f32), ((2, 2), i64)), np.array([[4, 0], [2, 2]])
    cache = built.arg(0)
    part = TensorView(cache.base, cache.view.slice(2, first, first + count))
    made = lower_pages(built.b, part, built.arg(1), TensorType(f32, [2, count, 6, 8]))
    assert (kinds(built) == ["gather"]) == (form == "gathered")
    pages = numbers(5, 3, 4, 8)
    heads = range(first, first + count)
    wanted = [[np.concatenate([pages[n, :, head] for n in row]) for head in heads] for row in at]
    assert np.allclose(built.run(made, pages, at), wanted)


def test_an_index_outside_of_the_table_gives_no_number() -> None:
    built, result = rows((5, 8), (3,))
    made = lower_rows(built.b, built.arg(0), computed(built, 1), result)
    values = numbers(5, 8)
    got = built.run(made, values, np.array([1, 5, -1]))
    assert np.allclose(got[0], values[1]) and np.isnan(got[1:]).all()


def test_a_table_of_single_elements_has_no_lanes() -> None:
    built, result = rows((5, 1), (3,))
    made = lower_rows(built.b, built.arg(0), built.arg(1), result)
    assert "gather" not in kinds(built)
    values, indices = numbers(5, 1), np.array([4, 0, 0])
    assert np.allclose(built.run(made, values, indices), values[indices])


def test_a_view_of_a_table_is_no_table_of_the_host() -> None:
    built, _ = rows((8, 5), (3,))
    turned = TensorView(built.arg(0).base, built.arg(0).view.transpose(0, 1))
    made = lower_rows(built.b, turned, built.arg(1), TensorType(f32, [3, 8]))
    assert "gather" not in kinds(built)
    values, indices = numbers(8, 5), np.array([4, 0, 2])
    assert np.allclose(built.run(made, values, indices), values.T[indices])


def test_a_part_of_the_indices_is_gathered_only_by_whole_sticks() -> None:
    """The second of two in a row are inside of a stick; the first two rows are whole sticks of 32."""
    built, _ = rows((5, 8), (4, 2))
    part = TensorView(built.arg(1).base, built.arg(1).view.select(1, 1))
    made = lower_rows(built.b, built.arg(0), part, TensorType(f32, [4, 8]))
    assert "gather" not in kinds(built)
    table, indices = numbers(5, 8), np.arange(8).reshape(4, 2) % 5
    assert np.allclose(built.run(made, table, indices), table[indices[:, 1]])
    built, _ = rows((5, 8), (4, 32))
    part = TensorView(built.arg(1).base, built.arg(1).view.slice(0, 0, 2))
    made = lower_rows(built.b, built.arg(0), part, TensorType(f32, [2, 32, 8]))
    assert kinds(built) == ["gather"]
    indices = np.arange(128).reshape(4, 32) % 5
    assert np.array_equal(built.run(made, table, indices), table[indices[:2]])


def test_float_indices_are_compared() -> None:
    built, result = rows((5, 8), (3,), index=f32)
    made = lower_rows(built.b, built.arg(0), built.arg(1), result)
    assert "gather" not in kinds(built)
    values = numbers(5, 8)
    assert np.allclose(built.run(made, values, np.array([4.0, 0.0, 2.0])), values[[4, 0, 2]])


def whole_numbers(*shape: int) -> Array:
    return np.random.default_rng(5).integers(-(2**40), 2**40, shape)


@pytest.mark.parametrize("shape", [(5, 3), (5,), (5, 2, 3)])
def test_whole_numbers_are_selected_and_folded(shape: tuple[int, ...]) -> None:
    built, result = rows(shape, (2, 3), element=i64)
    made = lower_rows(built.b, computed(built, 0), built.arg(1), result)
    assert kinds(built).count("sum") == 1
    values = whole_numbers(*shape)
    assert made.shape == (2, 3, *shape[1:])
    assert np.array_equal(built.run(made, values, INDICES), values[INDICES])


def test_truth_values_are_chosen_as_numbers() -> None:
    built, result = rows((5, 3), (2, 3), element=i1)
    made = lower_rows(built.b, computed(built, 0), built.arg(1), result)
    values = numbers(5, 3) > 0
    assert np.array_equal(built.run(made, values, INDICES), values[INDICES])


def test_a_table_of_another_type_than_the_result_is_selected_from() -> None:
    built, _ = rows((5, 3), (3,))
    lower_rows(built.b, built.arg(0), computed(built, 1), TensorType(f16, [3, 3]))
    assert kinds(built).count("sum") == 1


def test_too_many_comparisons_are_refused() -> None:
    assert MOST_COMPARISONS == 67_108_864
    for count, refused in ((2**13, False), (2**13 + 1, True)):
        built, result = rows((2**13, 4), (count,), element=i32)
        table = computed(built, 0)
        if not refused:
            lower_rows(built.b, table, built.arg(1), result)
            continue
        with pytest.raises(UnsupportedError, match=r"67,117,056 comparisons of rows with indices") as error:
            lower_rows(built.b, table, built.arg(1), result)
        assert error.value.hint is not None and "up to 67,108,864 are possible" in error.value.hint


def test_a_table_beyond_reach() -> None:
    """4000 rows of 70 are two sticks each in DL16."""
    size = 4000 * 2 * 128
    said = f"rows of a table of {size} bytes: a core, which may be asked for any row, reaches {size - 1}"
    assert table_beyond_reach(size, replace(SPYRE, span_bytes=size)) is None
    assert table_beyond_reach(size, replace(SPYRE, span_bytes=size - 1)) == said
    built, _ = rows((4000, 70), (3,))
    near, far = (replace(SPYRE, span_bytes=size - n) for n in (0, 1))
    assert beyond_reach(built.arg(0), built.arg(1), near) is None
    assert beyond_reach(built.arg(0), built.arg(1), far) == said
    assert beyond_reach(computed(built, 0), built.arg(1), far) == said
    # The device chooses by indices that it computes without a gather.
    assert beyond_reach(built.arg(0), computed(built, 1), far) is None
