"""Writes to places that a tensor names: the view that an index is, and what is left to torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from spyre_mlir.frontend.capture.indices.writes import IndexWrites

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
