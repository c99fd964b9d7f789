"""Entries that operators store: along which dimension, in which tensor, at positions of whom, and who reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from xdsl.ir import SSAValue

from spyre_mlir.dialects.ir.functions import first_function, returned_by
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.utils.aten_ops import AtenWriter
from spyre_mlir.transforms.utils.stored_entries import StoredEntries, host_positions, only_reader, stored_entries
from tests.functions import FunctionModel

PAGES, AT, ROWS = torch.zeros(4, 8, 16), torch.tensor([3, 17]), torch.ones(2, 16)


def imported(function: Callable[..., Any], *inputs: torch.Tensor) -> tuple[StoredEntries | None, list[SSAValue]]:
    """What is found of the first result of a function, and the arguments of the function."""
    main = first_function(import_program(FunctionModel(function), inputs).module)
    return stored_entries(returned_by(main)[0]), list(main.body.block.args)


@pytest.mark.parametrize("store", [lambda x, i, v: x.index_copy(0, i, v), lambda x, i, v: x.index_put((i,), v)])
def test_entries_of_a_tensor_are_found_with_their_positions(store: Callable[..., Any]) -> None:
    found, (x, at, rows) = imported(store, torch.zeros(32, 16), AT, ROWS)
    assert found is not None and (found.old, found.positions, found.source) == (x, at, rows)
    assert (found.dim, found.per, found.count, found.places) == (0, 1, 2, 32)
    assert host_positions(found) is at


def test_places_of_pages_are_counted_through_a_view() -> None:
    found, (pages, *_) = imported(lambda x, i, v: x.view(32, 16).index_copy(0, i, v), PAGES, AT, ROWS)
    assert found is not None and found.old is pages
    assert (found.dim, found.per, found.places) == (0, 8, 32)
    entries = found.entries(AtenWriter(found.op))
    assert [shape_of(entry) for entry in entries] == [(1, 1, 16)] * 2


@pytest.mark.parametrize(
    "other",
    [
        lambda x, i, v: x.index_add(0, i, v),
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        lambda x, i, v: x.index_put((i,), v[0]),  # one entry for several places
        lambda x, i, v: x.index_put((i, i - 3), v[:, 0]),
    ],
)
def test_sums_and_entries_of_several_dimensions_are_not_stored(other: Callable[..., Any]) -> None:
    assert imported(other, torch.zeros(32, 16), AT, ROWS)[0] is None


def test_positions_that_the_program_computes_are_not_of_the_host() -> None:
    found, _ = imported(lambda x, i, v: x.index_copy(0, i + 1, v), torch.zeros(32, 16), AT, ROWS)
    assert found is not None and host_positions(found) is None


@pytest.mark.parametrize(("second", "alone"), [(False, True), (True, False)])
def test_a_tensor_has_one_reader_if_its_views_have(second: bool, alone: bool) -> None:
    def function(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> Any:
        seen = x.view(32, 16)
        made = seen.index_copy(0, i, v)
        return (made, seen.relu()) if second else made

    found, _ = imported(function, PAGES, AT, ROWS)
    assert found is not None and only_reader(found.old) is alone
