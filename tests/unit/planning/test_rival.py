"""torch-spyre's divisions: rows of published and worked tables, and the rules one at a time."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from spyre_mlir.hw.division import DividedLoop
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.rival import (
    DeviceDim,
    ProductLoops,
    RivalError,
    RivalOp,
    default_division,
    operand_span_bytes,
    rival_division,
    span_floors,
)
from spyre_mlir.planning.rival_score import ProductShape, rival_score

MIB = 2**20
JUNE = replace(SPYRE, span_bytes=256 * MIB)  # the limit of June 2026


def pointwise(rows: int, columns: int) -> RivalOp:
    """A unary op on [rows, columns] of two bytes: device sizes [columns / 64, rows, 64]."""
    sticks = columns // 64
    dims = DeviceDim(sticks, ("n",)), DeviceDim(rows, ("m",))
    return RivalOp((DividedLoop("m", rows, True), DividedLoop("n", sticks, True)), (dims, dims))


def matmul(m: int, n: int, k: int, batch: int | None = None) -> RivalOp:
    """[batch] x [m, k] x [k, n] with the stick blocks of every operand outermost."""
    loops = [DividedLoop("m", m, True), DividedLoop("n", n // 64, True), DividedLoop("k", k // 64, False)]
    inside = ()
    if batch is not None:
        loops.insert(0, DividedLoop("b", batch, True))
        inside = (DeviceDim(batch, ("b",)),)
    left = *inside, DeviceDim(k // 64, ("k",)), DeviceDim(m, ("m",))
    right = *inside, DeviceDim(n // 64, ("n",)), DeviceDim(k, ("k",))
    result = *inside, DeviceDim(n // 64, ("n",)), DeviceDim(m, ("m",))
    roles = ProductLoops(
        batch=None if batch is None else "b",
        rows="m" if m > 1 else None,
        columns="n",
        depth="k",
        shared=batch is None,
    )
    return RivalOp(tuple(loops), (left, right, result), roles)


# Derived from the published formula by another implementation: default, choice, compute, HBM and whole score in us.
PRODUCTS = [
    ("Q/O projection", (512, 4096, 4096, None), {"m": 32}, (1, 4, 8, 1), (175, 205, 400)),
    ("K/V projection", (512, 1024, 4096, None), {"m": 32}, (1, 8, 4, 1), (44, 67, 170)),
    ("fused QKV", (512, 6144, 4096, None), {"m": 32}, (1, 4, 8, 1), (262, 297, 594)),
    ("gate or up", (512, 12800, 4096, None), {"m": 32}, (1, 4, 8, 1), (546, 597, 1204)),
    ("fused gate and up", (512, 25600, 4096, None), {"m": 32}, (1, 4, 8, 1), (1092, 1173, 2351)),
    ("down", (512, 4096, 12800, None), {"m": 32}, (1, 8, 4, 1), (546, 597, 1211)),
    ("Q/O decode, batch 4", (4, 4096, 4096, None), {"n": 32}, (1, 1, 8, 4), (4, 164, 254)),
    ("gate/up decode, batch 4", (4, 12800, 4096, None), {"n": 25}, (1, 1, 8, 4), (13, 513, 666)),
    ("Q K^T, 32 heads", (512, 512, 128, 32), {"m": 32}, (1, 16, 2, 1), (23, 123, 146)),
    ("P V, 32 heads", (512, 128, 512, 32), {"m": 32}, (1, 32, 1, 1), (28, 123, 150)),
]


@pytest.mark.parametrize(("name", "sizes", "usual", "chosen", "times"), PRODUCTS, ids=[p[0] for p in PRODUCTS])
def test_products_of_a_layer(
    name: str,
    sizes: tuple[int, int, int, int | None],
    usual: dict[str, int],
    chosen: tuple[int, int, int, int],
    times: tuple[int, int, int],
) -> None:
    op = matmul(*sizes)
    ones = {lp.name: 1 for lp in op.loops}
    assert default_division(op.loops, ones, 32) == ones | usual
    wanted = dict(zip("bmnk", chosen, strict=True))
    assert rival_division(op, SPYRE) == {n: wanted[n] for n in ones}
    m, n, k, batch = sizes
    shape = ProductShape(batch=batch or 1, rows=m, columns=n, depth=k, shared=batch is None)
    score = rival_score(shape, chosen, 32)
    assert (score.compute, score.hbm, score.total) == pytest.approx(times, abs=1)


@pytest.mark.parametrize(
    ("n", "k", "chosen"),
    [
        (4096, 4096, {"n": 32}),
        (1024, 4096, {"n": 16, "k": 2}),
        (12800, 4096, {"n": 25}),  # 200 sticks: 25 cores
        (49152, 4096, {"n": 32}),
    ],
)
def test_one_row_has_the_default_division(n: int, k: int, chosen: dict[str, int]) -> None:
    assert rival_division(matmul(1, n, k), SPYRE) == {"m": 1, "n": 1, "k": 1} | chosen


@pytest.mark.parametrize(
    ("rows", "columns", "chosen"),
    [
        (512, 1024, {"m": 32, "n": 1}),
        (67, 256, {"m": 1, "n": 4}),
        (1, 4096, {"m": 1, "n": 32}),
        (120_000, 4096, {"m": 8, "n": 4}),
    ],
)
def test_pointwise_ops(rows: int, columns: int, chosen: dict[str, int]) -> None:
    assert rival_division(pointwise(rows, columns), SPYRE) == chosen


def test_sums() -> None:
    last = RivalOp((DividedLoop("a", 67, True), DividedLoop("b", 71, True), DividedLoop("k", 4, False)))
    assert rival_division(last, SPYRE) == {"a": 1, "b": 1, "k": 4}
    first = RivalOp((DividedLoop("k", 2048, False), DividedLoop("n", 64, True)))
    assert rival_division(first, SPYRE) == {"k": 1, "n": 32}


def test_a_product_with_floors_has_the_default_division() -> None:
    """8192 x 32768 x 4096: the left operand spans 512 MiB, the weight 256 MiB."""
    op = matmul(8192, 4096, 32768)
    assert rival_division(op, JUNE) == {"m": 16, "n": 1, "k": 2}
    assert rival_division(op, SPYRE) == {"m": 4, "n": 2, "k": 4}


def relayout(rows: int, columns: int) -> RivalOp:
    """A transposition: stick blocks of the columns outermost on one side, of the rows on the other."""
    loops = DividedLoop("r", rows // 64, True), DividedLoop("c", columns // 64, True)
    read = DeviceDim(columns // 64, ("c",)), DeviceDim(rows, ("r",))
    write = DeviceDim(rows // 64, ("r",)), DeviceDim(columns, ("c",))
    return RivalOp(loops, (read, write))


def test_transposed_weights_that_do_not_compile() -> None:
    with pytest.raises(RivalError, match=r"r 8, c 5: 40 cores of 32"):
        rival_division(relayout(131_072, 5120), JUNE)
    # A fifth of 1280 MiB is above the newer limit, and 80 sticks have no other divisor below 8.
    with pytest.raises(RivalError, match=r"r 8, c 8: 64 cores of 32"):
        rival_division(relayout(131_072, 5120), SPYRE)
    with pytest.raises(RivalError, match="cores of 32"):
        rival_division(relayout(262_144, 2816), SPYRE)


def test_fewest_slices_that_bring_an_operand_within_reach() -> None:
    # 64 blocks of 120,000 sticks are 937.5 MiB; a quarter of them fits.
    assert span_floors(pointwise(120_000, 4096), SPYRE) == {"m": 1, "n": 4}
    assert span_floors(pointwise(512, 1024), SPYRE) == {"m": 1, "n": 1}


def test_floors_continue_inwards_where_the_outer_dimension_is_not_enough() -> None:
    # 3 blocks of 4 Mi sticks: a third is 512 MiB, and half of that is too much by 4 KiB.
    assert span_floors(pointwise(4 * MIB, 192), JUNE) == {"m": 2, "n": 3}
    assert span_floors(pointwise(4 * MIB, 192), SPYRE) == {"m": 4, "n": 3}


def test_a_dimension_of_two_loops_takes_the_longest_span_within_reach() -> None:
    # 12 x 6 blocks of 8 MiB, 576 MiB: 2 x 2 leave 144, 3 x 1 leave 192.
    loops = DividedLoop("a", 12, True), DividedLoop("b", 6, True)
    op = RivalOp(loops, ((DeviceDim(72, ("a", "b")), DeviceDim(65_536)),))
    floors = span_floors(op, SPYRE)
    assert prod(floors.values()) == 3


@pytest.mark.parametrize("divisible", [False, True])
def test_what_cannot_be_divided_stays_whole(divisible: bool) -> None:
    loops = DividedLoop("a", 4, True, divisible), DividedLoop("b", 2, True)
    assert default_division(loops, {"a": 1, "b": 1}, 32) == {"a": 4 if divisible else 1, "b": 2}
    op = RivalOp(loops, ((DeviceDim(4, ("a",)), DeviceDim(MIB)),))
    if divisible:
        assert span_floors(op, SPYRE) == {"a": 4, "b": 1}
    else:
        with pytest.raises(RivalError, match="a core spans 536870912 bytes of operand 0, it reaches 268431360"):
            span_floors(op, SPYRE)


def test_two_summed_loops_are_not_divided() -> None:
    loops = DividedLoop("k", 2, False), DividedLoop("j", 2, False), DividedLoop("n", 2, True)
    assert default_division(loops, {"k": 1, "j": 1, "n": 1}, 32) == {"k": 2, "j": 1, "n": 2}
    assert default_division(loops, {"k": 1, "j": 2, "n": 1}, 32) == {"k": 1, "j": 2, "n": 2}
    large = DeviceDim(2 * MIB)
    op = RivalOp(loops, ((DeviceDim(2, ("k",)), large), (DeviceDim(2, ("j",)), large)))
    with pytest.raises(RivalError, match="slices of two summed loops"):
        span_floors(op, JUNE)


def test_a_span_is_that_of_the_outermost_dimension_that_a_core_walks() -> None:
    dims = DeviceDim(4, ("a",)), DeviceDim(1), DeviceDim(10, ("b",))
    assert operand_span_bytes(dims, {"a": 1, "b": 1}) == 4 * 10 * 128
    assert operand_span_bytes(dims, {"a": 4, "b": 2}) == 5 * 128
    assert operand_span_bytes(dims, {"a": 4, "b": 10}) == 128
    assert operand_span_bytes((), {}) == 128


def test_never_fewer_cores_than_the_default() -> None:
    """5 x 512 x 192 over 16 cores: the best score has 12 cores, three sticks by 4 of the depth, the default has 15."""
    op, card = matmul(5, 192, 512), replace(SPYRE, cores_per_card=16)
    shape = ProductShape(rows=5, columns=192, depth=512)
    best, usual = (rival_score(shape, splits, 16).total for splits in ((1, 1, 3, 4), (1, 5, 3, 1)))
    assert best < usual
    assert rival_division(op, card) == {"m": 5, "n": 3, "k": 1}
