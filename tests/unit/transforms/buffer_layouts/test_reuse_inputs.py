"""Pass `reuse-inputs`: which results take the memory of which inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.argument_notes import note_placed, overwritten
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.buffer_layouts.reuse_inputs import ReuseInputsPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel


def reused(function: Callable[..., Any], *, placed: bool = False) -> dict[int, int]:
    given = torch.zeros(8, 64, 8).half(), torch.arange(2), torch.zeros(2, 8).half()
    module = import_program(FunctionModel(function), given).module
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    if placed:
        note_placed(main, [0], [])
    ReuseInputsPass().apply(make_context(), module)
    module.verify()
    return overwritten(main)


def copied(cache: Tensor, at: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    made = cache.view(-1, 8).index_copy(0, at, new)
    return new + 1, made.view(8, 64, 8)


def test_an_input_with_entries_replaced() -> None:
    assert reused(copied) == {0: 1}
    assert not reused(copied, placed=True), "another program on the card may have it"


def _kept(cache: Tensor, at: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    return cache.sum(), cache.view(-1, 8).index_copy(0, at, new)


def _given_back(cache: Tensor, at: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
    return cache.view(-1, 8), cache.view(-1, 8).index_copy(0, at, new)


def _computed(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
    return cache.exp().view(-1, 8).index_copy(0, at, new)


@pytest.mark.parametrize("function", [_kept, _given_back, _computed])
def test_what_is_read_or_given_back_stays(function: Callable[..., Any]) -> None:
    assert not reused(function)


def test_what_the_program_writes_is_so_already() -> None:
    def written(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
        return cache.view(-1, 8).index_copy_(0, at, new)

    assert list(reused(written)) == [0]
