"""Eight-bit floats and bfloat16 from torch to the bundle on disk: rounded as torch rounds them, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
import spyre_mlir.frontend.spyre_ops  # registers the operators
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.formats import DL16
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

FP8 = torch.float8_e4m3fn


def on_device(function: Callable[..., Any], *inputs: torch.Tensor) -> Any:
    """The program, all of which runs on the device, and is right on every level in exact numerics."""
    made: Any = spyre_mlir.compile(FunctionModel(function), inputs, host_fallback="error")
    checked = made.verify(*inputs)
    assert checked, str(checked)
    return made


def numbers(*shape: int) -> torch.Tensor:
    """Random numbers that DL16 has."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(torch.bfloat16).float()


ROUND_TRIPS: dict[str, Callable[..., Any]] = {
    "there and back": lambda x: x.to(FP8).float(),
    "as a result": lambda x: (x * 128).to(FP8),
    "in another layout": lambda x: x.to(FP8).transpose(-1, -2).contiguous().half(),
    "joined": lambda x: torch.cat([x.to(FP8), (x * 2).to(FP8)], -1).float() * 2,
}


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_conversions_round_as_torch(name: str) -> None:
    x = numbers(3, 2, 65)
    made = on_device(ROUND_TRIPS[name], x)
    got, wanted = made(x), ROUND_TRIPS[name](x)
    assert got.dtype == wanted.dtype
    assert torch.equal(got.float(), wanted.float())
    assert "qfp8ch" in made.mlir("superdsc") and "fp8todl16" in made.mlir("superdsc")


def test_every_number_and_every_tie() -> None:
    """All finite numbers of the format, the middles between neighbours, and what is beyond them."""
    codes = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    known = np.unique(codes[np.isfinite(codes)])
    asked = np.concatenate([known, (known[1:] + known[:-1]) / 2, [449.0, -1e4, 1e6]]).astype(np.float32)
    x = torch.from_numpy(asked)
    got = on_device(lambda x: x.to(FP8).float(), x)(x).numpy()
    wanted = np.clip(asked, -448, 448).astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("by_row", [False, True])
def test_scaled_products(by_row: bool) -> None:
    a, w = numbers(16, 48).to(FP8), numbers(32, 48).to(FP8)
    scales = (torch.full((16, 1), 0.5), torch.full((1, 32), 0.25)) if by_row else (torch.tensor(2.0), torch.tensor(0.5))
    bias = torch.ones(32, dtype=torch.bfloat16)
    made: Any = on_device(
        lambda a, w, s, t, c: torch._scaled_mm(a, w.t(), s, t, bias=c, out_dtype=torch.bfloat16), a, w, *scales, bias
    )
    wanted = (a.double() @ w.double().t()) * scales[0] * scales[1] + 1
    assert float((made(a, w, *scales, bias).double() - wanted).abs().max() / wanted.abs().max()) < 4e-3


@pytest.mark.parametrize("by_row", [False, True])
def test_scaled_products_by_recipes(by_row: bool) -> None:
    """The public function of torch."""
    a, w, c = numbers(16, 48).to(FP8), numbers(32, 48).to(FP8), torch.ones(32, dtype=torch.bfloat16)
    scales = (torch.full((16, 1), 0.5), torch.full((1, 32), 0.25)) if by_row else (torch.tensor(2.0), torch.tensor(0.5))
    way = nn.functional.ScalingType.RowWise if by_row else nn.functional.ScalingType.TensorWise
    product = partial(nn.functional.scaled_mm, output_dtype=torch.bfloat16)
    on_device(lambda a, w, s, t, c: product(a, w.t(), s, way, t, way, bias=c), a, w, *scales, c)


def test_quantised_and_back() -> None:
    x = numbers(4, 130)

    def function(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().amax(-1, keepdim=True) / 448
        return (x / scale).to(FP8).float() * scale

    got = on_device(function, x)(x)
    # Half a unit of four significant bits, and the roundings of DL16.
    assert float(((got - x) / x).abs().max()) < 2**-4 * 1.02


def test_a_cast_to_bfloat16_keeps_what_dl16_has() -> None:
    """In exact numerics no level rounds, nor does the reference; on the device the result has ten significant bits."""
    x = torch.linspace(1, 2, 65)
    made = on_device(lambda x: x.to(torch.bfloat16).float() * 3, x)
    assert float((made(x) / (3 * x) - 1).abs().max()) < 2**-9
    assert "convert" not in made.mlir("spyre.kernel")


@pytest.mark.parametrize("version", ["TS25", "TS26", "TSNEW"])
def test_bfloat16_is_dl16_in_every_generation_of_files(version: str) -> None:
    x = numbers(2, 64).to(torch.bfloat16)
    lowered = lower(
        import_program(FunctionModel(lambda x: x + x), (x,)).module,
        make_context(),
        options={"convert-spyre-kernel-to-superdsc": {"version": version}},
    )
    text = str(lowered.modules["superdsc"])
    assert DL16.name in text and "BFLOAT16" not in text


QUANTISERS: dict[str, Callable[..., Any]] = {
    "activations": lambda x, s: torch.ops.spyre.quantize_fp8_with_scale(x, s).float(),
    "weights": lambda x, s: torch.ops.spyre.qfp8wt(torch.ops.spyre.qfp8ch(x).half() * s).float(),
    "dequantised": lambda x, s: torch.ops.spyre.dequantize_fp8_with_scale(x.to(FP8), s),
    "products": lambda x, s: torch.ops.spyre.scaled_mm(x.to(FP8), x.to(FP8).t(), torch.float16),
}


@pytest.mark.parametrize("name", QUANTISERS)
def test_quantisers_by_their_names(name: str) -> None:
    on_device(QUANTISERS[name], numbers(3, 65).half(), torch.full((3, 1), 0.5).half())
