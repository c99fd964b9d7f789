"""Plots as plain marks in a frame, for a template to draw: no drawing library, no script in the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log10

_STEPS = (1.0, 2.0, 5.0, 10.0)
_MOST_TICKS = 6


@dataclass(frozen=True)
class Scale:
    """Mapping of a number to its position on an axis.

    Attributes:
        low, high: the numbers at both ends.
        begin, end: their places on the page.
        logarithmic: whether equal factors are equally far apart.
    """

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """Place of a number."""
        if self.logarithmic:
            part = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        else:
            part = (value - self.low) / (self.high - self.low)
        return round(self.begin + part * (self.end - self.begin), 2)

    def ticks(self) -> list[Tick]:
        """Round numbers along the axis."""
        if self.logarithmic:
            powers = range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)
            return [Tick(self(10.0**p), short(10.0**p)) for p in powers]
        step = _round_step((self.high - self.low) / _MOST_TICKS)
        first, last = ceil(self.low / step), floor(self.high / step + 1e-9)
        return [Tick(self(n * step), short(n * step)) for n in range(first, last + 1)]


@dataclass(frozen=True)
class Tick:
    """A number written beside an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A rectangle or, without a height, a dot; `kind` selects its colour, `title` is its tooltip."""

    x: float
    y: float
    title: str
    kind: str = ""
    width: float = 0.0
    height: float = 0.0


@dataclass(frozen=True)
class Line:
    """A polyline in page coordinates."""

    points: str
    title: str
    kind: str = ""


@dataclass(frozen=True)
class Plot:
    """Marks and lines in a frame with two axes."""

    x: Scale
    y: Scale
    x_label: str
    y_label: str
    marks: Sequence[Mark] = field(default_factory=tuple[Mark, ...])
    lines: Sequence[Line] = field(default_factory=tuple[Line, ...])


def line(points: Sequence[tuple[float, float]], x: Scale, y: Scale, title: str, kind: str = "") -> Line:
    """Return a polyline through numbers."""
    return Line(" ".join(f"{x(a)},{y(b)}" for a, b in points), title, kind)


def short(value: float) -> str:
    """Format a number for people: three digits, and a letter for thousands."""
    for limit, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g} {letter}"
    return f"{value:.3g}"


def _round_step(least: float) -> float:
    power = 10.0 ** floor(log10(least)) if least > 0 else 1.0
    return next((power * step for step in _STEPS if power * step >= least), power * _STEPS[-1])
