"""Turned channels: known by what becomes of each, however a model writes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from xdsl.ir import BlockArgument

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.aten_forms.recognition.moved_channels import turn_of
from tests.functions import FunctionModel
from tests.unit.transforms.aten_forms.rotations import halves, pairs


def turns(function: Callable[[Tensor], Tensor], *shape: int) -> list[tuple[bool, int]]:
    """Of all that a function turns: whether that is its argument, and the distance."""
    module = import_program(FunctionModel(function), (torch.zeros(*shape),)).module
    ops = [op for op in module.walk() if isinstance(op, AtenOp) and len(op.results) == 1]
    found = [turn for op in ops if (turn := turn_of(op)) is not None]
    return [(isinstance(heads, BlockArgument), distance) for heads, distance in found]


def neighbours(x: Tensor) -> Tensor:
    first, second = x.view(*x.shape[:-1], -1, 2).unbind(-1)
    return torch.cat((second.neg().unsqueeze(-1), first.unsqueeze(-1)), -1).view(x.shape)


def chosen(x: Tensor) -> Tensor:
    both = x.unflatten(-1, (-1, 2))
    return torch.stack((-both[..., -1], both[..., 0]), -1).flatten(-2)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (halves, [(True, 4)]),
        (pairs, [(True, 1)]),
        (neighbours, [(True, 1)]),
        (chosen, [(True, 1)]),
        (lambda x: halves(halves(x)), [(True, 4), (False, 4)]),
        (lambda x: halves(x[..., :4]), [(False, 2)]),
    ],
    ids=["halves", "pairs", "neighbours", "chosen neighbours", "twice", "some of the channels"],
)
def test_a_turn_is_known(function: Callable[[Tensor], Tensor], found: list[tuple[bool, int]]) -> None:
    assert turns(function, 2, 3, 8) == found


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cat((x[..., 4:], x[..., :4]), -1),
        lambda x: torch.cat((x[..., 4:], -x[..., :4]), -1),
        lambda x: torch.cat((-x[..., 3:], x[..., :3]), -1),
        lambda x: torch.cat((-x[..., 4:], x[..., :4] * 2), -1),
        lambda x: torch.cat((-x[..., 4:], (x + 1)[..., :4]), -1),
        lambda x: torch.cat((-x[:, 2:], x[:, :2]), 1),
        lambda x: torch.stack((-x[..., 4:], x[..., :4]), -1).flatten(-2),
    ],
    ids=["no sign", "another sign", "unequal", "a factor", "two tensors", "rows", "pairs of halves"],
)
def test_anything_else_is_no_turn(function: Callable[[Tensor], Tensor]) -> None:
    assert turns(function, 2, 4, 8) == []
