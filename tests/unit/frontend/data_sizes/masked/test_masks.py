"""Masks in front of reductions: whatever padding holds, the masked piece gives what torch gives without padding."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.unit.frontend.data_sizes.programs import X, check_masked, masked

REDUCTIONS: tuple[Callable[[Tensor], tuple[Tensor, ...]], ...] = (
    lambda y: (y.sum(0), y.sum(), y.sum(dtype=torch.float64), (y > 0.5).sum(0)),
    lambda y: (y.mean(0), y.mean(), y.mean((0, 1), keepdim=True)),
    lambda y: (y.amax(0), y.max(), y.max(0)[0], y.argmax(0)),
    lambda y: (y.amin(0), y.min(), y.min(0)[0], y.argmin(0)),
    lambda y: (y.softmax(0)[0], y.log_softmax(0)[0], torch.linalg.vector_norm(y)),
    lambda y: (y.t() @ y, torch.mm(y.t(), y), y[:, 0] @ y),
    lambda y: (torch.ones(4, 4).index_add(0, torch.zeros(y.shape[0], dtype=torch.int64), y),),
    lambda y: (y.sum() / y.shape[0], y.sum() * y.shape[0]),
    lambda y: ((y > 1.2).any(0), (y > 0).all(0), (y > 1.2).any(), (y > 0).all()),
    lambda y: (y.var(0), y.std((0, 1)), y.var(0, unbiased=False, keepdim=True)),
    lambda y: ((y * 4).int().amax(0), (y * 4).long().min()),
)


def test_padding_changes_no_result() -> None:
    """Also none of a sum of truth values, and of a size that is multiplied."""

    def program(y: Tensor) -> list[Tensor]:
        return [result for reduction in REDUCTIONS for result in reduction(y)]

    check_masked(program, X[1:] + 1)


@pytest.mark.parametrize("given", ["none", "added", "kept"])
def test_padded_keys_are_hidden(given: str) -> None:
    query = torch.linspace(-1.0, 1.0, 12).reshape(1, 3, 4)

    def attention(y: Tensor) -> Tensor:
        hidden = (y.sum(-1) < 7)[None]
        mask = {"none": None, "added": y.sum(-1)[None], "kept": hidden}[given]
        return functional.scaled_dot_product_attention(query, y[None], y[None], attn_mask=mask)

    piece, rows = masked(attention), X[1:] + 1
    (symbol,) = piece.symbols
    tensors = piece.arguments((rows,), {symbol: 2}, {symbol: 5})
    tensors[0][2:] = 3.0
    torch.testing.assert_close(piece.model(*tensors)[0], attention(rows))


def test_what_reduces_no_size_has_no_mask() -> None:
    assert not masked(lambda y: (y.sum(1), y.softmax(-1) @ torch.ones(4, 2), y * 2)).is_masked
