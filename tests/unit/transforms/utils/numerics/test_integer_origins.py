"""Floats that start from integers: positions, angles, timesteps, counts. They are float32 until they meet data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.backend.directory import read_bundle
from spyre_mlir.debug.stored_runs import stored_program
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.transforms.loop_to_kernel.precision_loss import RoundedWarning
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

LAST = 131_071
FREQUENCIES = 1 / 10000 ** (torch.arange(16) / 16.0)
COUNTS = torch.tensor([3, 1025, 1501, 8191, 131_071])
MODES: dict[str, dict[str, Any]] = {"device": {}, "exact": {"numerics": "exact"}, "kept": {"keep_float32": True}}


def compiled(function: Callable[..., Any], *inputs: torch.Tensor, **options: Any) -> Any:
    return spyre_mlir.compile(FunctionModel(function), inputs, **options)


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def rotary(positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    angles = positions.float()[:, None] * FREQUENCIES
    return angles.cos(), angles.sin()


def timesteps(t: torch.Tensor) -> torch.Tensor:
    angles = t[:, None].float() * torch.exp(-torch.arange(8) / 2.0)[None, :]
    return torch.cat([angles.sin(), angles.cos()], -1)


BECOMES_FLOAT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a quotient": lambda i: i / 4096,
    "a product with a number": lambda i: i * 1.0,
    "a mean": lambda i: i.float().mean(),
    "half precision": lambda i: i.half(),
    "bfloat16": lambda i: i.bfloat16(),
    "a reciprocal": lambda i: i.float().reciprocal() * 1000,
    "back to integers": lambda i: (i.float() / 3).floor().long(),
    "chosen by a comparison with another": lambda i: torch.where(i > 1024, i.float() - 1000, 0.5),
    "compared with floats of their own": lambda i: (i.float() + 0.5 > 1501.25).float(),
    "parts of one": lambda i: torch.cat([i.float(), i * 0.5])[2:7],
    "counted": lambda i: (i[:, None] > torch.arange(2055)).float().sum(),
}


@pytest.mark.parametrize(
    "mode",
    [
        "device",
        *(
            pytest.param(m, marks=pytest.mark.slow(reason="device numerics are the stricter case"))
            for m in ("exact", "kept")
        ),
    ],
)
@pytest.mark.parametrize("name", BECOMES_FLOAT)
def test_integers_of_any_size_become_floats(name: str, mode: str) -> None:
    function = BECOMES_FLOAT[name]
    made = compiled(function, torch.zeros_like(COUNTS), **MODES[mode])
    got, wanted = made(COUNTS), function(COUNTS)
    assert got.dtype == wanted.dtype
    torch.testing.assert_close(got, wanted, rtol=3e-7, atol=0)


@pytest.mark.parametrize(
    "mode", ["device", pytest.param("kept", marks=pytest.mark.slow(reason="device numerics are the stricter case"))]
)
def test_angles_are_those_of_float32(mode: str) -> None:
    positions = torch.tensor([0, 1, 1000, 1025, 8000, 65_537, 100_000, LAST])
    made = compiled(rotary, torch.zeros_like(positions), **MODES[mode])
    for got, wanted in zip(made(positions), rotary(positions), strict=True):
        assert float((got - wanted).abs().max()) < 1e-5
    assert made.accuracy(torch.arange(8) + 1000).worst < 1e-3


class Decoding(nn.Module):
    """The angles of some positions from a computed one on, as a static cache asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("frequencies", FREQUENCIES, persistent=False)

    def forward(self, first: torch.Tensor) -> torch.Tensor:
        return ((first + torch.arange(4)).float()[:, None] * self.frequencies).sin()


def test_angles_of_computed_positions() -> None:
    model = Decoding()
    made = torch.compile(model, backend="spyre", dynamic=False)
    for last in (7, 1025, LAST):
        first = torch.tensor([last - 3])
        assert float((made(first) - model(first)).abs().max()) < 1e-5


@pytest.mark.slow(reason="device numerics are the stricter case")
def test_exact_numerics_take_positions_of_any_size() -> None:
    positions = torch.tensor([7, 1025, 8000])
    for got, wanted in zip(
        compiled(rotary, positions * 0, numerics="exact")(positions), rotary(positions), strict=True
    ):
        assert float((got - wanted).abs().max()) < 1e-3


