"""The search for better layouts in a module."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.transforms.buffer_layouts.repair import search
from spyre_mlir.transforms.buffer_layouts.repair.regions import LayoutRegion, region_around
from spyre_mlir.transforms.buffer_layouts.repair.search import LayoutSearch
from spyre_mlir.transforms.buffer_layouts.repair.trials import RegionTrials
from tests.unit.transforms.buffer_layouts.repair.programs import (
    CONVERT,
    few_columns_less_their_greatest,
    planned,
    pricing,
)
from tests.unit.transforms.levels import ops

TWICE = "\n".join(few_columns_less_their_greatest(name) for name in ("main", "other"))


def lanes(text: str) -> list[str | None]:
    """The loops that the search puts in the lanes of the nests; None where it changes nothing."""
    module, layouts = planned(text)
    found = LayoutSearch(module, CONVERT, pricing()).better(layouts)
    return [found[op].lanes if op in found else None for op in ops(module, NestOp)]


def test_equal_regions_are_tried_once_and_both_change(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[Any]()
    best = RegionTrials.best
    monkeypatch.setattr(RegionTrials, "best", lambda self, us: tried.append(self) or best(self, us))  # type: ignore[func-returns-value]
    assert lanes(TWICE) == ["m", "r", "m"] * 2
    assert len(tried) == 1


def test_small_tensors_are_tried_where_a_program_has_no_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    small = few_columns_less_their_greatest().replace("1024", "64")
    assert lanes(small) == ["n", "n", "n"]
    monkeypatch.setattr(search, "LEAST_PART", 10.0)
    assert lanes(small) == [None] * 3


def test_the_whole_program_decides_about_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def part_around(*given: Any) -> LayoutRegion | None:
        region = region_around(*given)
        return None if region is None else replace(region, whole=False)

    monkeypatch.setattr(search, "region_around", part_around)
    assert lanes(few_columns_less_their_greatest()) == ["m", "r", "m"]
    us = iter([[100.0], [100.0]])
    monkeypatch.setattr(LayoutSearch, "_us", lambda *_: next(us))
    assert lanes(few_columns_less_their_greatest()) == [None] * 3, "it takes as long as before"


def test_a_program_is_priced_with_the_layouts_that_are_asked_for() -> None:
    module, layouts = planned(few_columns_less_their_greatest())
    tried = LayoutSearch(module, CONVERT, pricing())
    before, after = tried._us({}), tried._us(tried.better(layouts))
    assert before is not None and after is not None and after[0] < before[0] - 4
    assert tried._us(layouts[0].choices) == before and not any("spyre.layout" in op.attributes for op in module.walk())


def test_no_work_is_left_after_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_KERNELS", 0)
    assert lanes(TWICE) == [None] * 6
