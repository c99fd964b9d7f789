"""Dividing work: what must hold of every division, and the worked examples of the front end's documents."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spyre_mlir.hw.division import (
    DividedLoop,
    Footprint,
    Refusal,
    SpanError,
    divide,
    divisions,
    divisors,
    judged_divisions,
    span_bytes,
)
from spyre_mlir.hw.spec import SPYRE, STICK_BYTES

LOOPS = st.lists(
    st.tuples(st.sampled_from((1, 2, 3, 4, 6, 7, 16, 31, 32, 64, 67, 96, 1000, 4096)), st.booleans(), st.booleans()),
    max_size=5,
).map(lambda rows: [DividedLoop(f"d{n}", units, kept, may) for n, (units, kept, may) in enumerate(rows)])


def dense(loops: list[DividedLoop]) -> Footprint:
    """A tensor that all loops walk, the first outermost."""
    strides, inner = dict[str, int](), 1
    for lp in reversed(loops):
        strides[lp.name] = inner
        inner *= lp.units
    return Footprint(strides)


@settings(max_examples=300, derandomize=True, database=None)
@given(LOOPS, st.sampled_from((1, 8, 32)), st.sampled_from((2**12, 2**20, SPYRE.span_bytes)))
def test_every_division_is_legal(loops: list[DividedLoop], cores: int, span: int) -> None:
    spec = replace(SPYRE, cores_per_card=cores, span_bytes=span)
    operands = [dense(loops), Footprint({})]
    try:
        splits = divide(loops, operands, spec)
    except SpanError:
        assert span_bytes(loops, dict.fromkeys((lp.name for lp in loops), 1), operands[0]) > span
        return
    assert splits.keys() == {lp.name for lp in loops}
    assert prod(splits.values()) <= cores
    for lp in loops:
        assert lp.units % splits[lp.name] == 0
        assert lp.divisible or splits[lp.name] == 1
    assert all(span_bytes(loops, splits, operand) <= span for operand in operands)


@settings(max_examples=200, derandomize=True, database=None)
@given(LOOPS, st.integers(1, 33), st.sampled_from((STICK_BYTES, 1 << 12, 1 << 28)))
def test_divisions_over_many_cores_are_those_that_are_not_refused(
    loops: list[DividedLoop], least: int, span: int
) -> None:
    """They come in the same order as all divisions into equal slices, without those over few cores."""
    spec, operands = replace(SPYRE, span_bytes=span), (dense(loops),)
    judged = list(judged_divisions(loops, operands, spec))
    ways = [divisors(lp.units, 32) if lp.divisible else [1] for lp in loops]
    assert [tuple(splits.values()) for splits, _ in judged] == [w for w in product(*ways) if prod(w) <= 32]
    legal = [splits for splits, refusal in judged if refusal is None and prod(splits.values()) >= least]
    assert list(divisions(loops, operands, least, spec)) == legal


def test_an_op_without_loops_is_on_one_core() -> None:
    assert divide([], [Footprint({})], SPYRE) == {}


def test_divisors() -> None:
    assert divisors(12, 32) == [1, 2, 3, 4, 6, 12]
    assert divisors(12, 5) == [1, 2, 3, 4]
    assert divisors(67, 32) == [1]


def rows_in_sticks(rows: str, columns: str, row_count: int) -> Footprint:
    """The published layout of a matrix: sticks of one column block row after row, block after block."""
    return Footprint({rows: 1, columns: row_count})


# Interface documents of the front end, work division, worked examples. Units: rows are elements, columns sticks of 64.
WORKED = [
    # pointwise [512, 1024]: the largest loop first
    ({"m": 512, "n": 16}, {}, [("m", "n")], {"m": 32, "n": 1}),
    # pointwise [67, 256]: 67 is prime
    ({"m": 67, "n": 4}, {}, [("m", "n")], {"m": 1, "n": 4}),
    # pointwise [1, 1, 4096]
    ({"n": 64}, {}, [], {"n": 32}),
    # pointwise [120000, 4096]: 937.5 MiB, so the columns in 4 before the rows in 8
    ({"m": 120000, "n": 64}, {}, [("m", "n")], {"m": 8, "n": 4}),
]


@pytest.mark.parametrize(("kept", "summed", "matrices", "splits"), WORKED)
def test_worked_examples(
    kept: dict[str, int], summed: dict[str, int], matrices: list[tuple[str, str]], splits: dict[str, int]
) -> None:
    loops = [DividedLoop(n, u, True) for n, u in kept.items()] + [DividedLoop(n, u, False) for n, u in summed.items()]
    units = {**kept, **summed}
    operands = [rows_in_sticks(rows, columns, units[rows]) for rows, columns in matrices]
    assert divide(loops, operands, SPYRE) == splits


def test_sum_over_the_last_dimension_of_primes() -> None:
    """[67, 71, 256]: nothing of the result divides, so the 4 sticks of the sum do."""
    loops = [DividedLoop("a", 67, True), DividedLoop("b", 71, True), DividedLoop("r", 4, False)]
    assert divide(loops, [], SPYRE) == {"a": 1, "b": 1, "r": 4}


def test_sum_over_rows() -> None:
    """[2048, 4096] over dimension 0: the 64 sticks of the result."""
    loops = [DividedLoop("n", 64, True), DividedLoop("r", 2048, False)]
    assert divide(loops, [rows_in_sticks("r", "n", 2048)], SPYRE) == {"n": 32, "r": 1}


def test_product_with_long_operands() -> None:
    """[8192, 32768] x [32768, 4096]: 512 MiB in blocks of 8192 rows need the sum in 4.

    A quarter of the sum is 8192 rows of the second operand: 63 blocks of 32768 rows and 8192 more, 253 MiB, in reach
    of 256 MiB - 4 KiB. (The front end counts whole blocks, 256 MiB, and divides the columns as well.)
    """
    loops = [DividedLoop("m", 8192, True), DividedLoop("n", 64, True), DividedLoop("k", 512, False)]
    left = Footprint({"m": 1, "k": 8192})
    right = Footprint({"k": 64, "n": 32768}, piece=63)  # one stick of the sum is 64 rows of the second operand
    assert divide(loops, [left, right], SPYRE) == {"m": 8, "n": 1, "k": 4}
    quarter = {"m": 1, "n": 1, "k": 4}
    assert span_bytes(loops, quarter, left) == 128 * 8192 * 128
    assert span_bytes(loops, quarter, right) == (63 * 32768 + 8192) * 128


def test_a_relayout_that_cannot_be_divided() -> None:
    """[262144, 2816]: 8 on the hidden blocks for reading, 8 on the vocabulary for writing, 64 cores."""
    loops = [DividedLoop("v", 4096, True), DividedLoop("h", 44, True)]
    read = Footprint({"v": 64, "h": 262144}, piece=63)
    write = Footprint({"h": 64, "v": 2816}, piece=63)
    with pytest.raises(SpanError, match="it reaches 268431360"):
        divide(loops, [read, write], SPYRE)


def test_divisions_over_several_cores_divide_one_summed_loop_at_most() -> None:
    """Loops of two units each: rows are kept, r and s are summed, f is never divided."""
    loops = [
        DividedLoop("rows", 2, True),
        DividedLoop("r", 2, False),
        DividedLoop("s", 2, False),
        DividedLoop("f", 2, True, divisible=False),
    ]
    found = [tuple(made.values()) for made in divisions(loops, [], 2, SPYRE)]
    assert sorted(found) == [(1, 1, 2, 1), (1, 2, 1, 1), (2, 1, 1, 1), (2, 1, 2, 1), (2, 2, 1, 1)]
    kept = [DividedLoop("m", 2, True), DividedLoop("n", 2, True)]
    assert [tuple(made.values()) for made in divisions(kept, [], 4, SPYRE)] == [(2, 2)]


def test_divisions_are_refused_with_reasons() -> None:
    """Rows of 16,384 sticks from one to the next: half of 32,768 rows span 256 MB and a little, a fourth does not."""
    loops = [DividedLoop("rows", 4, True), DividedLoop("r", 2, False), DividedLoop("s", 2, False)]
    wide = Footprint({"rows": 8192 * 128})
    judged = {tuple(made.values()): refusal for made, refusal in judged_divisions(loops, [wide], SPYRE)}
    assert len(judged) == 3 * 2 * 2
    assert judged[1, 1, 1] is Refusal.SPAN
    assert judged[4, 2, 2] is Refusal.TWO_SUMS
    assert judged[1, 2, 1] is Refusal.SPAN and judged[4, 2, 1] is None
    assert [made for made, refusal in judged.items() if refusal is None] == [
        tuple(made.values()) for made in divisions(loops, [wide], 1, SPYRE)
    ]


@pytest.mark.parametrize(
    ("units", "most"),
    [
        ((7, 28, 3, 14), 28),  # sticks of 448 columns, rows, channels, lines of a patch
        ((6, 24), 24),  # sticks of 384 columns, rows
        ((4, 28), 28),  # sticks of 256 channels, rows
        ((144,), 24),  # channels by themselves
        ((56,), 28),  # whole rows
        ((56, 56), 32),  # rows and columns, 8 x 4
    ],
)
def test_images_without_equal_slices_for_thirty_cores(units: tuple[int, ...], most: int) -> None:
    loops = [DividedLoop(f"d{n}", count, True) for n, count in enumerate(units)]
    assert max(prod(made.values()) for made in divisions(loops, [], 1, SPYRE)) == most
