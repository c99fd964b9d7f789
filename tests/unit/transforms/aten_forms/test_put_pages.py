"""Pass `put-pages`: which prompts are stored page by page."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.native.entries import PUT_PAGE
from spyre_mlir.transforms.aten_forms.put_entries import MOST_ENTRIES
from spyre_mlir.transforms.aten_forms.put_pages import MOST_PAGES, PutPagesPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.aten_forms.test_put_entries import flat, pages


def puts(function: Any, *given: Tensor) -> list[tuple[int, int]]:
    """The number of the first position, and the places, of each page that is put."""
    module = import_program(FunctionModel(function), given).module
    PutPagesPass().apply(make_context(), module)
    module.verify()
    found = [op for op in module.walk() if isinstance(op, AtenOp) and op.overload == PUT_PAGE]
    return [(op.arguments()["number"], op.arguments()["count"]) for op in found]  # pyright: ignore[reportReturnType]


def placed(cache: Tensor, slots: Tensor, new: Tensor) -> Tensor:
    cache.view(-1, 8)[slots] = new
    return cache.sum()


def prompts(*shape: int) -> tuple[Tensor, Tensor]:
    return torch.zeros(*shape, dtype=torch.int64), torch.zeros(*shape, 8, dtype=torch.float16)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        ((1, 64), [(0, 64)]),
        ((1, 192), [(0, 64), (64, 64), (128, 64)]),
        ((2, 100), [(0, 64), (64, 36), (100, 64), (164, 36)]),
        ((128,), [(0, 64), (64, 64)]),
    ],
)
def test_each_page_of_a_prompt(shape: tuple[int, ...], wanted: list[tuple[int, int]]) -> None:
    assert puts(placed, pages(8), *prompts(*shape)) == wanted


def test_few_tokens_of_a_sequence_are_no_page() -> None:
    """Many sequences have a token each, in pages of their own."""
    for shape in ((1, 63), (128, 1), (MOST_ENTRIES,)):
        assert not puts(placed, pages(8), *prompts(*shape))


def test_pages_have_whole_sticks_and_there_are_not_too_many() -> None:
    assert not puts(placed, pages(8, size=96), *prompts(1, 192))
    assert not puts(placed, pages(2), *prompts(1, 192)), "fewer pages than the prompt has"
    assert len(puts(placed, pages(MOST_PAGES + 1), *prompts(1, 64 * MOST_PAGES))) == MOST_PAGES
    assert not puts(placed, pages(MOST_PAGES + 1), *prompts(1, 64 * MOST_PAGES + 64))


def test_integers_and_computed_slots_are_stored_otherwise() -> None:
    slots, new = prompts(1, 128)
    assert not puts(placed, pages(8, kind=torch.int32), slots, new.int())
    assert not puts(lambda cache, at, new: placed(cache, at + 1, new), pages(8), slots, new)


def test_index_copy_has_pages_too() -> None:
    assert puts(flat, pages(8), *prompts(128)) == [(0, 64), (64, 64)]
