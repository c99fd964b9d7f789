"""Products of patches that models move out of images by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import OFF, lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.aten_forms.convolve_patches import ConvolvePatchesPass
from spyre_mlir.universe import make_context

Taken = Callable[[Tensor], Tensor]


class Embedded(nn.Module):
    """A product of patches."""

    def __init__(self, columns: int, taken: Taken, outputs: int = 24, bias: bool = True) -> None:
        super().__init__()
        self.taken, self.layer = taken, nn.Linear(columns, outputs, bias)
        for parameter in self.parameters():
            parameter.data = numbers(*parameter.shape)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.taken(x))


def numbers(*shape: int) -> Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(3)).float()


def taps_first(x: Tensor, p: int = 4) -> Tensor:
    """Rows, columns and channels of a patch, as einops spells it."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).reshape(n, -1, p * p * c)


def channels_first(x: Tensor, p: int = 4) -> Tensor:
    """Places stay two dimensions, the second one outside."""
    n, c, h, w = x.shape
    return x.view(n, c, h // p, p, w // p, p).permute(0, 4, 2, 1, 5, 3).flatten(3)


def by_unfold(x: Tensor) -> Tensor:
    """Windows that overlap along rows."""
    return x.unfold(2, 4, 2).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def by_columns(x: Tensor) -> Tensor:
    """Windows with padding and gaps."""
    return functional.unfold(x, (3, 2), dilation=(1, 2), padding=1, stride=2).transpose(1, 2)


def channels_last(x: Tensor) -> Tensor:
    n, h, w, c = x.shape
    return x.view(n, h // 4, 4, w // 4, 4, c).transpose(2, 3).reshape(-1, 16 * c)


def of_a_video(x: Tensor) -> Tensor:
    return x.view(2, 3, 2, 2, 2, 4, 2, 4).permute(0, 2, 4, 6, 3, 5, 7, 1).reshape(2, 8, 96)


def of_signals(x: Tensor) -> Tensor:
    """Each channel is a signal of its own, in frames that overlap."""
    return x.unfold(-1, 66, 40)


def of_one_signal(x: Tensor) -> Tensor:
    return x.view(2, 3, 6, 4).transpose(1, 2).flatten(2)


FORMS = {
    "taps first": (Embedded(48, taps_first), (2, 3, 8, 12)),
    "channels first": (Embedded(48, channels_first, bias=False), (2, 3, 8, 12)),
    "one image": (Embedded(16, taps_first), (1, 1, 8, 12)),
    "unfold": (Embedded(48, by_unfold), (2, 3, 9, 12)),
    "columns": (Embedded(18, by_columns), (2, 3, 7, 8)),
    "channels last": (Embedded(48, channels_last), (2, 8, 12, 3)),
    "video": (Embedded(96, of_a_video), (2, 3, 4, 8, 8)),
    "signals": (Embedded(66, of_signals), (1, 2, 146)),
    "one signal": (Embedded(12, of_one_signal), (2, 3, 24)),
}


def overloads(model: nn.Module, x: Tensor) -> list[str]:
    """The operators behind the pass."""
    module = import_program(model.eval(), (x,)).module
    ConvolvePatchesPass().apply(make_context(), module)
    module.verify()
    return [op.overload for op in module.walk() if isinstance(op, AtenOp)]


@pytest.mark.parametrize(("model", "shape"), FORMS.values(), ids=FORMS)
def test_every_level_agrees_with_torch(model: nn.Module, shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    assert any(name.startswith("conv") for name in overloads(model, x))
    compiled = spyre_mlir.compile(model, (x,))
    assert (outcome := compiled.verify(x)), str(outcome)
    assert torch.equal(compiled(x), model(x))


def halves(x: Tensor) -> Tensor:
    """The two halves of a patch, each by itself."""
    return taps_first(x).unflatten(2, (2, 24))


def heads(x: Tensor) -> Tensor:
    """Columns of heads, which are parts of one axis."""
    return x.view(2, 5, 3, 16).transpose(1, 2)


def merged_heads(x: Tensor) -> Tensor:
    """Heads of two sequences, which a product by batches has made, beside each other."""
    return x.view(2, 4, 16, 8).permute(0, 2, 1, 3).reshape(2, 16, 32)


def neighbours(x: Tensor) -> Tensor:
    """Neighbouring rows lie beside each other."""
    return x.view(2, 4, 2 * 48)


def summed_over_places(x: Tensor) -> Tensor:
    """Places of rows are summed over, as a mixer does."""
    return x.view(2, 3, 2, 4, 12).permute(0, 1, 3, 4, 2)


def two_channels(x: Tensor) -> Tensor:
    """Of an image and another axis both are summed over."""
    return x.view(2, 3, 5, 4, 2).permute(0, 3, 1, 2, 4).flatten(2)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (Embedded(24, halves), (2, 3, 8, 12)),
        (Embedded(16, heads), (2, 5, 48)),
        (Embedded(32, merged_heads), (8, 16, 8)),
        (Embedded(96, neighbours), (2, 8, 48)),
        (Embedded(2, summed_over_places), (2, 3, 8, 12)),
        (Embedded(30, two_channels), (2, 3, 5, 8)),
        (Embedded(1024, taps_first), (2, 64, 8, 8)),  # channels are whole sticks
        (Embedded(12, lambda x: x), (2, 12)),
        (nn.Sequential(nn.Flatten(), nn.Linear(96, 8)), (2, 3, 4, 8)),
    ],
    ids=["halves", "heads", "merged heads", "neighbours", "places", "channels", "sticks", "rows", "flat"],
)
def test_other_products_stay(model: nn.Module, shape: tuple[int, ...]) -> None:
    x = numbers(*shape)
    assert not any(name.startswith("conv") for name in overloads(model, x))


def test_a_weight_that_a_call_gives_stays() -> None:
    class Given(nn.Module):
        def forward(self, x: Tensor, weight: Tensor) -> Tensor:
            return functional.linear(taps_first(x), weight)

    module = import_program(Given(), (numbers(2, 3, 8, 12), numbers(24, 48))).module
    before = str(module)
    ConvolvePatchesPass().apply(make_context(), module)
    assert str(module) == before


@pytest.mark.parametrize(
    ("taken", "shape"),
    [(taps_first, (1, 3, 224, 224)), (by_columns, (2, 3, 112, 112)), (of_signals, (1, 16000))],
    ids=["views", "columns", "signal"],
)
def test_it_takes_half_of_the_time(taken: Taken, shape: tuple[int, ...]) -> None:
    x = torch.zeros(*shape).half()
    module = import_program(Embedded(taken(x.float()).shape[-1], taken, 96).half(), (x,)).module

    def us(**options: object) -> float:
        modules = lower(module, make_context(), options=options).modules  # type: ignore[arg-type]
        return module_timeline(modules["superdsc"], "calibrated").total_us

    assert us() < us(**{"convolve-patches": OFF}) / 2
