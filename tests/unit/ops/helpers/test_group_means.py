"""Means of groups of channels, and the layouts that they leave to images between convolutions."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import RestickifyOp
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.group_means import for_channels, gains_by_channels, group_means
from spyre_mlir.ops.value import Value
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.unit.ops.evaluation import run, same

FREE = {"place-inputs": {"inputs": "free"}}
IMAGE = np.arange(24.0).reshape(1, 4, 3, 2)  # channels of 0 to 5, 6 to 11, 12 to 17, 18 to 23


def test_means_of_groups_and_of_the_group_of_each_channel() -> None:
    def both(b: Build, image: Value) -> tuple[Value, Value]:
        mean = group_means(b, image, 2)
        return mean, for_channels(mean, image)

    mean, each = run(both, IMAGE)
    same(mean, np.array([[[5.5], [17.5]]]))
    same(each, np.array([5.5, 5.5, 17.5, 17.5]).reshape(1, 4, 1, 1))


@pytest.mark.parametrize(
    ("shape", "groups", "gains"),
    [
        ((1, 64, 2), 32, True),
        ((1, 64, 2, 2, 2), 1, True),
        ((1, 62, 2), 2, False),
        ((2, 64, 2), 2, False),
        ((1, 64, 2), 64, False),
        ((1, 64), 2, False),
    ],
)
def test_channels_of_one_image_that_fill_the_lanes(shape: tuple[int, ...], groups: int, gains: bool) -> None:
    asked = list[bool]()

    def ask(_: Build, image: Value) -> Value:
        asked.append(gains_by_channels(image, groups))
        return image

    run(ask, np.zeros(shape))
    assert set(asked) == {gains}


def test_groups_between_convolutions_are_not_laid_out_again() -> None:
    """Channels stay in the lanes; only means, which are short, are laid out again."""
    torch.manual_seed(4)
    model = nn.Sequential(nn.Conv2d(64, 64, 1), nn.GroupNorm(8, 64), nn.SiLU(), nn.Conv2d(64, 64, 1)).eval()
    image = torch.randn(1, 64, 8, 64)
    modules = lower(import_program(model, (image,)).module, make_context(), options=FREE).modules
    moved = [op for op in modules["spyre.kernel"].walk() if isinstance(op, RestickifyOp)]
    assert not [op for op in moved if prod(op.tensors[0].shape) >= image.numel()]
    assert (outcome := spyre_mlir.compile(model, (image,)).verify(image)), str(outcome)