class Weightless(nn.Module):
    """A rotary table whose frequencies have no value yet."""

    def __init__(self, positions: torch.Tensor | None) -> None:
        super().__init__()
        self.register_buffer("frequencies", FREQUENCIES.half().to("meta"))
        self.positions = positions

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        if self.positions is not None:
            positions = positions * 0 + self.positions
        return (positions.float()[:, None] * (self.frequencies.float() / 2)).cos()


@pytest.mark.parametrize(
    "start", [LAST - 5, pytest.param(None, marks=pytest.mark.slow(reason="the last positions are the stricter case"))]
)
def test_frequencies_without_values(start: int | None, tmp_path: Path) -> None:
    given = torch.tensor([0, 1025, 8000, 100_000, LAST])
    known = None if start is None else torch.arange(start, start + 5)
    made = spyre_mlir.compile(Weightless(known), (torch.zeros_like(given),))
    made.save(tmp_path / "bundle")
    stored = stored_program(read_bundle(tmp_path / "bundle", make_context()))
    values = {"frequencies": FREQUENCIES.half().numpy(), "positions": given.numpy()}
    arguments = [values.get(a.name, values["positions"]) for a in made._program.arguments if a.kind != "constant"]
    if known is not None:
        arguments.insert([a.kind for a in made._program.arguments].index("constant"), np.asarray(known, np.int64))
    (got,) = run_program(stored, arguments, MachineOptions(numerics="device"))
    positions = given if known is None else known
    wanted = (positions.float()[:, None] * (FREQUENCIES.half().float() / 2)).cos()
    assert float(np.abs(got - wanted.numpy()).max()) < 1e-5


def test_data_ends_it_with_one_conversion() -> None:
    x, weight = numbers(5, 32), numbers(32, 32)
    made = compiled(lambda x, i: (x * timesteps(i).repeat(1, 2) + x.exp()) @ weight, x, COUNTS)
    text = made.mlir("spyre.kernel")
    assert text.count("spyre.kernel.convert") == 1
    *_, after = text.split("spyre.kernel.convert")
    assert "IEEE_FP32" not in "".join(line for line in after.splitlines()[1:] if "free" not in line)
    wanted = (x * timesteps(COUNTS).repeat(1, 2) + x.exp()) @ weight
    assert float((made(x, COUNTS) - wanted).abs().max() / wanted.abs().max()) < 1e-2


IS_DATA: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "an embedding": (lambda i: nn.functional.embedding(i, TABLE) * 2 + 1, (torch.tensor([1, 2]),)),
    "a quantised weight": (lambda x: x @ (SHORT.float() * 0.01), (numbers(3, 64),)),
    "pixels": (lambda x: (x.float() / 255 - 0.5) * 2, (torch.zeros(3, 64, dtype=torch.uint8),)),
    "a mask": (lambda x, m: x + (1 - m.float()) * -10000, (numbers(3, 64), numbers(3, 64) > 0)),
    "weights alone": (lambda x: x * (TABLE / TABLE.norm()), (numbers(70, 64),)),
}
TABLE = nn.Parameter(numbers(70, 64), requires_grad=False)
SHORT = nn.Parameter(torch.ones(64, 64, dtype=torch.int8), requires_grad=False)


@pytest.mark.parametrize("name", IS_DATA)
def test_what_is_data_stays_in_dl16(name: str) -> None:
    function, inputs = IS_DATA[name]
    model = FunctionModel(function)
    model.table, model.short = TABLE, SHORT
    assert "IEEE_FP32" not in spyre_mlir.compile(model, inputs).mlir("spyre.kernel")


def test_what_has_no_form_on_float32_is_told_with_its_line() -> None:
    weight = nn.Parameter(numbers(5, 3), requires_grad=False)
    with pytest.warns(RoundedWarning, match=r"2 kernels round (.|\n)*1 x log at .*functions\.py") as told:
        compiled(lambda i, w: (i.float().log(), (i * 1.0)[None] @ w), COUNTS, weight)
    assert "batchmatmul" in str(told[0].message)


def test_small_numbers_into_a_product_are_nothing_to_tell() -> None:
    weight = numbers(16, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(lambda i, w: timesteps(i) @ w, COUNTS, weight)
