"""Prices of other loops and places: of the program as it is compiled with the hint that asks for them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.report.explanation import plan_prices
from tests.unit.report.explanation.conftest import compiled


class Hinted(nn.Module):
    """`Gated` of the fixtures, with a hint at the function between the products."""

    def __init__(self, **said: object) -> None:
        super().__init__()
        self.up = nn.Linear(256, 1024, bias=False)
        self.down = nn.Linear(1024, 256, bias=False)
        self.said = said

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One call."""
        x = self.up(x)
        with spyre_mlir.hint(**self.said):  # pyright: ignore[reportArgumentType]
            x = nn.functional.silu(x)
        return torch.softmax(self.down(x), -1)


def test_the_next_best_place_has_the_price_of_a_program_whose_hint_asks_for_it(gated: CompiledModel) -> None:
    (silu,) = gated.explain("silu").kernels
    (chosen, other), hinted = silu.places, compiled(Hinted(place="hbm"), 512, 256)
    assert (chosen.choice, other.choice, other.hint) == ("lx", "hbm", 'hint(place="hbm")')
    assert chosen.price is not None and chosen.price.total == pytest.approx(gated.timeline().kernels_us)
    assert other.price is not None and other.price.total == pytest.approx(hinted.timeline().kernels_us)
    assert other.price.hbm > chosen.price.hbm
    (asked,) = hinted.explain("silu").kernels
    assert [one.choice for one in asked.places] == ["hbm", "lx"]
    assert asked.places[1].price is not None and asked.places[1].price.total == pytest.approx(chosen.price.total)


def test_the_next_best_loops_have_the_price_of_programs_whose_hints_ask_for_them(gated: CompiledModel) -> None:
    """Nothing was tried around kernels that fit: the fewest trips over each dimension are the next best."""
    (silu,) = gated.explain("silu").kernels
    chosen, *others = silu.loops_around
    assert (chosen.choice, chosen.hint, len(others)) == ("no loop", "", 2)
    for dim, other in zip((0, 1), sorted(others, key=lambda one: one.hint), strict=True):
        assert other.hint == f"hint(tile={{{dim}: 2}})" and other.choice == f"2 trips over d{dim} around 1 kernel"
        hinted = compiled(Hinted(tile={dim: 2}), 512, 256)
        assert other.price is not None and other.price.total == pytest.approx(hinted.timeline().kernels_us)
        assert other.price.overhead > 0


def test_an_operation_of_several_kernels_is_in_the_loop_as_a_whole(gated: CompiledModel) -> None:
    (exp,) = gated.explain("sdsc_5").kernels
    by_rows = next(one for one in exp.loops_around if "over d0" in one.choice)
    assert by_rows.hint == "hint(tile={0: 2}) around sdsc_3 to sdsc_7" and by_rows.choice.endswith("around 5 kernels")


def test_loops_that_were_taken_stand_beside_others_and_none(rows: CompiledModel) -> None:
    """65,536 rows: without loops everything goes through device memory."""
    (exp,) = rows.explain("exp").kernels
    chosen, second, third = exp.loops_around
    assert chosen.choice == "4 trips over d0 around 5 kernels" and chosen.price is not None
    assert second.hint.startswith("hint(tile={0: 8}) around sdsc_")
    assert second.price is not None and third.price is not None
    assert chosen.price.total <= second.price.total <= third.price.total
    text = str(rows.explain("exp"))
    assert "loops, us of all kernels of the program by engine" in text
    assert f"  2. {second.hint} asks for it" in text


def test_a_buffer_inside_of_an_operation_is_placed_in_the_text(gated: CompiledModel) -> None:
    (exp,) = gated.explain("sdsc_5").kernels
    assert exp.places[1].hint == 'spyre.hint = {place = "hbm"} at its buffer in the text'


def test_a_result_for_the_host_has_no_other_place(gated: CompiledModel) -> None:
    (divided,) = gated.explain("realdiv").kernels
    assert [one.refused for one in divided.places] == ["", "it goes to the host"]


def test_what_no_plan_keeps_in_the_scratchpads_says_so(rows: CompiledModel) -> None:
    (maximum,) = rows.explain("max").kernels
    assert [one.choice for one in maximum.places] == ["lx", "hbm"] and maximum.places[1].price is not None


def test_many_kernels_are_listed_without_prices(gated: CompiledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_prices, "MOST_PLANNED", 0)
    (found,) = gated.explain("silu").kernels
    assert all(one.price is None for one in (*found.places[1:], *found.loops_around[1:]))
    assert found.loops_around[1].hint == "hint(tile={0: 2})"
    assert str(found).count("priced for fewer kernels at once: --explain sdsc_1") == 3
