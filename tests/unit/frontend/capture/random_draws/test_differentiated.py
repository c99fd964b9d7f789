"""Draws whose order of memory a differentiated graph no longer says."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.random_draws.differentiated import refusals_out_of_order

BERNOULLI = torch.ops.aten.bernoulli.p


def test_what_lies_in_row_major_order_stays_as_it_is() -> None:
    table = refusals_out_of_order()
    assert table[BERNOULLI](torch.ones(3, 4), 0.5) is NotImplemented
    assert table[BERNOULLI](torch.ones(4, 1).t(), 0.5) is NotImplemented


@pytest.mark.parametrize("operator", refusals_out_of_order(), ids=str)
def test_other_orders_are_refused(operator: torch._ops.OpOverload) -> None:
    with pytest.raises(UnsupportedError, match=f"{operator} draws in the order of a memory that is not row-major"):
        refusals_out_of_order()[operator](torch.ones(3, 4).t(), 0.5)
