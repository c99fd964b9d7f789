"""Plans in which one kernel has another division, held against all plans one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.planning.alternatives import alternatives
from spyre_mlir.planning.divisions import OUTSIDE, Kernel, Prices
from tests.unit.planning.quickest import quickest
from tests.unit.planning.test_divisions import MB, candidate

ROWS, COLUMNS, FEW = candidate("rows", 32, MB, MB), candidate("columns", 32, MB, MB), candidate("rows", 8, MB, MB)
CHAIN = [
    Kernel((OUTSIDE, 0), (ROWS, COLUMNS)),
    Kernel((0, 1), (ROWS, COLUMNS, FEW)),
    Kernel((1, OUTSIDE), (ROWS, COLUMNS)),
]


def test_each_has_the_quickest_neighbours() -> None:
    found = alternatives(CHAIN, 1, Prices(), count=3)
    by_choice = {a.choice: a.plan for a in found}
    assert sorted(by_choice) == [0, 1, 2]
    for choice, plan in by_choice.items():
        only = replace(CHAIN[1], candidates=(CHAIN[1].candidates[choice],))
        assert plan.us == pytest.approx(quickest([CHAIN[0], only, CHAIN[2]]).us)
        assert plan.chosen[1] == choice
    # Columns in the middle: its neighbours follow, so that nothing is lost.
    assert by_choice[1].chosen == (1, 1, 1)
    assert by_choice[1].us == pytest.approx(by_choice[0].us)
    assert [a.plan.us for a in found] == sorted(a.plan.us for a in found)


def test_only_as_many_as_asked_for_and_not_the_chosen_one() -> None:
    best = quickest(CHAIN)
    (second,) = alternatives(CHAIN, 1, Prices(), count=1, chosen=best.chosen[1])
    assert second.choice == 1 and second.plan.us >= best.us
    assert alternatives([Kernel((OUTSIDE,), (ROWS,))], 0, Prices(), count=2, chosen=0) == []
