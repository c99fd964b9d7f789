"""Axes and numbers of plots, worked out by hand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from spyre_mlir.report.plots import Line, Mark, Plot, Scale, Tick, _round_step, line, short


@pytest.mark.parametrize(
    ("scale", "value", "place"),
    [
        (Scale(0, 10, 100, 200), 5, 150.0),
        (Scale(10, 20, 200, 100), 12, 180.0),
        (Scale(0, 3, 0, 10), 1, 3.33),
        (Scale(1, 100, 0, 60, logarithmic=True), 10, 30.0),
        (Scale(0.1, 1000, 40, 0, logarithmic=True), 10, 20.0),
    ],
)
def test_the_place_of_a_number(scale: Scale, value: float, place: float) -> None:
    assert scale(value) == place


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0, 100, ["0", "20", "40", "60", "80", "100"]),  # a sixth is 16.7
        (3, 17, ["5", "10", "15"]),  # a sixth is 2.3
        (0, 6, ["0", "1", "2", "3", "4", "5", "6"]),  # a sixth is 1
        (0, 5000, ["0", "1 k", "2 k", "3 k", "4 k", "5 k"]),
        (0, 0.3, ["0", "0.05", "0.1", "0.15", "0.2", "0.25", "0.3"]),
        (-10, 45, ["-10", "0", "10", "20", "30", "40"]),  # a sixth is 9.2: the next step is of the power above
    ],
)
def test_round_numbers_along_an_axis(low: float, high: float, labels: list[str]) -> None:
    assert [tick.label for tick in Scale(low, high, 0, 600).ticks()] == labels


def test_ticks_stand_at_their_numbers() -> None:
    assert Scale(0, 10, 100, 200).ticks() == [Tick(100.0 + 10 * n, str(n)) for n in range(0, 11, 2)]


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0.1, 10_000, ["0.1", "1", "10", "100", "1 k", "10 k"]),
        (2, 500, ["10", "100"]),
        (1e9, 1e11, ["1 G", "10 G", "100 G"]),
    ],
)
def test_powers_of_ten_along_a_logarithmic_axis(low: float, high: float, labels: list[str]) -> None:
    scale = Scale(low, high, 0, 100, logarithmic=True)
    assert [tick.label for tick in scale.ticks()] == labels
    assert scale.ticks()[0].at == scale(float(labels[0].replace(" G", "e9")))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.001234, "0.00123"),
        (12.345, "12.3"),
        (999, "999"),
        (1000, "1 k"),
        (-2500, "-2.5 k"),
        (1e6, "1 M"),
        (1.2345e9, "1.23 G"),
        (1e12, "1 T"),
        (1e15, "1 P"),
        (2e18, "2e+03 P"),
    ],
)
def test_numbers_as_people_read_them(value: float, text: str) -> None:
    assert short(value) == text


def test_a_line_goes_through_places() -> None:
    x, y = Scale(0, 10, 0, 100), Scale(0, 1, 50, 0)
    assert line([(0, 0), (5, 1)], x, y, "title", "kind") == Line("0.0,50.0 50.0,0.0", "title", "kind")
    assert line([], x, y, "title").kind == ""


def test_a_mark_without_a_width_is_a_dot() -> None:
    assert Mark(1.0, 2.0, "title") == Mark(1.0, 2.0, "title", "", 0.0, 0.0)


def test_a_plot_may_have_neither_marks_nor_lines() -> None:
    plot = Plot(Scale(0, 1, 0, 1), Scale(0, 1, 0, 1), "x", "y")
    assert (plot.marks, plot.lines) == ((), ())


UNIT = Scale(0, 1, 0, 1)


@pytest.mark.parametrize(
    "part",
    [UNIT, Tick(0.0, "0"), Mark(0.0, 0.0, ""), Line("", ""), Plot(UNIT, UNIT, "", "")],
    ids=lambda part: type(part).__name__,
)
def test_parts_of_a_plot_do_not_change(part: Any) -> None:
    for field in fields(part):
        with pytest.raises(FrozenInstanceError):
            setattr(part, field.name, None)


@pytest.mark.parametrize(("least", "step"), [(0, 1), (-3, 1), (1, 1), (1.1, 2), (2.1, 5), (5.1, 10), (0.03, 0.05)])
def test_a_step_is_the_next_round_number(least: float, step: float) -> None:
    assert _round_step(least) == pytest.approx(step)
