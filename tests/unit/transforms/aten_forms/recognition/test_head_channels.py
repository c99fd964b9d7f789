"""Channels of heads: followed through what leaves them by themselves, and no further."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from typing_extensions import override

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.aten_forms.recognition.head_channels import Heads, heads_of
from tests.unit.transforms.aten_forms.attentions import Attention, Sliced, given


def found(model: torch.nn.Module) -> list[Heads]:
    """The heads in a program."""
    module = import_program(model.half().eval(), (given(),)).module
    ops = [op for op in module.walk() if isinstance(op, AtenOp)]
    return [heads for op in ops if (heads := heads_of(op)) is not None]


HALF = 16


def turned(v: Tensor) -> Tensor:
    return torch.cat([-v[..., HALF:], v[..., :HALF]], -1)


class Changed(Attention):
    """Values that something happens to."""

    def __init__(self, change: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.change = change

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(layer(x)) for layer in (self.q, self.k, self.v))
        return self.joined(torch.softmax(q @ k.mT, dim=-1) @ self.change(v))


def test_columns_of_a_layer_are_known() -> None:
    assert [(heads.first, heads.end, heads.channels) for heads in found(Sliced())] == [
        (0, 192, 96),
        (192, 384, 96),
        (384, 576, 96),
    ]


TABLE = torch.arange(32.0).half()


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v * 0.5,
        lambda v: v / 4,
        lambda v: v.contiguous()[:, :, :32],
        lambda v: v * TABLE + turned(v),
        lambda v: torch.cat([v, v[..., 32:]], -1),
    ],
)
def test_heads_whose_channels_are_by_themselves_are_found(change: Callable[[Tensor], Tensor]) -> None:
    assert len(found(Changed(change))) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v + 1.0,
        lambda v: v.softmax(-1),
        lambda v: v / v.amax(-1, keepdim=True),
        lambda v: v.flip(-1),
        lambda v: torch.cat([v[..., 16:], v[..., :16]], -1),
        lambda v: v.exp(),
        lambda v: v * float("inf"),
        lambda v: v * v,
        lambda v: v * TABLE[:, None],
        lambda v: v + TABLE,
        lambda v: torch.add(v, v, alpha=2),
        lambda v: torch.cat([-v[..., 8:], v[..., :8]], -1),
        lambda v: torch.cat([v, turned(v)], -1)[..., :32],
    ],
)
def test_heads_whose_channels_meet_stay(change: Callable[[Tensor], Tensor]) -> None:
    """Also those that a step makes other than 0."""
    assert len(found(Changed(change))) == 2
