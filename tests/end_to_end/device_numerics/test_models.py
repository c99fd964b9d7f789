"""Whole models in device numerics, held against the emulation: torch with every result rounded to DLFloat16.

Both errors are root mean squares of differences from torch in double precision, over that of its results. The margin
is for ATen ops that are several hardware functions, each of which rounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import InputError
from spyre_mlir.machine.overflows import DL16OverflowWarning
from spyre_mlir.report import Accuracy
from tests.end_to_end.models import PROGRAMS, Built, llama, mlp
from tests.oracles.dl16_emulation import double, emulate, rms_error, rounded

MARGIN = 1.5


def large_softmax() -> Built:
    torch.manual_seed(1)
    return nn.Softmax(-1), (torch.randn(33, 1000) * 2,)


MODELS = {**PROGRAMS, "softmax_1000": large_softmax, "llama_wide_layer": lambda: llama(hidden=256)}


SLOW = ("llama_2_layers", "llama_wide_layer")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow(reason="a second model of the same kind")] if n in SLOW else [])
        for n in MODELS
    ],
)
def test_errors_are_those_of_the_format(name: str, record_property: pytest.RecordProperty) -> None:
    model, inputs = MODELS[name]()
    expected = double(model, *inputs)
    emulated = rms_error(emulate(model, *inputs), expected)
    compiled = spyre_mlir.compile(model, inputs, numerics="device")
    ours = rms_error(compiled(*inputs), expected)
    record_property("ours", ours)
    record_property("emulation", emulated)
    assert ours <= MARGIN * emulated
    # Weights and inputs that are not rounded would be far better than this.
    assert ours > 1e-4


def test_results_are_values_of_the_format() -> None:
    model, inputs = mlp()
    got = spyre_mlir.compile(model, inputs, numerics="device")(*inputs)
    assert got.dtype == torch.float32
    assert torch.equal(rounded(got), got)


def test_accuracy_is_the_error_against_double_precision() -> None:
    model, inputs = mlp()
    compiled = spyre_mlir.compile(model, inputs)
    expected = rms_error(spyre_mlir.compile(model, inputs, numerics="device")(*inputs), double(model, *inputs))
    assert compiled.accuracy(*inputs).worst == pytest.approx(expected, rel=1e-6)
    assert next(model.parameters()).dtype == torch.float32


@pytest.mark.parametrize("build", [mlp, llama])
def test_an_exported_program_is_widened_in_a_copy(build: Callable[[], Built]) -> None:
    model, inputs = build()
    exported = torch.export.export(model, inputs)
    compiled = spyre_mlir.compile(exported)
    assert 1e-4 < compiled.accuracy(*inputs).worst < 2e-3
    assert {tensor.dtype for tensor in exported.state_dict.values()} == {torch.float32}
    assert compiled.verify(*inputs)


def test_verify_is_exact_whatever_calls_are() -> None:
    model, inputs = mlp()
    compiled = spyre_mlir.compile(model, inputs, numerics="device")
    assert compiled.verify(*inputs, tolerance=1e-5)
    assert rms_error(compiled(*inputs), double(model, *inputs)) > 1e-4


def test_lazy_models_have_device_numerics_too() -> None:
    model, inputs = mlp()
    lazy = spyre_mlir.compile(model, numerics="device")
    assert torch.equal(lazy(*inputs), spyre_mlir.compile(model, inputs, numerics="device")(*inputs))
    assert lazy.accuracy(*inputs).worst < 2e-3


def test_unknown_numerics_are_named() -> None:
    with pytest.raises(InputError, match="numerics must be one of exact, device, none, got 'fast'"):
        spyre_mlir.compile(*mlp(), numerics="fast")


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x


def doubled(x: torch.Tensor) -> torch.Tensor:
    return spyre_mlir.compile(Twice(), (x,), numerics="device")(x)


def test_a_half_goes_through_the_format_and_back() -> None:
    # 1 + 2^-10 is a tie between 1 and 1 + 2^-9; 32752 becomes 32768, whose double is no half; 2^-25 * 1.5 is small.
    x = torch.tensor([1 + 2.0**-10, 32752.0, 16376.0, 2.0**-24, 3 * 2.0**-24, -0.0], dtype=torch.float16)
    got = doubled(x)
    assert got.dtype == torch.float16
    assert got.tolist() == [2 * (1 + 2.0**-9), float("inf"), 32768.0, 2.0**-23, 6 * 2.0**-24, 0.0]


def test_infinities_of_the_host_become_the_largest_halves_and_nan_stays() -> None:
    with pytest.warns(DL16OverflowWarning, match="1 result of 1:add"):  # the last element's
        got = doubled(torch.tensor([float("inf"), -float("inf"), float("nan"), 1.0, -3e38]))
    assert got[:2].tolist() == [2 * 65536.0, -2 * 65536.0]  # DL16 has 65536 next to 65504
    assert got[2].isnan()
    assert got[3:].tolist() == [2.0, -8_573_157_376.0]


def test_integers_are_narrowed_and_never_wrap() -> None:
    class Add(nn.Module):
        def forward(self, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
            return nn.functional.embedding(x, table)

    table = torch.randn(10, 64)
    compiled = spyre_mlir.compile(Add(), (torch.tensor([1, 9]), table), numerics="device")
    assert torch.equal(compiled(torch.tensor([3, 4]), table), rounded(table)[3:5])
    with pytest.raises(InputError, match=r"holds 4,294,967,296 at \[1\], and aten.embedding takes 0 to 9"):
        compiled(torch.tensor([1, 2**32]), table)


def test_comparisons_give_zero_or_one() -> None:
    class Greater(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x > y

    # The last pair differs on the host only.
    x, y = torch.tensor([1.0, 2.0, float("nan"), 1.0001]), torch.tensor([2.0, 1.0, 0.0, 1.0])
    got = spyre_mlir.compile(Greater(), (x, y), numerics="device")(x, y)
    assert got.dtype == torch.bool
    assert got.tolist() == [False, True, False, False]


def test_accuracy_counts_floating_results() -> None:
    a, b = np.asarray([3.0, 4.0]), np.asarray([1.0, np.nan])
    assert Accuracy.of([a, a * 1.1, a], [a, a, np.asarray([3, 4])]).errors == (0.0, pytest.approx(0.1))
    assert Accuracy.of([a], [b]).worst == float("inf")
    assert Accuracy.of([np.asarray([1.0, np.nan])], [b]).worst == 0.0
    assert str(Accuracy((0.5,))) == "RMS error against double precision: 5.00e-01"
