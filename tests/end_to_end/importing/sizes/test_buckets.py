"""A language model with buckets: programs made ahead, and right for every length up to the largest."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim

import spyre_mlir
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import InputError
from tests.end_to_end.models import llama

BUCKETS = [16, 64]
MODEL, EXAMPLE = llama()
SHAPES = ({1: Dim("length", min=2, max=512)},)


def tokens(length: int) -> torch.Tensor:
    return torch.randint(0, 100, (1, length), generator=torch.Generator().manual_seed(length))


@pytest.fixture(scope="module")
def dynamic() -> DynamicModel:
    made = spyre_mlir.compile(MODEL, EXAMPLE, dynamic_shapes=SHAPES, buckets=BUCKETS, numerics="exact")
    assert isinstance(made, DynamicModel)
    return made


@pytest.mark.parametrize(("length", "programs"), [(2, 2), (17, 2), (65, 3)])
def test_a_causal_model_runs_shorter_inputs_on_a_bucket(length: int, programs: int, dynamic: DynamicModel) -> None:
    expected = MODEL(tokens(length))
    torch.testing.assert_close(dynamic(tokens(length)), expected, rtol=1e-5, atol=1e-5)
    assert len(dynamic.programs) == programs


@pytest.mark.parametrize(
    ("options", "because"),
    [
        ({"buckets": [16]}, "buckets need dynamic shapes"),
        ({"buckets": [16, 600], "dynamic_shapes": SHAPES}, "symbol s0 is 600, expected 2 to 512"),
    ],
)
def test_buckets_that_cannot_be(options: dict[str, object], because: str) -> None:
    with pytest.raises(InputError, match=because):
        spyre_mlir.compile(MODEL, EXAMPLE, **options)


def test_buckets_are_sizes_of_one_symbol() -> None:
    shapes = ({0: Dim("rows", min=2, max=9), 1: Dim("columns", min=2, max=9)},)
    with pytest.raises(InputError, match="buckets are sizes of one symbol, and the program has s0, s1"):
        spyre_mlir.compile(torch.nn.ReLU(), (torch.ones(3, 4),), dynamic_shapes=shapes, buckets=[4])


def test_a_batch_of_images_runs_on_a_bucket() -> None:
    """A convolution counts the pixels of all images together."""
    torch.manual_seed(8)
    convolved = [nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.AdaptiveAvgPool2d(1)]
    model = nn.Sequential(*convolved, nn.Flatten(), nn.Linear(8, 5)).eval()
    images = torch.randn(8, 3, 8, 8)
    shapes = ({0: Dim("batch", min=2, max=16)},)
    dynamic = spyre_mlir.compile(model, (images,), dynamic_shapes=shapes, buckets=[8], numerics="exact")
    assert isinstance(dynamic, DynamicModel)
    for count in (2, 7, 8):
        torch.testing.assert_close(dynamic(images[:count]), model(images[:count]), rtol=1e-5, atol=1e-5)
    assert len(dynamic.programs) == 1
