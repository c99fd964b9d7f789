"""The emulation's rounding against exact rationals, and what its mode rounds."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.dl16_emulation import LARGEST, SMALLEST, RoundEveryResult, emulate, rounded


def value_of(magnitude: int) -> Fraction:
    if magnitude == 0:
        return Fraction(0)
    return Fraction(512 + (magnitude & 511), 512) * Fraction(2) ** ((magnitude >> 9) - 31)


VALUES = [value_of(code) for code in range(0x7FFF)]


def test_every_value_of_the_format_stays() -> None:
    values = torch.tensor([float(value) for value in VALUES], dtype=torch.float64)
    assert torch.equal(rounded(values), values)
    assert torch.equal(rounded(-values), -values)
    assert float(values[-1]) == LARGEST and float(values[1]) == SMALLEST


@given(st.floats(-1e10, 1e10, width=32))
def test_the_nearest_is_taken_and_ties_go_away_from_zero(value: float) -> None:
    wanted = abs(Fraction(value))
    got = abs(Fraction(float(rounded(torch.tensor([value], dtype=torch.float64))[0])))
    at = bisect_right(VALUES, wanted)
    low, high = VALUES[at - 1], VALUES[min(at, len(VALUES) - 1)]
    assert got == (low if wanted - low < high - wanted else high)


def test_special_values() -> None:
    got = rounded(torch.tensor([1e30, -1e30, float("inf"), float("nan")]))
    assert got[:2].tolist() == [LARGEST, -LARGEST]
    assert got[2:].isnan().all()


def test_results_are_rounded_and_views_are_not_copied() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
    with RoundEveryResult():
        third, transposed = x / 3, x.t()
        x.mul_(1 + 2.0**-10)
    assert float(third[0, 0]) == 683 / 2048
    assert transposed.data_ptr() == x.data_ptr()
    assert float(x[0, 0]) == 1 + 2.0**-9  # in place


def test_weights_and_inputs_are_rounded() -> None:
    layer = torch.nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(1 + 2.0**-11)
    assert emulate(layer, torch.tensor([[1 + 2.0**-10]])).item() == 1 + 2.0**-9
    assert layer.weight.item() == pytest.approx(1 + 2.0**-11, rel=1e-9)
