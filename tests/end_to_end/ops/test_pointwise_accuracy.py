"""Element-by-element compositions on dense grids: exact arithmetic within `tolerance`, the device within `ulps`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

import spyre_mlir
from spyre_mlir.hw.number_formats.dl16 import round_trip
from spyre_mlir.machine.levels.aten import evaluate
from spyre_mlir.ops import ATEN

POINTS = 640
FRACTION_BITS = 9
Function = Callable[[Tensor], Tensor]
special = torch.special
# By grid: the overload, and the function in torch. Grids keep away from the zeros where a result cancels.
WIDE: dict[str, Function] = {
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "asinh": torch.asinh,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "atan": torch.atan,
    "erf": torch.erf,
    "elu": functional.elu,
    "selu": functional.selu,
    "celu": functional.celu,
    "softplus": functional.softplus,
    "log_sigmoid": functional.logsigmoid,
    "hardswish": functional.hardswish,
    "mish": functional.mish,
}
NORMAL: dict[str, Function] = {
    "erfc": torch.erfc,
    "special_erfcx": special.erfcx,
    "special_ndtr": special.ndtr,
    "special_log_ndtr": special.log_ndtr,
}
POSITIVE: dict[str, Function] = {
    "log1p": torch.log1p,
    "log2": torch.log2,
    "log10": torch.log10,
    "special_entr": special.entr,
}
UNIT: dict[str, Function] = {
    "asin": torch.asin,
    "acos": torch.acos,
    "atanh": torch.atanh,
    "erfinv": torch.erfinv,
    "logit": torch.logit,
    "special_ndtri": special.ndtri,
}
# Near the end where 2 x - 1 says nothing of x any more.
LOW: dict[str, Function] = {"logit": torch.logit, "erfinv": torch.erfinv, "special_ndtri": special.ndtri}
GRIDS: dict[str, tuple[float, float, dict[str, Function]]] = {
    "wide": (-7.0, 7.0, WIDE),
    "normal": (-3.0, 4.0, NORMAL),
    "positive": (1.5, 900.0, POSITIVE),
    "unit": (0.51, 0.995, UNIT),
    "low": (0.0005, 0.45, LOW),
}


class Several(torch.nn.Module):
    def __init__(self, functions: list[Function]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(f(x) for f in self.functions)


def grid(low: float, high: float) -> Tensor:
    """Numbers that DL16 has."""
    return torch.from_numpy(round_trip(np.linspace(low, high, POINTS))).float()


def ulps(got: Tensor, wanted: Tensor) -> float:
    """The largest difference in units in the last place of DL16."""
    size = np.maximum(np.abs(wanted.numpy()), 2.0**-20)
    return float(
        np.max(np.abs(got.double().numpy() - wanted.numpy()) / 2.0 ** (np.floor(np.log2(size)) - FRACTION_BITS))
    )


def allowed(overload: str) -> float:
    entry = ATEN.find(overload)
    assert entry is not None
    return entry.ulps


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            n,
            marks=[pytest.mark.slow(reason="grids with negative numbers repeat the positive ones")]
            if len(g[2]) > len(POSITIVE)
            else [],
        )
        for n, g in GRIDS.items()
    ],
)
def test_device_error_is_within_what_the_table_says(name: str) -> None:
    low, high, functions = GRIDS[name]
    x = grid(low, high)
    model = Several(list(functions.values()))
    results = spyre_mlir.compile(model, (x,), numerics="device")(x)
    away = {"sin": 0.1, "cos": 0.1, "tan": 0.1}
    for overload, got, wanted in zip(functions, results, model(x.double()), strict=True):
        clear = wanted.abs() >= away.get(overload, 0.0)
        if overload == "tan":
            clear &= wanted.abs() < 10
        assert ulps(got[clear], wanted[clear]) <= allowed(overload), overload


@pytest.mark.parametrize("name", GRIDS)
def test_exact_error_is_within_what_the_table_says(name: str) -> None:
    low, high, functions = GRIDS[name]
    x = np.linspace(low, high, 20_000)
    for overload, function in functions.items():
        entry = ATEN.find(overload)
        assert entry is not None
        if not entry.composed:
            continue
        given: dict[str, Any] = {p.name: p.default for p in entry.params} | {"self": x}
        (got,) = evaluate(entry, given)
        wanted = function(torch.from_numpy(x)).numpy()
        near = max(1e-12, entry.tolerance)
        np.testing.assert_allclose(got, wanted, rtol=near, atol=near, err_msg=overload)


SMALL: dict[str, Function] = {
    "expm1": torch.expm1,
    "log1p": torch.log1p,
    "sinh": torch.sinh,
    "asinh": torch.asinh,
    "atanh": torch.atanh,
    "asin": torch.asin,
    "atan": torch.atan,
    "tan": torch.tan,
    "erf": torch.erf,
    "erfinv": torch.erfinv,
}


@pytest.mark.slow(reason="a denser grid")
def test_functions_that_vanish_at_zero_keep_their_relative_error_there() -> None:
    """A naive e^x - 1 or log(1 + x) has no right bit below 2^-10."""
    x = torch.from_numpy(round_trip(np.concatenate([-np.logspace(-5, -2, 160), np.logspace(-5, -2, 160)]))).float()
    model = Several(list(SMALL.values()))
    for overload, got, wanted in zip(SMALL, spyre_mlir.compile(model, (x,))(x), model(x.double()), strict=True):
        assert ulps(got, wanted) <= allowed(overload), overload


def test_powers() -> None:
    x = grid(0.1, 9.0)
    model = Several([lambda v, p=p: v**p for p in (0.3, 2.5, -1.7, 3, -2)] + [lambda v: 2**v, lambda v: 0.5**v])
    for got, wanted in zip(spyre_mlir.compile(model, (x,))(x), model(x.double()), strict=True):
        assert ulps(got, wanted) <= allowed("pow.Tensor_Scalar")


def test_rounding_goes_to_even() -> None:
    x = torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49951171875, 511.5, 513.0, 1001.0, 7.25])
    got = spyre_mlir.compile(Several([torch.round]), (x,), numerics="device")(x)[0]
    assert got.tolist() == [-2.0, -2.0, 0.0, 0.0, 2.0, 2.0, 0.0, 512.0, 513.0, 1001.0, 7.0]


SIGNS = torch.tensor([[7.5, 7.5, -7.5, -7.5, 6.0, -6.0, 0.0, 5.0], [2.0, -2.0, 2.0, -2.0, 3.0, 3.0, 4.0, 7.0]])


@pytest.mark.slow(reason="other values of a tested function")
def test_remainders_have_the_signs_that_torch_gives_them() -> None:
    class Remainders(torch.nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            return (
                torch.remainder(x, y),
                torch.fmod(x, y),
                torch.floor_divide(x, y),
                torch.div(x, y, rounding_mode="trunc"),
                x % -3,
                torch.fmod(x, -3),
                x // -2.5,
                5 % y,
            )

    x, y = SIGNS
    got = spyre_mlir.compile(Remainders(), (x, y), numerics="device")(x, y)
    assert [g.tolist() for g in got] == [w.tolist() for w in Remainders()(x, y)]


def test_a_remainder_by_infinity_is_the_number_or_infinity() -> None:
    entry = ATEN.find("remainder.Tensor")
    assert entry is not None
    (got,) = evaluate(entry, {"self": np.array([5.0, -5.0]), "other": np.array([np.inf, np.inf])})
    assert got.tolist() == [5.0, np.inf]


@pytest.mark.parametrize(
    ("overload", "function"),
    [
        ("remainder.Tensor", torch.remainder),
        ("fmod.Tensor", torch.fmod),
        ("bitwise_right_shift.Tensor", lambda a, c: torch.bitwise_right_shift(a, c.abs())),
        ("bitwise_and.Scalar", lambda a, c: torch.bitwise_and(a, -91)),
        ("bitwise_or.Scalar", lambda a, c: torch.bitwise_or(a, 0x5A)),
        ("bitwise_xor.Scalar", lambda a, c: torch.bitwise_xor(a, 0x5A)),
    ],
)
def test_whole_numbers_of_all_signs(overload: str, function: Callable[[Tensor, Tensor], Tensor]) -> None:
    left = np.arange(-130, 130)
    right = np.where(np.arange(260) % 2 == 0, 7, -3)
    entry = ATEN.find(overload)
    assert entry is not None
    number = {"bitwise_and.Scalar": -91, "bitwise_or.Scalar": 0x5A, "bitwise_xor.Scalar": 0x5A}.get(overload)
    other: Any = np.abs(right) if "shift" in overload else right if number is None else number
    (got,) = evaluate(entry, {"self": left, "other": other})
    assert got.tolist() == function(torch.from_numpy(left), torch.from_numpy(right)).tolist()


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_floor_divisions_of_all_signs(mode: str) -> None:
    left, right = np.arange(-130, 130), np.where(np.arange(260) % 2 == 0, 7, -3)
    entry = ATEN.find("div.Tensor_mode")
    assert entry is not None
    (got,) = evaluate(entry, {"self": left, "other": right, "rounding_mode": mode})
    wanted = torch.div(torch.from_numpy(left), torch.from_numpy(right), rounding_mode=mode)
    assert got.tolist() == wanted.tolist()


def test_a_power_of_a_negative_base_has_the_sign_of_its_parity() -> None:
    x, y = torch.tensor([-2.0, -2.0, -2.0, 0.0, 0.0, 3.0]), torch.tensor([3.0, 2.0, 0.5, 0.0, 2.0, 0.0])
    got = spyre_mlir.compile(_Power(), (x, y), numerics="device")(x, y)
    torch.testing.assert_close(got, torch.pow(x, y), rtol=1e-2, atol=0, equal_nan=True)


class _Power(torch.nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.pow(x, y)


def test_comparisons_of_truth_values() -> None:
    class Comparisons(torch.nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
            return (x == y, x != y, x < y, x <= y, x > y, x >= y, x + y, x * y, x ^ y, torch.maximum(x, y))

    x, y = torch.tensor([False, False, True, True]), torch.tensor([False, True, False, True])
    got = spyre_mlir.compile(Comparisons(), (x, y), numerics="device")(x, y)
    assert [g.tolist() for g in got] == [w.tolist() for w in Comparisons()(x, y)]
