"""Facts of the numbers of integer weights."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.frontend.lowering.weight_facts import few_bits, weight_facts


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (torch.tensor([[-8, 7]], dtype=torch.int8), 4),
        (torch.tensor([[-9, 7]], dtype=torch.int8), None),
        (torch.tensor([[-8, 8]], dtype=torch.int8), None),
        (torch.tensor([1], dtype=torch.int8), None),  # no matrix
        (torch.tensor([[1]], dtype=torch.int16), None),
        (torch.empty(0, 2, dtype=torch.int8), None),
        (torch.empty(2, 2, dtype=torch.int8, device="meta"), None),
        (None, None),
    ],
)
def test_bits_that_numbers_need(value: torch.Tensor | None, bits: int | None) -> None:
    assert few_bits(value) == bits


def test_keys() -> None:
    zeros, few, many = (torch.full((2, 2), n, dtype=torch.int8) for n in (0, 3, 100))
    assert len({weight_facts(zeros), weight_facts(few), weight_facts(many)}) == 3
    assert weight_facts(torch.zeros(2, dtype=torch.int64)) == weight_facts(zeros)
    for value in (torch.zeros(2), torch.zeros(2, dtype=torch.complex64), torch.zeros(2, dtype=torch.bool)):
        assert weight_facts(value) == weight_facts(many)
