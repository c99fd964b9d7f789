"""Writes to places that a tensor names: the view that an index is, and what is left to torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from spyre_mlir.frontend.capture.indices.writes import IndexWrites
from spyre_mlir.frontend.torch_private import DataDependentOutputException, FakeTensorMode

P = torch.tensor(2)
INDICES: tuple[Any, ...] = (
    P, (slice(None), P), (..., P), (P, ..., 1), (P, slice(1, None), -1), (None, P), (slice(0, 2), P, slice(None)),
    (P, P, P), (P - 3, None, P),
)  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("wide", [False, True], ids=["as it is", "dimensions of one in front"])
def test_a_write_is_torchs(index: Any, wide: bool) -> None:
    got, wanted = torch.zeros(3, 4, 5), torch.zeros(3, 4, 5)
    value = torch.randn(wanted[index].shape)
    value = value[None, None] if wide else value
    wanted[index] = value
    with IndexWrites():
        got[index] = value
    assert got.equal(wanted)
    with IndexWrites():
        got[index] = 2.5
    wanted[index] = 2.5
    assert got.equal(wanted)


@pytest.mark.parametrize("index", [(P, torch.tensor([0, 1])), 1, torch.tensor(True), (P, slice(P, None))], ids=str)
def test_other_indices_are_left_to_torch(index: Any) -> None:
    got, wanted = torch.zeros(3, 4, 5), torch.zeros(3, 4, 5)
    wanted[index] = 1.0
    with IndexWrites():
        got[index] = 1.0
    assert got.equal(wanted)


@pytest.mark.parametrize("places", [torch.tensor([1, 3]), torch.tensor(2)], ids=str)
@pytest.mark.parametrize("split", [torch.tensor_split, torch.Tensor.tensor_split])
def test_a_split_says_that_it_reads_numbers(split: Any, places: torch.Tensor) -> None:
    """Torch itself ends in an error of its memory where the tensor has no numbers."""
    x = torch.arange(20.0).reshape(5, 4)
    with IndexWrites(reads=True):
        found = split(x, places)
        assert all(a.equal(b) for a, b in zip(found, torch.tensor_split(x, places), strict=True))
        with FakeTensorMode(allow_non_fake_inputs=True), pytest.raises(DataDependentOutputException):
            split(torch.empty_like(x), torch.empty_like(places))
