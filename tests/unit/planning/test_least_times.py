"""Least times of kernels that agree on the slices of a buffer, and of kernels that cannot."""

from __future__ import annotations

import pytest

from spyre_mlir.hw.cost import cost
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.divisions import OUTSIDE, DividedKernel, Kernel, Prices, divide_within
from spyre_mlir.planning.least_times import latest_us, possible_slices
from tests.unit.planning.test_divisions import MB, candidate

ROWS, COLUMNS = candidate("rows", 32, MB, MB), candidate("columns", 25, MB, MB)


def pair(first: tuple[DividedKernel, ...], second: tuple[DividedKernel, ...], *, copied: bool = False) -> list[Kernel]:
    """A kernel that writes buffer 0, and one that reads it."""
    return [Kernel((OUTSIDE, 0), first), Kernel((0, OUTSIDE), second, frozenset({0} if copied else ()))]


def test_slices_that_all_users_see() -> None:
    assert possible_slices(pair((ROWS, COLUMNS), (COLUMNS,)), MB)[0] == {"columns"}
    assert possible_slices(pair((ROWS,), (COLUMNS,)), MB)[0] == frozenset()
    assert possible_slices(pair((ROWS,), (COLUMNS,), copied=True), MB)[0] == {"rows", "columns"}
    assert possible_slices(pair((ROWS, COLUMNS), (ROWS, COLUMNS)), MB // 25)[0] == {"rows", "columns"}
    assert possible_slices(pair((ROWS, COLUMNS), (ROWS, COLUMNS)), MB // 25 - 1)[0] == {"rows"}


def test_a_buffer_that_kernels_see_differently_is_read_from_device_memory() -> None:
    prices, apart, agreeing = Prices(), pair((ROWS,), (COLUMNS,)), pair((ROWS,), (ROWS,))
    whole = [cost(kernel.work).total for kernel in (ROWS, COLUMNS)]
    assert latest_us(apart, 100.0, possible_slices(apart, MB), prices) == pytest.approx(
        [100 - sum(whole), 100 - whole[1], 100]
    )
    least = [prices.floor_us(ROWS, frozenset({1})), prices.floor_us(ROWS, frozenset({0}))]
    assert sum(least) < 0.6 * 2 * whole[0]
    found = latest_us(agreeing, 100.0, possible_slices(agreeing, MB), prices)
    assert found == pytest.approx([100 - sum(least), 100 - least[1], 100])


class CountingPrices(Prices):
    """Counts the questions of a search."""

    asked = 0

    def us(self, candidate: DividedKernel, local: frozenset[int]) -> float:
        """As its base does."""
        self.asked += 1
        return super().us(candidate, local)


def test_no_search_begins_where_no_division_is_within_the_time() -> None:
    """The kernels together would be within it if the buffer between them were in the scratchpads."""
    size = (SPYRE.lx_usable_bytes + 1) * 32
    large = candidate("rows", 32, size, size)
    for first, second in ((ROWS, COLUMNS), (large, large)):  # they see it differently, or no scratchpad has room
        apart, prices = pair((first,), (second,)), CountingPrices()
        us = sum(cost(kernel.work).total for kernel in (first, second))
        assert divide_within(apart, 0.9 * us, prices) is None
        assert prices.asked == 0
        found = divide_within(apart, us, prices)
        assert found is not None and found.us == pytest.approx(us)
        assert prices.asked == 2
