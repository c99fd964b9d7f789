"""Copies of what a kernel makes, for several readers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.hw.cost import CostKind, MatmulLoops, Traffic, Work
from spyre_mlir.planning.copies import with_copies
from spyre_mlir.planning.divided_kernels import OUTSIDE, DividedKernel, Kernel, Prices
from spyre_mlir.planning.divisions import Division
from tests.unit.planning.quickest import quickest

MB, CORES = 1_000_000, 32
PRICES = Prices()


def moved(size: int, *, written: bool) -> Traffic:
    return Traffic(bytes=size, needed=size, per_core=size // CORES, written=written)


def function(view: str, read: int = MB, written: int = MB) -> DividedKernel:
    """A pointwise function of one operand, both in the same slices."""
    operands = (moved(read, written=False), moved(written, written=True))
    work = Work(kind=CostKind.POINTWISE, cores=CORES, elements=read // 2, operands=operands)
    return DividedKernel({}, work, (view, view), (read // CORES, written // CORES))


def product(view: str, rows: int) -> DividedKernel:
    """A product with so many of its 1,024 rows on each core: with few it takes longer."""
    splits = 1, 1024 // rows, CORES * rows // 1024, 1
    loops = MatmulLoops(batch=1, rows=1024, columns=1024, depth=4096, splits=splits)
    operands = (moved(2 * MB, written=False), moved(2 * MB, written=False), moved(2 * MB, written=True))
    work = Work(kind=CostKind.PRODUCT, cores=CORES, elements=2**20, operands=operands, product=loops)
    return DividedKernel({}, work, (None, None, view), (0, 0, 2 * MB // CORES))


def planned(kernels: list[Kernel]) -> tuple[Division, Division]:
    """The quickest plan without copies, and with them."""
    plan = quickest(kernels, PRICES)
    return plan, with_copies(kernels, plan, PRICES)


WIDE = function("rows", 2 * MB, MB)


def readers(count: int) -> list[Kernel]:
    return [Kernel((0, OUTSIDE), (WIDE,)) for _ in range(count)]


def test_two_readers_share_a_copy_of_what_is_made_in_other_slices() -> None:
    made = Kernel((OUTSIDE, 0), (function("columns", MB, 2 * MB),))
    plan, copied = planned([made, *readers(2)])
    assert plan.local == frozenset()
    # The copy takes its bytes once, at the rate of the memory, and each reader writes alone then.
    held = PRICES.us(WIDE, frozenset({0}))
    assert copied.times[1:] == pytest.approx([held + PRICES.copy_us(WIDE, 0), held])
    assert copied.us == pytest.approx(sum(copied.times)) and copied.us < plan.us
    assert copied.local == frozenset(), "the buffer itself is in device memory"


def test_a_single_reader_gets_no_copy() -> None:
    made = Kernel((OUTSIDE, 0), (function("columns", MB, 2 * MB),))
    plan, copied = planned([made, *readers(1)])
    assert copied is plan


def test_products_read_no_copy() -> None:
    made = Kernel((OUTSIDE, 0), (function("columns", MB, 2 * MB),))
    reading = Kernel((0, OUTSIDE, OUTSIDE), (product("rows", 32),))
    plan, copied = planned([made, reading, reading])
    assert copied is plan


def test_a_product_keeps_its_best_division_if_a_copy_takes_less() -> None:
    """In slices of rows for its readers it has 32 rows to fill the array with, else 1,024."""
    many, few = product("columns", 1024), product("rows", 32)
    made = Kernel((OUTSIDE, OUTSIDE, 0), (many, few))
    plan, copied = planned([made, *readers(2)])
    gain = PRICES.us(few, frozenset({2})) - PRICES.us(many, frozenset())
    assert plan.local == {0} and plan.chosen[0] == 1
    assert gain > PRICES.copy_us(WIDE, 0)
    assert copied.chosen[0] == 0 and copied.us == pytest.approx(plan.us - gain + PRICES.copy_us(WIDE, 0))


def test_what_a_gather_makes_on_few_cores_is_copied_for_many_readers() -> None:
    """Two readers do not take so much longer on its 2 cores that a way through device memory takes less; 40 do."""
    wide, narrow = function("rows"), function("sticks")
    narrow = replace(narrow, work=replace(narrow.work, cores=2))
    made = replace(narrow.work, kind=CostKind.GATHER, elements=0)
    gather = Kernel((OUTSIDE, 0), (DividedKernel({}, made, (None, "sticks"), (0, MB // 2)),))
    inside = [Kernel((0, n + 1), (narrow, wide)) for n in range(40)]
    plan, copied = planned([gather, *inside[:2], Kernel((1, OUTSIDE), (narrow, wide))])
    assert copied is plan and plan.local >= {0}
    plan, copied = planned([gather, *inside])
    assert plan.local >= {0}
    assert 0 not in copied.local and copied.us < plan.us
    assert copied.chosen == (0, *[1] * 40)


def test_what_has_to_be_held_stays() -> None:
    made = Kernel((OUTSIDE, OUTSIDE, 0), (product("columns", 1024), product("rows", 32)), required=frozenset({0}))
    plan, copied = planned([made, *readers(2)])
    assert copied is plan and plan.local == {0}
