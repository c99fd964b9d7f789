"""Parts of functions as programs of their own."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.argument_notes import placed_arguments, placed_results
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.buffer_layouts.repair import regions
from spyre_mlir.transforms.buffer_layouts.repair.regions import LayoutRegion, region_around
from tests.unit.transforms.buffer_layouts.repair.programs import (
    columns_less_their_greatest,
    few_columns_less_their_greatest,
    function,
    greatest,
    less,
    planned,
    relu,
)
from tests.unit.transforms.levels import ops

ROWS = "attributes {spyre.layout = #spyre.layout<lanes m>}"


def first_region(text: str) -> LayoutRegion:
    _, (layouts,) = planned(text)
    region = region_around(layouts.spots[0].ops, layouts)
    assert region is not None
    verify_module(region.module)
    return region


def main_of(module: ModuleOp) -> FuncOp:
    (made,) = ops(module, FuncOp)
    return made


def test_a_small_function_is_a_region_with_its_arguments_and_results_as_they_are() -> None:
    region = first_region(columns_less_their_greatest())
    assert region.whole and len(region.ops) == 3 and list(region.open) == [0, 1, 2]
    made = main_of(region.module)
    assert placed_arguments(made) == {0} and placed_results(made) == {0}


def test_a_part_of_a_function_starts_and_ends_with_the_layouts_of_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four nests the last two: they read a tensor with rows in the lanes, as they find it."""
    monkeypatch.setattr(regions, "MOST_OPS", 2)
    text = function(relu("0", "x", ROWS), relu("1", "0"), greatest("2", "1"), less("out", "1", "2"))
    module, (layouts,) = planned(text)
    region = region_around(ops(module, NestOp)[2:], layouts)
    assert region is not None and not region.whole
    assert region.ops == tuple(ops(module, NestOp)[2:])
    (argument,) = main_of(region.module).arg_attrs.data  # type: ignore[union-attr]
    assert "stick 0" in str(argument.data["spyre.layout"]) or "stick 1" in str(argument.data["spyre.layout"])


def test_equal_parts_of_functions_are_equal() -> None:
    first, second = (first_region(columns_less_their_greatest(name)) for name in ("main", "other"))
    assert first.key == second.key
    assert first.key != first_region(function(greatest("1", "x"), less("out", "x", "1"))).key
    assert first.key != first_region(few_columns_less_their_greatest()).key, "the same ops on other shapes"
    # The last op reads the first one's operand, or has another function.
    other = function(relu("0", "x"), greatest("1", "0"), less("out", "x", "1"))
    assert first.key != first_region(other).key
    assert first.key != first_region(columns_less_their_greatest().replace("arith.subf", "arith.addf")).key


def test_what_a_loop_carries_is_no_region() -> None:
    """Its next value has to lie as it does, which a program of its own does not know."""
    module, (layouts,) = planned(columns_less_their_greatest())
    first, *_ = ops(module, NestOp)
    layouts.planner.carried[first.inputs[0]] = None
    assert region_around([first], layouts) is None


def test_nothing_is_tried_where_all_layouts_are_said() -> None:
    _, (layouts,) = planned(function(relu("out", "x", ROWS)))
    assert region_around(layouts.spots[0].ops, layouts) is None
