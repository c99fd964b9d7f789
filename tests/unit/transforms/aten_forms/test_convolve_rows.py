"""Pass `convolve-rows`: which convolutions keep columns of images in the lanes, and what that takes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as PyTorch's own pages call it

import spyre_mlir
from spyre_mlir.choices import InputLayouts
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.kernel import RestickifyOp
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.composed.nn.row_convolution import CONVOLVE_ROWS
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.aten_forms.convolve_rows import ConvolveRowsPass
from spyre_mlir.transforms.buffer_layouts.place_inputs import PlaceInputsPass
from spyre_mlir.universe import make_context


def numbers(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def convolution(channels: int, outputs: int, kernel: int, **options: Any) -> nn.Conv2d:
    given: dict[str, Any] = {"padding": kernel // 2} | options
    made = nn.Conv2d(channels, outputs, kernel, **given)
    made.weight.data = numbers(*made.weight.shape) / made.weight[0].numel() ** 0.5
    return made


class Block(nn.Module):
    """A residual block of three convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = (convolution(*c) for c in ((20, 16, 1), (16, 16, 3), (16, 20, 1)))

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.second(F.relu(self.first(x))))
        return F.relu(self.third(y) + x)


class Read(nn.Module):
    """A convolution whose result is summed over the image."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = convolution(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x).sum((2, 3))


class Joined(nn.Module):
    """A convolution of groups, and many functions behind it that read each other twice."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = convolution(16, 16, 3, groups=2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.convolution(x)
        for _ in range(60):
            y = torch.abs(y) + y
        return y


def rewritten(model: nn.Module, x: Tensor, inputs: InputLayouts) -> int:
    """How many convolutions a pass behind `place-inputs` rewrites."""
    module = import_program(model, (x,)).module
    PlaceInputsPass(inputs).apply(make_context(), module)
    ConvolveRowsPass().apply(make_context(), module)
    module.verify()
    return sum(isinstance(op, AtenOp) and op.overload == CONVOLVE_ROWS for op in module.walk())


GROUPED = convolution(8, 8, 3, groups=2)
ALONE = convolution(8, 8, 3, groups=8, stride=(1, 2), dilation=(2, 1))
APART: dict[str, Any] = {"stride": 14, "padding": 0}
PATCHES = convolution(3, 256, 14, **APART)
CASES = {
    "a residual block": (Block(), (1, 20, 6, 56), 3, 0),
    "groups": (GROUPED, (1, 8, 6, 56), 1, 1),
    "rows that leave half of the lanes empty": (Block(), (1, 20, 6, 32), 0, 0),
    "results that leave lanes empty": (convolution(3, 4, 19, padding=0), (1, 3, 20, 64), 0, 0),
    "steps": (convolution(3, 4, 3, stride=2), (1, 3, 6, 112), 0, 0),
    "gaps": (convolution(3, 4, 3, dilation=2), (1, 3, 6, 56), 0, 0),
    "channels by themselves": (convolution(8, 8, 3, groups=8), (1, 8, 6, 56), 1, 1),
    "channels by themselves, normalised": (nn.Sequential(ALONE, nn.BatchNorm2d(8).eval()), (1, 8, 6, 56), 1, 1),
    "channels by themselves before a product": (nn.Sequential(ALONE, convolution(8, 4, 1)), (1, 8, 6, 56), 0, 0),
    "channels by themselves in short rows": (ALONE, (1, 8, 6, 32), 0, 0),
    "a result that a sum reads": (Read(), (1, 3, 6, 56), 0, 0),
    "patches": (PATCHES, (1, 3, 112, 392), 1, 0),
    # 8 of 64 lanes have columns, and each of them sums over 3,072 elements: laying out takes less than that.
    "patches of which a row has few": (convolution(3, 256, 32, stride=32, padding=0), (1, 3, 256, 256), 0, 0),
    "patches with zeros around": (convolution(3, 256, 14, stride=14, padding=1), (1, 3, 112, 392), 0, 0),
    "patches with gaps": (convolution(3, 256, 7, stride=7, padding=0, dilation=2), (1, 3, 112, 392), 0, 0),
    "patches without room for copies of the weight": (convolution(3, 1152, 14, **APART), (1, 3, 784, 392), 0, 0),
    "a weight without room for its copies": (convolution(256, 512, 3), (1, 256, 64, 64), 0, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_convolutions_between_images_with_full_rows(name: str) -> None:
    model, shape, placed, free = CASES[name]
    assert rewritten(model, torch.zeros(shape), "default") == placed
    assert rewritten(model, torch.zeros(shape), "free") == free


@pytest.mark.parametrize("name", ["a residual block", "groups", "patches"])
def test_nothing_is_laid_out_again_and_the_numbers_agree(name: str) -> None:
    model, shape, *_ = CASES[name]
    x = numbers(2, *shape[1:])
    compiled = spyre_mlir.compile(model, (x,), inputs="default", cache=False)
    assert "spyre.kernel.restickify" not in compiled.mlir("spyre.kernel")
    assert isinstance(compiled, CompiledModel)
    assert compiled.report().layouts == ()
    assert compiled.verify(x)


def test_the_usual_form_lays_out_again() -> None:
    """Which is what the pass is for: the same block without it."""
    module = import_program(Block(), (torch.zeros(1, 20, 6, 32),)).module
    kernels = lower(module, make_context(), options={"place-inputs": {"inputs": "default"}}).modules["spyre.kernel"]
    assert any(isinstance(op, RestickifyOp) for op in kernels.walk())


def test_images_that_meet_again_and_again_are_looked_at_once() -> None:
    """There are 2 ** 60 ways from the convolution to the result."""
    assert rewritten(Joined(), numbers(1, 16, 56, 56), "free") == 1
