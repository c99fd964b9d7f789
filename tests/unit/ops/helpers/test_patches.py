"""Patches of a batch of images, which are one image."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.nn import convolution
from spyre_mlir.ops.helpers.patches import below_each_other
from spyre_mlir.ops.value import Value
from spyre_mlir.pipeline import lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.universe import make_context
from tests.unit.ops.cases import result


def numbers(*shape: int) -> torch.Tensor:
    return torch.randint(-4, 5, shape, generator=torch.Generator().manual_seed(1)).half()


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Conv2d(4, 24, 2, 2), (2, 4, 4, 32)),
        (nn.Conv2d(3, 16, (2, 4), (2, 4)), (3, 3, 5, 18)),  # a row and two columns are in no patch
        (nn.Conv3d(3, 8, (2, 4, 4), (2, 4, 4)), (2, 3, 2, 8, 8)),
    ],
    ids=["latents", "rest", "video"],
)
def test_every_level_agrees_with_torch(model: nn.Module, shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    for parameter in model.parameters():
        parameter.data = numbers(*parameter.shape)
    model = model.half().eval()
    compiled = spyre_mlir.compile(model, (x,))
    assert (outcome := compiled.verify(x)), str(outcome)
    assert torch.equal(compiled(x), model(x))


@pytest.mark.parametrize(
    ("channels", "size", "side", "images"),
    [(4, 2, 64, 2), (16, 2, 64, 2), (3, 4, 224, 2), (3, 4, 32, 8)],
    ids=["DiT", "Stable Diffusion 3", "Swin", "CIFAR"],
)
def test_images_take_little_more_than_one_by_one(channels: int, size: int, side: int, images: int) -> None:
    def us(batch: int) -> float:
        layer = nn.Conv2d(channels, 768, size, size).half()
        program = import_program(layer, (torch.zeros(batch, channels, side, side).half(),))
        return module_timeline(lower(program.module, make_context()).modules["superdsc"], "calibrated").total_us

    assert us(images) < 2.5 * images * us(1)


@pytest.mark.parametrize(
    ("facts", "own", "joined"),
    [
        ({"stride": (2, 2)}, 4, True),
        ({"stride": (2, 2), "padding": (1, 0)}, 4, False),  # over the edge of an image
        ({"stride": (1, 2)}, 4, False),
        ({"stride": (2, 2), "groups": 2}, 2, False),
    ],
)
def test_only_patches_are_in_one_image(
    monkeypatch: pytest.MonkeyPatch, facts: dict[str, object], own: int, joined: bool
) -> None:
    asked = list[int]()

    def noted(b: Build, images: Value, height: int) -> Value:
        asked.append(images.shape[0])
        return below_each_other(b, images, height)

    monkeypatch.setattr(convolution, "below_each_other", noted)
    result("conv2d", np.ones((2, 4, 8, 8)), np.ones((6, own, 2, 2)), **facts)
    assert asked == [2] * joined
