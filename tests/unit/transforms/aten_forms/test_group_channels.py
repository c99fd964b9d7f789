"""Pass `group-channels`: which normalisations take means of channels, and that numbers stay torch's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 # as PyTorch's own pages call it

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.aten_forms import group_channels
from spyre_mlir.transforms.aten_forms.group_channels import GroupChannelsPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

Form = Callable[[Tensor, Tensor], Tensor]


def given(images: int = 2, channels: int = 64, side: int = 6) -> tuple[Tensor, Tensor]:
    drawn = torch.Generator().manual_seed(0)
    image = torch.randn(images, channels, side, side, generator=drawn).half()
    return image, torch.randn(channels, channels, 3, 3, generator=drawn).half() * 0.05


def convolved(x: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, w, padding=1)


def behind_one(x: Tensor, w: Tensor) -> Tensor:
    return F.group_norm(convolved(x, w), 8)


def between_two(x: Tensor, w: Tensor) -> Tensor:
    return convolved(F.silu(F.group_norm(convolved(x, w), 8)), w)


def behind_a_sum(x: Tensor, w: Tensor) -> Tensor:
    return F.group_norm(x + F.silu(convolved(x, w) * 0.5), 8)


def of_an_input(x: Tensor, w: Tensor) -> Tensor:
    return convolved(F.group_norm(x, 8), w)


def of_a_smaller_image(x: Tensor, w: Tensor) -> Tensor:
    """Pooled: what lies behind a pass over windows is not followed."""
    return F.group_norm(F.max_pool2d(convolved(x, w), 2), 8)


def one_channel_each(x: Tensor, w: Tensor) -> Tensor:
    return F.group_norm(convolved(x, w), x.shape[1])


def norms(form: Form, *inputs: Tensor) -> list[str]:
    """The overloads of the normalisations after the pass."""
    module = import_program(FunctionModel(form), inputs).module
    GroupChannelsPass().apply(make_context(), module)
    module.verify()
    return [op.overload for op in module.walk() if isinstance(op, AtenOp) and "group_norm" in op.overload]


@pytest.mark.parametrize("form", [behind_one, between_two, behind_a_sum])
def test_images_that_convolutions_make_are_normalised_by_channels(form: Form) -> None:
    assert norms(form, *given()) == ["spyre::group_norm_by_channels"]


@pytest.mark.parametrize(
    ("form", "inputs"),
    [
        (of_an_input, given()),
        (of_a_smaller_image, given()),
        (one_channel_each, given()),
        (behind_one, given(channels=32)),
    ],
    ids=["an input", "a smaller image", "a channel each", "few channels"],
)
def test_others_stay(form: Form, inputs: tuple[Tensor, Tensor]) -> None:
    assert norms(form, *inputs) == ["group_norm"]


@pytest.mark.parametrize("form", [behind_one, behind_a_sum])
def test_every_level_agrees_with_eager(form: Form) -> None:
    inputs = given()
    assert spyre_mlir.compile(FunctionModel(form), inputs, cache=False).verify(*inputs)


def test_it_takes_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = given(2, 128, 16)

    def us() -> float:
        modules = lower(import_program(FunctionModel(between_two), inputs).module, make_context()).modules
        return module_timeline(modules["superdsc"], "calibrated").total_us

    quick = us()
    monkeypatch.setattr(group_channels, "is_convolved", lambda _image: False)
    assert us() > 1.1 * quick
