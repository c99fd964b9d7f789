"""Float32 that stays float32: as close to torch as float32 is, and a list of what the hardware cannot keep."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.cli.compile import run
from spyre_mlir.transforms.loop_to_kernel.precision_loss import NarrowedWarning, PrecisionLosses, RoundedWarning
from tests.functions import FunctionModel


def compiled(function: Callable[..., Any], *inputs: torch.Tensor, keep: bool = True) -> Any:
    return spyre_mlir.compile(FunctionModel(function), inputs, keep_float32=keep)


def error(function: Callable[..., Any], *inputs: torch.Tensor, keep: bool) -> float:
    """Largest difference between device numerics on disk and torch in double precision, relative to the largest."""
    made = compiled(function, *inputs, keep=keep)
    got, wanted = made(*inputs), function(*(x.double() if x.is_floating_point() else x for x in inputs))
    assert got.dtype == torch.float32
    return float((got.double() - wanted).abs().max() / wanted.abs().max())


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


CHAINS: dict[str, Callable[..., Any]] = {
    "softmax and sums": lambda x, y: torch.softmax(x * y + x.exp() / (y * y + 1), -1).sum(0) + (x - y).amax(0),
    "layer norm": lambda x, y: nn.functional.layer_norm(x, (131,)) * y.sigmoid(),
    "choices and another layout": lambda x, y: torch.where(x < y, x, y * 3).t().contiguous() + 1,
    "parts and rows": lambda x, y: torch.cat([x * y, y], 1)[:, 3:200].sum(-1) - x.amin(1),
    "integers": lambda x, y: (x * 10).long() * y + (x > 0) * x,
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_as_close_as_float32(name: str) -> None:
    x, y = numbers(37, 131), numbers(37, 131) + 3
    assert error(CHAINS[name], x, y, keep=True) < 1e-6
    assert error(CHAINS[name], x, y, keep=False) > 1e-4


# Numbers whose tail, were it filled with 0, would decide: all below 0, all above 0, none near 0.
EXTREMES: dict[str, Callable[..., Any]] = {
    "largest of negative numbers": lambda x: (-x.exp() - 1).amax(1),
    "smallest of positive numbers": lambda x: (x.exp() + 1).amin(1),
    "product": lambda x: (x.exp() + 0.5).clamp(max=1.5).prod(1),
    "largest of negative integers": lambda x: (-(x * x * 50).int() - 7).amax(1),
    "smallest of positive integers": lambda x: ((x * x * 50).int() + 7).amin(1),
}


@pytest.mark.parametrize("name", EXTREMES)
def test_the_tail_of_the_last_stick_takes_no_part(name: str) -> None:
    x = numbers(3, 33)
    got, wanted = compiled(EXTREMES[name], x)(x), EXTREMES[name](x.double())
    assert float((got.double() - wanted).abs().max() / wanted.abs().max()) < 1e-4


def test_products_take_dl16_and_say_so() -> None:
    x, w = numbers(5, 100), numbers(100, 70)
    with pytest.warns(NarrowedWarning, match=r"2 kernels(.|\n)*1 x batchmatmul\n.*1 x tanh") as told:
        made = spyre_mlir.compile(
            FunctionModel(lambda x, w: torch.tanh(x.exp() @ w * 0.01) + x[:, :70]), (x, w), keep_float32=True
        )
    assert len(told) == 1
    assert "2 kernels compute float32 in DL16" in str(made.report())
    assert "kernels convert between formats of numbers" in str(made.report())
    assert made.verify(x, w)
    wanted = torch.tanh(x.exp() @ w * 0.01) + x[:, :70]
    assert float((made(x, w) - wanted).abs().max()) < 2e-2


def test_half_precision_is_dl16_all_the_same() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = compiled(lambda x, y: x @ y + x, *(numbers(64, 64).half(),) * 2)
    assert "IEEE_FP32" not in made.mlir("spyre.kernel")


def test_the_tool_keeps_float32(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.export.save(torch.export.export(FunctionModel(torch.tanh), (numbers(3, 65),)), tmp_path / "m.pt2")
    assert run([str(tmp_path / "m.pt2"), "--keep-float32", "--emit", "spyre.kernel"]) == 0
    out, err = capsys.readouterr()
    assert "narrowed" in out
    assert "1 x tanh" in err


def test_eight_bit_floats_become_float32_by_way_of_dl16() -> None:
    x, fp8 = numbers(5, 100).bfloat16().float(), torch.float8_e4m3fn
    made = compiled(lambda x: x.to(fp8).float() * 3.3, x)
    assert float((made(x) - x.to(fp8).float() * 3.3).abs().max()) < 1e-5


def test_losses_are_told_one_by_one() -> None:
    for losses, told in (
        (PrecisionLosses(), []),
        (PrecisionLosses(narrowed="n"), [(NarrowedWarning, "n")]),
        (PrecisionLosses(rounded="r"), [(RoundedWarning, "r")]),
        (PrecisionLosses("n", "r"), [(NarrowedWarning, "n"), (RoundedWarning, "r")]),
    ):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            losses.tell()
        assert [(w.category, str(w.message)) for w in found] == told
