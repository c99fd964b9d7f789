"""Other sizes of images: which old elements every new one is made of, and layers unrolled over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from xdsl.dialects.builtin import FloatAttr, StringAttr, f64

import spyre_mlir
from spyre_mlir.dialects.spyre.named_values import ResampleAttr
from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.composed.nn.resampling import _runs, nearest_places, resample, resample_weights
from tests.unit.machine.modules import parse
from tests.unit.ops.evaluation import check_samples, made, result, same, taking_apart


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


def test_taps_of_windows_side_by_side() -> None:
    """Windows of 3 over 7 elements: their first taps, their second ones, and their third ones, 0 behind the last."""
    met = resample_weights((9, 7), "taps", 3.0, 0.0) @ np.arange(1.0, 8.0)
    assert met.tolist() == [1, 4, 7, 2, 5, 0, 3, 6, 0]
    assert (resample_weights((4, 7), "taps", 2.0, 0.0) @ np.arange(1.0, 8.0)).tolist() == [1, 3, 2, 4]


@pytest.mark.parametrize(("distance", "turned"), [(2.0, [-3, -4, 1, 2]), (1.0, [-2, 1, -4, 3])])
def test_turned_elements(distance: float, turned: list[int]) -> None:
    assert (resample_weights((4, 4), "turned", distance, 0.0) @ np.arange(1.0, 5.0)).tolist() == turned


def test_elements_behind_the_last_pair_are_zero() -> None:
    assert (resample_weights((6, 6), "turned", 2.0, 0.0) @ np.arange(1.0, 7.0)).tolist() == [-3, -4, 1, 2, 0, 0]


@pytest.mark.parametrize(("size", "distance"), [((4, 8), 2.0), ((6, 6), 4.0)])
def test_turned_elements_are_a_pair_at_least(size: tuple[int, int], distance: float) -> None:
    with pytest.raises(ConstraintError, match="C4: turned"):
        resample.meaning(size=size, mode="turned", scale=distance, offset=0.0)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConstraintError, match="C2: mode"):
        resample.meaning(size=(2, 2), mode="wavy", scale=1.0, offset=0.0)


@pytest.mark.parametrize(("scale", "offset"), [(2.5, 0.0), (0.5, 0.0), (2.0, 1.0)])
def test_taps_begin_at_the_first_element_and_are_whole(scale: float, offset: float) -> None:
    with pytest.raises(ConstraintError, match="C3: taps"):
        resample.meaning(size=(4, 7), mode="taps", scale=scale, offset=offset)


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


@pytest.mark.parametrize("size", [(4, 4), (9, 5), (6, 7)])
@pytest.mark.parametrize("smoothed", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_bytes_are_rounded_and_kept_in_range_after_every_dimension(
    mode: str, smoothed: bool, size: tuple[int, int]
) -> None:
    """Bit for bit as torch has them; black beside white lets cubic curves leave the range of bytes."""

    class Resized(nn.Module):
        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return functional.interpolate(image, size, mode=mode, antialias=smoothed)

    images = torch.randint(0, 256, (2, 3, 6, 7), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    images[1] = (images[1] > 127) * 255
    compiled = spyre_mlir.compile(Resized(), (images,), numerics="exact")
    assert torch.equal(compiled(images), Resized()(images))


@pytest.mark.parametrize("mode", ["linear", "cubic", "linear_smoothed", "cubic_smoothed"])
def test_weights_in_fixed_point_have_sixteen_bits_with_their_sign(mode: str) -> None:
    wide, fixed = (resample_weights((4, 6), mode + kind, 1.3, 0.17) for kind in ("", "_fixed"))
    bits = next(n for n in range(30) if (fixed * 2**n == np.round(fixed * 2**n)).all())
    assert (fixed * 2**bits).max() * 2 >= 2**14 and (fixed * 2**bits).max() < 2**15
    np.testing.assert_allclose(fixed, wide, rtol=0, atol=2.0 ** -(bits + 1))


def test_layers_in_training_without_dropout_draw_no_random_numbers() -> None:
    x = torch.rand(2, 1, 3)
    spyre_mlir.compile(nn.RNN(3, 4), (x,), numerics="exact").verify(x)


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


LINE, IMAGE, CUBE = (2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 2, 4)
UPSAMPLED: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    ("upsample_nearest1d", LINE, {"output_size": (8,), "scales": 1.7}),
    ("upsample_nearest1d", LINE, {"output_size": (7,)}),
    ("upsample_nearest2d", IMAGE, {"output_size": (3, 9), "scales_h": 0.8}),
    ("upsample_nearest3d", CUBE, {"output_size": (5, 3, 6), "scales_d": 1.7, "scales_h": 1.6, "scales_w": 1.5}),
    # Factors that do not make the new size of the old one: each kind has a rule of its own.
    ("upsample_nearest1d", LINE, {"output_size": (5,), "scales": 1.3}),
    ("upsample_nearest3d", CUBE, {"output_size": (2, 3, 4), "scales_d": 1.4, "scales_h": 1.3, "scales_w": 1.2}),
    ("_upsample_nearest_exact2d", IMAGE, {"output_size": (4, 10), "scales_h": 1.24, "scales_w": 2.1}),
    ("upsample_trilinear3d", CUBE, {"output_size": (2, 6, 4), "align_corners": False, "scales_d": 1.4}),
    ("upsample_bicubic2d", IMAGE, {"output_size": (4, 5), "align_corners": False, "scales_h": 1.2}),
    ("_upsample_bicubic2d_aa", IMAGE, {"output_size": (4, 10), "align_corners": False, "scales_h": 1.2}),
    ("upsample_nearest2d.vec", IMAGE, {"output_size": None, "scale_factors": (1.5, 0.5)}),
    ("_upsample_nearest_exact1d", LINE, {"output_size": (8,), "scales": 1.7}),
    ("_upsample_nearest_exact2d", IMAGE, {"output_size": (3, 7)}),
    ("_upsample_nearest_exact1d.vec", LINE, {"output_size": None, "scale_factors": (2.0,)}),
    ("upsample_linear1d", LINE, {"output_size": (8,), "align_corners": False, "scales": 1.7}),
    ("upsample_linear1d", LINE, {"output_size": (1,), "align_corners": True}),
    ("upsample_bilinear2d", IMAGE, {"output_size": (7, 3), "align_corners": True}),
    ("upsample_bilinear2d", IMAGE, {"output_size": (4, 8), "align_corners": False, "scales_h": 1.6}),
    ("upsample_trilinear3d", CUBE, {"output_size": (2, 4, 1), "align_corners": True}),
    ("upsample_bicubic2d", IMAGE, {"output_size": (6, 8), "align_corners": False, "scales_w": 1.7}),
    ("upsample_bicubic2d.vec", IMAGE, {"output_size": None, "align_corners": True, "scale_factors": (2.0, 1.5)}),
    ("_upsample_bilinear2d_aa", IMAGE, {"output_size": (2, 8), "align_corners": False}),
    ("_upsample_bicubic2d_aa", IMAGE, {"output_size": (3, 2), "align_corners": False}),
]


@pytest.mark.parametrize(("overload", "shape", "attributes"), UPSAMPLED)
def test_an_image_is_resampled_as_by_torch(overload: str, shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    x = torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    name, _, kind = overload.partition(".")
    wanted = getattr(getattr(torch.ops.aten, name), kind or "default")(x, **attributes)
    same(result(overload, x.numpy(), **attributes), wanted.numpy(), rtol=1e-6, atol=1e-6)


def test_an_image_of_its_size_stays() -> None:
    x = np.zeros((1, 1, 4))
    for overload, more in (("upsample_linear1d", {"align_corners": False}), ("upsample_nearest1d", {})):
        assert made(taking_apart(overload, output_size=(4,), **more), x) == []


def test_a_doubled_image_repeats_its_elements_without_slices() -> None:
    called = made(taking_apart("upsample_nearest1d", output_size=(8,)), np.zeros((1, 1, 4)))
    assert "cat" not in called and "expand" in called


@pytest.mark.parametrize("overload", ["upsample_linear1d", "upsample_nearest1d"])
def test_a_size_of_nothing_is_refused(overload: str) -> None:
    more = {"align_corners": True} if "linear" in overload else {}
    with pytest.raises(ConstraintError, match="C1: a size of 0"):
        made(taking_apart(overload, output_size=(0,), **more), np.zeros((1, 1, 4)))


@pytest.mark.parametrize(
    ("places", "runs"),
    [
        ([0, 1, 2], [(0, 1, 3)]),
        ([0, 2, 4, 5], [(0, 2, 3), (5, 1, 1)]),
        ([0, 0, 0, 1, 2, 4], [(0, 0, 3), (1, 1, 2), (4, 1, 1)]),
        ([3], [(3, 1, 1)]),
    ],
)
def test_places_in_runs(places: list[int], runs: list[tuple[int, int, int]]) -> None:
    assert _runs(places) == runs


def test_nearest_weights_choose_one_element_each() -> None:
    """Places 0.5, 2 and 3.5 of three elements: the first, the last, and what is beyond the last."""
    assert resample_weights((3, 3), "nearest", 1.5, 0.5).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


def test_samples_fit() -> None:
    check_samples("spyre_mlir.ops.composed.nn.resampling")
