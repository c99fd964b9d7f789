"""Pass `put-entries`: which entries are stored one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import PLACED
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.native.entries import PUT_ENTRY
from spyre_mlir.transforms.aten_forms.put_entries import MOST_ENTRIES, PutEntriesPass
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel


def puts(function: Callable[..., Any], *given: Tensor) -> list[tuple[int, ...]]:
    """Dimension, number and places of each entry that is put."""
    module = import_program(FunctionModel(function), given).module
    PutEntriesPass().apply(make_context(), module)
    module.verify()
    found = [op for op in module.walk() if isinstance(op, AtenOp) and op.overload == PUT_ENTRY]
    assert all(PLACED in op.attributes for op in found)
    return [tuple(op.arguments()[n] for n in ("dim", "number", "per")) for op in found]  # pyright: ignore[reportReturnType]


def flat(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
    cache.view(-1, 8).index_copy_(0, at, new)
    return cache.sum()


def pages(count: int = 8, size: int = 64, kind: torch.dtype = torch.float16) -> Tensor:
    return torch.zeros(count, size, 8, dtype=kind)


def numbered(count: int) -> tuple[Tensor, Tensor]:
    return torch.arange(count), torch.zeros(count, 8, dtype=torch.float16)


def test_each_place_of_a_page_by_itself() -> None:
    assert puts(flat, pages(), *numbered(3)) == [(0, 0, 64), (0, 1, 64), (0, 2, 64)]


def test_entries_of_any_dimension() -> None:
    def along(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
        return cache.index_copy_(1, at, new).sum()

    new = torch.zeros(2, 2, 8, dtype=torch.float16)
    assert puts(along, pages(2, 256), torch.arange(2), new) == [(1, 0, 1), (1, 1, 1)]
    assert not puts(along, pages(2, 250), torch.arange(2), new), "blocks of 64 divide no 250"
    one = torch.zeros(2, 1, 8, dtype=torch.float16)
    assert not puts(along, pages(2, 256), torch.arange(1), one), "`update-in-place` finds it"


@pytest.mark.parametrize(("count", "most"), [(192, MOST_ENTRIES), (8, 4)])
def test_more_entries_make_a_tensor(count: int, most: int) -> None:
    """A kernel or two for each, and two blocks of the tensor at least."""
    assert len(puts(flat, pages(count), *numbered(most))) == most
    assert not puts(flat, pages(count), *numbered(most + 1))


def test_integers_and_cut_sticks_make_a_tensor() -> None:
    assert not puts(flat, pages(size=96), *numbered(2))
    assert not puts(flat, pages(kind=torch.int32), torch.arange(2), torch.zeros(2, 8, dtype=torch.int32))


def _computed(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
    return flat(cache, at + 1, new)


def _returned(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
    return cache.view(-1, 8).index_copy(0, at, new)


def _read(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
    return cache.exp() + flat(cache, at, new)


def _added(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
    cache.view(-1, 8).index_put_((at,), new, accumulate=True)
    return cache.sum()


def _one_for_all(cache: Tensor, at: Tensor, new: Tensor) -> Tensor:
    cache.view(-1, 8)[at] = new[0]
    return cache.sum()


@pytest.mark.parametrize("function", [_computed, _returned, _read, _added, _one_for_all])
def test_what_has_another_form_stays(function: Callable[..., Any]) -> None:
    """Positions that are computed, arguments that stay or are read elsewhere, sums, and one entry for all places."""
    assert not puts(function, pages(), *numbered(2))
