"""One test per entry of docs/dl16-exceptions.md: what the device gives where DL16 is not IEEE 754."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf, isnan, nan

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.machine.overflows import DL16OverflowWarning
from tests.functions import FunctionModel
from tests.paths import ROOT

PAGE = ROOT / "docs" / "dl16-exceptions.md"
STAND_IN = 65536.0
LARGEST = 8573157376.0


def on_device(function: Callable[..., object], *inputs: list[float]) -> list[list[float]]:
    tensors = [torch.tensor(i) for i in inputs]
    return [
        r.tolist() for r in spyre_mlir.compile(FunctionModel(function), tuple(tensors), numerics="device")(*tensors)
    ]


def test_merged_symbol() -> None:
    def model(zero: Tensor, hundred: Tensor) -> tuple[Tensor, ...]:
        made = torch.stack([1 / zero, torch.exp(hundred), torch.log(zero)])
        return made, torch.isnan(made), torch.isinf(made), torch.isfinite(made)

    made, not_number, infinite, finite = on_device(model, [0.0], [100.0])
    assert all(isnan(v) for (v,) in made)  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType]
    assert (not_number, infinite, finite) == ([[True]] * 3, [[False]] * 3, [[False]] * 3)


def test_stand_in() -> None:
    got = on_device(lambda x: (x + 0, torch.isinf(x), torch.isfinite(x)), [inf, -inf, 65536.0, 1e9, nan])
    assert got[0][:3] == [STAND_IN, -STAND_IN, STAND_IN]
    assert got[1] == [True, True, True, False, False]
    assert got[2] == [False, False, False, True, False]


def test_finite_infinity() -> None:
    got = on_device(lambda x: (x * x, x - x, 1 / x), [inf])
    assert got == [[STAND_IN**2], [0.0], [1 / STAND_IN]]


def test_replaced_infinity() -> None:
    got = on_device(lambda x: (torch.nan_to_num(1 / x, nan=7.0), torch.nan_to_num(x, nan=7.0, posinf=3.0)), [0.0, inf])
    assert got[0][0] == 7.0
    assert got[1] == [0.0, 3.0]


def test_no_minus_infinity() -> None:
    got = on_device(lambda x, y: (torch.log(x), torch.special.entr(y)), [0.0], [-1.0])
    assert isnan(got[0][0])
    assert got[1] == [-STAND_IN]


def test_sign_of_zero() -> None:
    one = [1.0, 1.0]
    got = on_device(lambda x, y: (torch.signbit(x), torch.copysign(y, x), torch.atan2(x, -y)), [-0.0, 0.0], one)
    assert got[0] == [False, False]
    assert got[1] == one
    assert got[2] == [3.140625, 3.140625]
    (angles, roots) = on_device(
        lambda x: (torch.complex(-x, x * 0).angle(), torch.complex(-x, -x * 0).sqrt().imag), one
    )
    assert (angles, roots) == ([3.140625, 3.140625], one)


def test_range_above() -> None:
    with pytest.warns(DL16OverflowWarning, match="2 results of 1:mul"):
        got = on_device(lambda x: (x * 1e5, x + 0), [1e5, -1e30])
    assert got == [[LARGEST, -LARGEST], [99968.0, -LARGEST]]


def test_range_below() -> None:
    assert on_device(lambda x: (x + 0,), [2e-10, 3e-10, 1e-30]) == [[0.0, 2.0**-31 * (1 + 2.0**-9), 0.0]]


def test_ties_away() -> None:
    assert on_device(lambda x: (x + 0,), [1 + 2.0**-10, -1 - 2.0**-10]) == [[1 + 2.0**-9, -1 - 2.0**-9]]


def test_ten_bits() -> None:
    got = on_device(lambda x: (x + 0, x * 0.1), [1024.0, 2049.0, 2050.0, 1.0])
    assert got[0] == [1024.0, 2048.0, 2052.0, 1.0]
    assert got[1][3] == 0.0999755859375


def test_large_angles() -> None:
    whole, near, far = on_device(lambda x: (torch.sin(x),), [1000.0, 1000.4, 100_000.0])[0]
    assert whole == pytest.approx(0.8269, abs=2e-2)
    assert near == whole  # and the sine of 1000.4 is 0.9806
    assert abs(far) <= 1 and abs(far - 0.0357) > 0.1  # the sine of 100,000


def test_large_quotients() -> None:
    got = on_device(lambda x, y: (torch.remainder(x, y),), [340.0, 900.0], [0.3330078125, 0.3330078125])
    assert got[0][0] == pytest.approx(340.0 % 0.3330078125, abs=1e-4)
    assert abs(got[0][1] - 900.0 % 0.3330078125) > 1e-3


def test_cancellation() -> None:
    (got,) = on_device(lambda x: (torch.nn.functional.tanhshrink(x),), [0.03])
    assert abs(got[0] - 9e-6) > 4e-6


def test_every_entry_has_a_test_and_every_test_an_entry() -> None:
    named = set(re.findall(r"^\| (\w+) \|", PAGE.read_text(), re.MULTILINE)) - {"name"}
    assert named == {n.removeprefix("test_") for n in globals() if n.startswith("test_")} - {
        "every_entry_has_a_test_and_every_test_an_entry"
    }
