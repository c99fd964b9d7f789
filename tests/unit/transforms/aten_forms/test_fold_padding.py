"""Pass `fold-padding`: which zeros become the padding of a convolution, and that numbers stay torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as PyTorch's own pages call it

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.aten_forms.fold_padding import FoldPaddingPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

IMAGE = torch.randn(1, 4, 6, 7, generator=torch.Generator().manual_seed(1)).half()
WEIGHT = torch.randn(4, 1, 3, 3, generator=torch.Generator().manual_seed(2)).half()
Function = Callable[[Tensor, Tensor], Any]


def padded(*pad: int, value: float = 0.0, **given: Any) -> Function:
    return lambda x, w: F.conv2d(F.pad(x, pad, value=value), w, groups=4, **given)


def read_twice(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    wide = F.pad(x, (1, 1, 1, 1))
    return F.conv2d(wide, w, groups=4), wide.relu()


def transposed(x: Tensor, w: Tensor) -> Tensor:
    return F.conv_transpose2d(F.pad(x, (1, 1)), w)


FOLDED: dict[str, tuple[Function, str, dict[str, Any]]] = {
    "evenly": (padded(1, 1, 2, 2), "conv2d", {"padding": (2, 1)}),
    "columns alone": (padded(1, 1, stride=2), "conv2d", {"padding": (0, 1)}),
    "behind": (padded(0, 1, 0, 1, stride=2), "spyre::convolve_padded", {"before": (0, 0), "behind": (1, 1)}),
    "and padding of its own": (padded(0, 1, padding=1), "spyre::convolve_padded", {"before": (1, 1), "behind": (1, 2)}),
    "none": (padded(0, 0, 0, 0), "conv2d", {"padding": (0, 0)}),
    "valid": (padded(1, 1, 1, 1, padding="valid"), "conv2d", {"padding": (1, 1)}),
}
KEPT: dict[str, Function] = {
    "another number": padded(1, 1, value=0.5),
    "a negative number": padded(-1, 1),
    "around channels": lambda x, w: F.conv2d(F.pad(x[:, :2], (1, 1, 1, 1, 1, 1)), w, groups=4),
    "read twice": read_twice,
    "same": padded(1, 1, padding="same"),
    "transposed": transposed,
}


def folded(function: Function) -> list[AtenOp]:
    """The padding and the convolutions behind the pass."""
    module = import_program(FunctionModel(function), (IMAGE, WEIGHT)).module
    FoldPaddingPass().apply(make_context(), module)
    module.verify()
    return [op for op in module.walk() if isinstance(op, AtenOp) and ("conv" in op.overload or "pad" in op.overload)]


@pytest.mark.parametrize("name", FOLDED)
def test_zeros_become_padding(name: str) -> None:
    function, overload, wanted = FOLDED[name]
    (op,) = folded(function)
    said = op.arguments()
    assert op.overload == overload
    assert {key: tuple(said[key]) for key in wanted} == wanted


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_padding_of_the_convolution_stays(name: str) -> None:
    assert "constant_pad_nd" in [op.overload for op in folded(KEPT[name])]


@pytest.mark.parametrize("name", ["behind", "and padding of its own"])
def test_every_level_agrees_with_torch(name: str) -> None:
    compiled = spyre_mlir.compile(FunctionModel(FOLDED[name][0]), (IMAGE, WEIGHT), cache=False)
    assert (outcome := compiled.verify(IMAGE, WEIGHT)), str(outcome)


def test_the_place_in_the_model_is_kept() -> None:
    class Padded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(4, 4, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.convolution(F.pad(x, (0, 1)))

    module = import_program(Padded().half(), (IMAGE,)).module
    before = next(op for op in module.walk() if isinstance(op, AtenOp) and op.overload == "conv2d").location
    FoldPaddingPass().apply(make_context(), module)
    (op,) = (op for op in module.walk() if isinstance(op, AtenOp) and "conv" in op.overload)
    assert op.location == before
