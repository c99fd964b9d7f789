"""Other sizes of images: which old elements every new one is made of, and layers unrolled over time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from xdsl.dialects.builtin import FloatAttr, StringAttr, f64

import spyre_mlir
from spyre_mlir.dialects.spyre.attributes import ResampleAttr
from spyre_mlir.errors import ConstraintError, UnsupportedError
from spyre_mlir.ops.composed.nn.resampling import nearest_places, resample, resample_weights
from tests.unit.machine.modules import parse


@pytest.mark.parametrize("old", [1, 2, 3, 5, 7, 12])
@pytest.mark.parametrize("new", [1, 2, 3, 4, 6, 9, 14, 21, 36])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_places_are_those_of_torch(old: int, new: int, mode: str) -> None:
    x = torch.arange(float(old)).reshape(1, 1, old)
    expected = functional.interpolate(x, size=new, mode=mode).flatten().tolist()
    assert nearest_places(old, new, None, mode.endswith("exact")) == expected


@pytest.mark.parametrize(("mode", "torchs"), [("linear", "bilinear"), ("cubic", "bicubic")])
@pytest.mark.parametrize("smoothed", [False, True])
def test_weights_are_what_torch_makes_of_unit_vectors(mode: str, torchs: str, smoothed: bool) -> None:
    x = torch.eye(6, dtype=torch.float64).reshape(6, 1, 6, 1).repeat(1, 1, 1, 2)
    expected = functional.interpolate(x, size=(4, 2), mode=torchs, antialias=smoothed)[:, 0, :, 0].T.numpy()
    got = resample_weights((4, 6), mode + "_smoothed" * smoothed, 1.5, 0.25)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConstraintError, match="C2: mode"):
        resample.meaning(size=(2, 2), mode="wavy", scale=1.0, offset=0.0)


def test_the_matrix_is_one_line_of_text() -> None:
    text = """
        func.func @main() -> tensor<2x4xf32> {
          %0 = spyre.loop.constant #spyre.resample<"linear", 2.0, 0.5> : tensor<2x4xf32>
          func.return %0 : tensor<2x4xf32>
        }"""
    module = parse(text)
    constant = next(op for op in module.walk() if op.name == "spyre.loop.constant")
    wanted = ResampleAttr(StringAttr("linear"), FloatAttr(2.0, f64), FloatAttr(0.5, f64))
    assert constant.properties["value"] == wanted
    assert '#spyre.resample<"linear", 2.0, 0.5>' in str(module)


def test_many_pieces_of_a_nearest_choice_become_a_product() -> None:
    x = torch.rand(1, 2, 99)
    model = nn.Upsample(size=259)
    compiled = spyre_mlir.compile(model, (x,), numerics="exact")
    assert torch.equal(compiled(x), model(x))
    assert "batchmatmul" in compiled.mlir("spyre.kernel")


def test_layers_in_training_without_dropout_draw_no_random_numbers() -> None:
    x = torch.rand(2, 1, 3)
    spyre_mlir.compile(nn.RNN(3, 4), (x,), numerics="exact").verify(x)


def test_dropout_between_layers_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="random numbers"):
        spyre_mlir.compile(nn.RNN(3, 4, 2, dropout=0.5), (torch.rand(2, 1, 3),))


def test_a_step_more_costs_the_same_whatever_the_number_of_steps() -> None:
    counts: list[int] = []
    for steps in (2, 3, 4):
        compiled = spyre_mlir.compile(nn.LSTM(64, 64).eval(), (torch.rand(steps, 1, 64),), numerics="exact")
        text = compiled.mlir("spyre.kernel")
        counts.append(text.count("spyre.kernel.compute") + text.count("spyre.kernel.restickify"))
    assert counts[2] - counts[1] == counts[1] - counts[0] <= 12


def test_places_near_the_middle_of_a_grid_are_fine() -> None:
    """Counted from the end, places near 32 would be rounded to multiples of 1/32."""

    class Sampled(nn.Module):
        def forward(self, image: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
            return functional.grid_sample(image, grid, align_corners=False)

    image = (torch.arange(64) % 2).float().expand(1, 1, 1, 64).contiguous()
    grid = torch.stack([torch.linspace(-0.03, 0.03, 16), torch.zeros(16)], -1)[None, None].half().float()
    got = spyre_mlir.compile(Sampled(), (image, grid))(image, grid)
    assert (got - Sampled()(image, grid)).abs().max() < 2e-3
