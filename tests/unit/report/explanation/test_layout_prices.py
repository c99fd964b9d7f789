"""Prices of other layouts: of the program as it would be compiled with them."""

from __future__ import annotations

import pytest

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.layout_choices import LayoutChoice
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.report.explanation import layout_prices
from spyre_mlir.report.explanation.layout_prices import asked_for
from spyre_mlir.report.explanation.planned_program import PlannedProgram


def test_layouts_have_reasons_and_prices(columns: CompiledModel) -> None:
    """A softmax along columns: the function before it has these in its sticks, as trials find."""
    relaid, relu = columns.explain("relu").kernels
    assert relaid.layouts == () and relu.layout == "quickest in trials, of 3 legal ones"
    chosen, second, third = relu.layouts
    assert (chosen.choice, chosen.hint) == ("lanes d0, stick 0, order [0, 1]", "")
    assert (second.choice, second.hint) == ("lanes d1, stick 1", 'hint(layout={"stick": 1})')
    assert chosen.price is not None and second.price is not None and chosen.price.total < second.price.total
    assert third.hint == 'hint(layout={"stick": "unit"})'
    assert chosen.price is not None and second.price is not None and third.price is not None
    assert second.price.total <= third.price.total
    # Of the whole program, as it is compiled.
    assert chosen.price.total == pytest.approx(columns.timeline().kernels_us)
    assert chosen.kernels == len(columns.timeline().kernels)


def test_the_price_of_a_layout_is_that_of_a_program_whose_hint_asks_for_it(
    columns: CompiledModel, hinted_columns: CompiledModel
) -> None:
    *_, asked = hinted_columns.explain("relu").kernels
    other, *_ = columns.explain("relu").kernels[-1].layouts
    assert asked.layout == "a hint asks for it"
    assert other.price is not None and other.price.total == pytest.approx(hinted_columns.timeline().kernels_us)
    assert other.kernels == len(hinted_columns.timeline().kernels)
    assert asked.layouts[0].price == other.price
    assert any(one.choice == "lanes d1, stick 1" for one in asked.layouts[1:])


def test_many_layouts_are_listed_without_prices(columns: CompiledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_prices, "MOST_LOWERED", 2)
    found = columns.explain("softmax")
    priced = [k for k in found.kernels if any(one.price is not None for one in k.layouts[1:])]
    listed = [k for k in found.kernels if k.layouts and k not in priced]
    assert len(priced) == 1 and len(listed) == 4
    assert f"priced for fewer kernels at once: --explain {listed[0].name}" in str(listed[0])


def test_a_layout_that_cannot_be_lowered_says_why(columns: CompiledModel) -> None:
    from dataclasses import replace

    program = PlannedProgram.of(columns._flat(), columns._options)
    reason = program.reasons[program.named("sdsc_1")[0].op]
    wrong = replace(reason, legal=(LayoutChoice("d7", 0),))
    (_, other) = program.layouts.of(wrong)
    assert other.price is None and "cannot be lanes d7" in other.refused


@pytest.mark.parametrize(
    ("layout", "hint"),
    [
        (LayoutChoice("d0", 0), 'hint(layout={"stick": 0})'),
        (LayoutChoice("none", UNIT), 'hint(layout={"stick": "unit"})'),
        (LayoutChoice("r", 1), 'hint(layout={"lanes": "r"})'),
    ],
)
def test_the_hint_that_asks_for_a_layout(layout: LayoutChoice, hint: str) -> None:
    assert asked_for(layout, LayoutChoice("d1", 1, (1, 0))) == hint
