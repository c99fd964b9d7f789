"""Other sizes of images: which old elements every new one is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import spyre_mlir
from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.composed.nn.resampling import _runs, nearest_places
from tests.unit.ops.evaluation import check_samples, made, result, same, taking_apart


@pytest.mark.parametrize("old", [1, 2, 3, 5, 7, 12])
@pytest.mark.parametrize("new", [1, 2, 3, 4, 6, 9, 14, 21, 36])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_places_are_those_of_torch(old: int, new: int, mode: str) -> None:
    x = torch.arange(float(old)).reshape(1, 1, old)
    expected = functional.interpolate(x, size=new, mode=mode).flatten().tolist()
    assert nearest_places(old, new, None, mode.endswith("exact")) == expected


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


def test_samples_fit() -> None:
    check_samples("spyre_mlir.ops.composed.nn.resampling")
