"""Pass `join-places`: which convolutions of 1 x 1 become products of joined places, and that numbers stay torch's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 # as PyTorch's own pages call it
from typing_extensions import override

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import OFF, lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.aten_forms.join_places import JoinPlacesPass
from spyre_mlir.universe import make_context


class Attention(nn.Module):
    """Heads of an image, from one convolution to another."""

    def __init__(self, channels: int = 24, heads: int = 2, *, bias: bool = True, stride: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.heads = heads
        self.first = nn.Conv2d(channels, 3 * channels, 1, bias=bias, stride=stride)
        self.last = nn.Conv2d(channels, channels, 1, bias=bias)

    @override
    def forward(self, x: Tensor) -> Tensor:
        y = self.parted(self.first(x))
        q, k, v = y.unflatten(1, (3, self.heads, -1)).flatten(4).unbind(1)
        return self.last(self.met(q, k, v).flatten(1, 2).unflatten(-1, y.shape[2:]))

    def parted(self, y: Tensor) -> Tensor:
        return y

    def met(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return ((q.transpose(-2, -1) @ k).softmax(-1) @ v.transpose(-2, -1)).transpose(-2, -1)


class Linear(Attention):
    """Attention without scores of two places."""

    @override
    def met(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (v @ k.softmax(-1).transpose(-2, -1)) @ q.softmax(-2)


class Chunks(Attention):
    """Channels are taken apart before they are heads, behind a normalisation and a function."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(72)

    @override
    def forward(self, x: Tensor) -> Tensor:
        parts = F.relu(self.norm(self.first(x))).chunk(3, 1)
        q, k, v = (part.reshape(x.shape[0], self.heads, -1, x[0, 0].numel()) for part in parts)
        return self.last(self.met(q, k, v).reshape(x.shape))


class Slices(Attention):
    """Queries and keys are some channels of heads of whole sticks, as in YOLO."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(24, 128, 1)
        self.last = nn.Conv2d(64, 8, 1)

    @override
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.first(x).flatten(2).unflatten(1, (2, 64)).split([16, 16, 32], 2)
        return self.last(self.met(q, k, v).reshape(x.shape[0], 64, *x.shape[2:]))


class Whole(Attention):
    """Another reader takes the image as it is."""

    @override
    def parted(self, y: Tensor) -> Tensor:
        return y - y.mean((2, 3), keepdim=True)


def image(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


def behind_pass(model: nn.Module, x: Tensor) -> list[str]:
    """The overloads behind the pass."""
    module = import_program(model.eval(), (x,)).module
    JoinPlacesPass().apply(make_context(), module)
    module.verify()
    return [op.overload for op in module.walk() if isinstance(op, AtenOp)]


JOINED = {
    "attention": (Attention(), image(1, 24, 4, 4)),
    "batches": (Attention(bias=False), image(2, 24, 3, 7)),
    "linear": (Linear(16, 2), image(2, 16, 5, 16)),
    "chunks": (Chunks(), image(2, 24, 4, 5)),
    "slices": (Slices(), image(1, 24, 4, 4)),
}


@pytest.mark.parametrize(("model", "x"), JOINED.values(), ids=JOINED)
def test_convolutions_around_heads_become_products(model: nn.Module, x: Tensor) -> None:
    assert not [name for name in behind_pass(model, x) if "conv" in name]


@pytest.mark.parametrize(("model", "x"), JOINED.values(), ids=JOINED)
def test_every_level_agrees_with_torch(model: nn.Module, x: Tensor) -> None:
    assert spyre_mlir.compile(model.eval(), (x,), cache=False).verify(x)


@pytest.mark.parametrize(
    ("model", "x", "left"),
    [
        (Attention(256, 2), image(1, 256, 4, 4), 2),
        (Whole(), image(1, 24, 6, 6), 1),
        (Attention(stride=2), image(1, 24, 6, 6), 1),
    ],
    ids=["whole sticks", "read whole", "steps"],
)
def test_other_convolutions_stay(model: nn.Module, x: Tensor, left: int) -> None:
    assert len([name for name in behind_pass(model, x) if "conv" in name]) == left


def test_it_takes_a_third_of_the_time() -> None:
    module = import_program(Linear(64, 2).half(), (image(1, 64, 16, 16).half(),)).module

    def us(**options: object) -> float:
        modules = lower(module.clone(), make_context(), options=options).modules
        return module_timeline(modules["superdsc"], "calibrated").total_us

    assert 3 * us() < us(**{"join-places": OFF})
