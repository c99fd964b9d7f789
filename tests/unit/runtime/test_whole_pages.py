"""Calls whose slots are whole pages, and calls for which the program is compiled again."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError, NoRunError
from spyre_mlir.runtime.whole_pages import ScatteredTokensWarning
from tests.fms_operators import stored
from tests.functions import FunctionModel


def store(*given: Tensor) -> Any:
    return torch.ops.spyre.paged_attn_store(*given)


def given(slots: list[int]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(len(slots))
    new = torch.randn(2, 1, len(slots), 2, 8, generator=generator)
    keys, values = torch.randn(2, 4, 64, 2, 8, generator=generator)
    return new[0], new[1], keys, values, torch.tensor([slots])


def page(number: int) -> list[int]:
    return list(range(64 * number, 64 * number + 64))


def same(got: Any, inputs: tuple[Tensor, ...]) -> None:
    keys, values, *_ = stored(*inputs[:4], inputs[4])
    torch.testing.assert_close(tuple(got), (keys, values), rtol=0, atol=0)


def test_a_call_with_other_slots_compiles_again_once_and_says_so() -> None:
    compiled = spyre_mlir.compile(FunctionModel(store), given(page(1)), numerics="exact")
    assert isinstance(compiled, CompiledModel)
    other = given([5, 200, *page(3)[2:]])
    with pytest.warns(ScatteredTokensWarning, match=r"integer 0 of .* is 5, .*compile with whole_pages=False"):
        same(compiled(*other), other)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for inputs in (other, given(page(2)), given([-1, *page(0)[1:]])):
            same(compiled(*inputs), inputs)
    assert "spyre.loop.put" in compiled.mlir("spyre.loop"), "other calls write pages"


def test_a_slot_outside_is_an_error_and_nothing_is_compiled() -> None:
    compiled = spyre_mlir.compile(FunctionModel(store), given(page(1)))
    with pytest.raises(InputError, match=r"holds 256 at \[0, 0\], and .*store takes -256 to 255"):
        compiled(*given(page(4)))


def test_a_program_from_files_refuses_other_slots(tmp_path: Path) -> None:
    compiled = spyre_mlir.compile(FunctionModel(store), given(page(1)))
    compiled.save(tmp_path / "bundle")
    loaded = spyre_mlir.load(tmp_path / "bundle", numerics="exact")
    same(loaded(*given(page(3))), given(page(3)))
    with pytest.raises(NoRunError, match="compile the model with whole_pages=False"):
        loaded(*given(page(3)[::-1]))


def test_nothing_has_run_when_slots_are_looked_at() -> None:
    """Random numbers are drawn once, and the tensor that the call overwrites is as eager leaves it."""

    def update(cache: Tensor, slots: Tensor, new: Tensor) -> Tensor:
        cache.view(-1, 8)[slots] = new + torch.randint(0, 9, (1, 128, 8))
        return cache.sum()

    slots = torch.tensor([page(1) + page(3)[::-1]])
    ours = torch.randn(4, 64, 8).round()
    inputs = ours, slots, torch.randn(1, 128, 8).round()
    compiled = spyre_mlir.compile(FunctionModel(update), inputs, numerics="exact", host_fallback="allow")
    for at in (slots.sort().values, slots, slots.sort().values):
        theirs = ours.clone()
        torch.manual_seed(0)
        wanted = update(theirs, at, inputs[2])
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ScatteredTokensWarning)
            torch.testing.assert_close(compiled(ours, at, inputs[2]), wanted)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
