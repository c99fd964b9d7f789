"""Pass `order-channels`: which convolutions order their channels, and that the numbers stay torch's."""

from __future__ import annotations

from collections.abc import Callable

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
from spyre_mlir.transforms.aten_forms.order_channels import OrderChannelsPass
from spyre_mlir.universe import make_context


class Convolved(nn.Module):
    """What lies in front of a convolution, the convolution, and what lies behind it."""

    def __init__(
        self,
        channels: int,
        outputs: int,
        before: Callable[[Tensor], Tensor] = lambda x: x,
        behind: Callable[[Tensor], Tensor] = lambda x: x,
        groups: int = 1,
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convolution = nn.Conv2d(channels, outputs, 3, padding=1, groups=groups)
        self.before, self.behind = before, behind

    @override
    def forward(self, x: Tensor) -> Tensor:
        return self.behind(self.convolution(self.before(x)))


def shuffled(x: Tensor) -> Tensor:
    return F.pixel_shuffle(x, 2)


def unshuffled(x: Tensor) -> Tensor:
    return F.pixel_unshuffle(x, 2)


def activated(x: Tensor) -> Tensor:
    return F.pixel_shuffle(F.relu(x), 2).sigmoid()


def columns_alone(x: Tensor) -> Tensor:
    """Each pixel becomes three of its row."""
    return x.unflatten(1, (64, 3)).permute(0, 1, 3, 4, 2).flatten(3)


def read_twice(x: Tensor) -> Tensor:
    return F.pixel_shuffle(x, 2) + x.mean()


def image(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


ORDERED = {
    "shuffle": (Convolved(3, 256, behind=shuffled), image(1, 3, 4, 4)),
    "images": (Convolved(3, 256, behind=activated), image(2, 3, 5, 3)),
    "columns": (Convolved(3, 192, behind=columns_alone), image(2, 3, 2, 5)),
    "reverse": (Convolved(256, 5, before=unshuffled), image(1, 64, 8, 8)),
    "reverse of images": (Convolved(256, 70, before=unshuffled), image(2, 64, 6, 10)),
}


def weights(model: nn.Module, x: Tensor) -> list[str]:
    """The overloads of what makes the weights of convolutions behind the pass; none for a weight as it is."""
    module = import_program(model.eval(), (x,)).module
    OrderChannelsPass().apply(make_context(), module)
    module.verify()
    ops = [op for op in module.walk() if isinstance(op, AtenOp) and op.overload == "conv2d"]
    return [op.operands[1].owner.overload for op in ops if isinstance(op.operands[1].owner, AtenOp)]


@pytest.mark.parametrize(("model", "x"), ORDERED.values(), ids=ORDERED)
def test_weights_are_ordered(model: nn.Module, x: Tensor) -> None:
    assert weights(model, x) == ["view"]


@pytest.mark.parametrize(("model", "x"), ORDERED.values(), ids=ORDERED)
def test_every_level_agrees_with_torch(model: nn.Module, x: Tensor) -> None:
    assert spyre_mlir.compile(model.eval(), (x,), cache=False).verify(x)


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (Convolved(3, 48, behind=shuffled), image(1, 3, 4, 4)),
        (Convolved(3, 256, behind=read_twice), image(1, 3, 4, 4)),
        (Convolved(4, 256, behind=shuffled, groups=4), image(1, 4, 4, 4)),
        (Convolved(48, 5, before=unshuffled), image(1, 12, 8, 8)),
        (Convolved(3, 128, behind=lambda x: x.unflatten(1, (64, 2)).flip(2)), image(1, 3, 4, 4)),
    ],
    ids=["few channels", "another reader", "groups", "few channels of places", "parts that stay"],
)
def test_other_weights_stay(model: nn.Module, x: Tensor) -> None:
    assert weights(model, x) == []


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (Convolved(64, 256, behind=shuffled), image(1, 64, 32, 32)),
        (Convolved(256, 64, before=unshuffled), image(1, 64, 64, 64)),
    ],
    ids=["shuffle", "reverse"],
)
def test_it_takes_two_thirds_of_the_time(model: nn.Module, x: Tensor) -> None:
    module = import_program(model.half(), (x.half(),)).module

    def us(**options: object) -> float:
        modules = lower(module, make_context(), options=options).modules  # type: ignore[arg-type]
        return module_timeline(modules["superdsc"], "calibrated").total_us

    assert us() < 2 / 3 * us(**{"order-channels": OFF})
