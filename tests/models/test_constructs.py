"""Constructs that models are made of, each alone, from torch to the bundle on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from tests.functions import FunctionModel

attention = nn.functional.scaled_dot_product_attention
INFINITY = float("inf")


def check(function: Callable[..., Any], *inputs: torch.Tensor, tolerance: float = 1e-6) -> Any:
    compiled = spyre_mlir.compile(FunctionModel(function), inputs, numerics="exact")
    verification = compiled.verify(*inputs, tolerance=tolerance)
    assert verification, str(verification)
    return compiled


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


X = numbers(3, 8)


@pytest.mark.parametrize("low", [-1e4, -100.0, 0.0], ids=str)
@pytest.mark.parametrize("function", [torch.sin, torch.cos])
def test_sine_and_cosine(function: Any, low: float) -> None:
    x = torch.linspace(low, -low + 10, 192)
    compiled = spyre_mlir.compile(FunctionModel(function), (x,), numerics="exact")
    wanted = getattr(np, function.__name__)(x.double().numpy())
    assert np.abs(compiled(x).double().numpy() - wanted).max() < 1e-6


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.stack([x, 2 * x], 1),
        lambda x: nn.functional.pad(x, (1, 2), value=-3.0),
        lambda x: nn.functional.pad(x, (-1, 2, 1, 0)),
        lambda x: 1 - x,
        lambda x: torch.where(x > 0, x, 0.5),
        lambda x: torch.where(x > 0, 1.0, 0.5),
        lambda x: x.masked_fill(x < 0, -7.0),
        lambda x: torch.where((x > 0) | ~(x < -1) ^ (x > 2), x, 0),
        lambda x: x.tril(1),
        lambda x: x.triu(-1),
        lambda x: x.split([3, 5], 1)[1] * 2,
        lambda x: x.unbind(0)[2] + 1,
        lambda x: x @ x[0],
        lambda x: x[0] @ x[1],
        lambda x: nn.functional.gelu(x, approximate="tanh"),
        lambda x: torch.slice_scatter(x, x[:, :2] * 5, 1, 3, 5),
        lambda x: torch.select_scatter(x, x[1] * 5, 0, -1),
        lambda x: (x * 3).to(torch.int64) + 1,
    ],
)
def test_on_floats(function: Callable[..., Any]) -> None:
    check(function, X)


POSITIONS = torch.tensor([2, 0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x[i],
        lambda x, i: (x * 2)[i],
        lambda x, i: torch.cat([x, x])[i + 1],
        lambda x, i: x[i - 3],
        lambda x, i: x[:, i],
        lambda x, i: x[i[:, None].expand(2, 3)],
        lambda x, i: nn.functional.embedding(i + 0, x),
        lambda x, i: torch.index_select(x, 1, i),
        lambda x, i: x.index_copy(0, i, x[:2] * 9),
        lambda x, i: x.index_copy(1, i, x[:, :2] * 9),
        lambda x, i: x[0].index_copy(0, i, x[0, :2] * 9),
        lambda x, i: x.index_copy(1, i[:1], x[:, :1] * 9),
        lambda x, i: x.index_copy(1, i * 0 + 4, x[:, :2] * 9),
        lambda x, i: torch.ops.aten.index_put(x, [None, i - 3], x[:, :2] * 9),
        lambda x, i: torch.where(i[0] >= torch.arange(8), x, 0.0),
        lambda x, i: (i * 2 + 1, x),
        lambda x, i: i.float() * x[0, :2],
        lambda x, i: i.bool() & (i != 2),
    ],
)
def test_on_floats_and_integers(function: Callable[..., Any]) -> None:
    check(function, X, POSITIONS)


def test_an_integer_that_becomes_a_float_need_not_be_a_device_number() -> None:
    compiled = check(lambda i: i.float() + 1, torch.tensor([1024, -1024, 2048]))
    assert compiled(torch.tensor([1025, 0, 70_001])).tolist() == [1026, 1, 70_002]


def test_computed_rows_of_a_long_table() -> None:
    check(lambda x, i: x[i + 1], numbers(1025, 2), torch.tensor([1, 1023]))


@pytest.mark.parametrize("positions", [[8], [-1], [0, 8], [2, -1]])
def test_rows_written_outside_show_as_nan(positions: list[int]) -> None:
    """Positions that the host can compute from arguments are checked at the call; a sum of floats is none of them."""

    def model(x: torch.Tensor, i: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return x.index_copy(1, i + (x.sum() * 0).long(), rows)

    inside, rows = torch.arange(len(positions)), numbers(3, len(positions))
    compiled = spyre_mlir.compile(FunctionModel(model), (X, inside, rows))
    assert compiled.verify(X, inside, rows)
    assert torch.isnan(compiled(X, torch.tensor(positions), rows)).any()


def heads(tokens: int, seed: int) -> torch.Tensor:
    return numbers(1, 2, tokens, 8, seed=seed)


Q, K, V = heads(5, 1), heads(6, 2), heads(6, 3)


def test_attention_with_rows_masked_as_a_whole() -> None:
    mask = torch.ones(1, 1, 5, 6, dtype=torch.bool)
    mask[..., 1, :] = False
    mask[..., 3, 2:] = False
    check(lambda q, k, v, m: attention(q, k, v, m), Q, K, V, mask)


@pytest.mark.parametrize("lowest", [torch.finfo(torch.float32).min, -1e5])
def test_attention_with_an_additive_mask(lowest: float) -> None:
    mask = torch.zeros(1, 1, 5, 6)
    mask[..., 2, 1:] = lowest
    check(lambda q, k, v, m: attention(q, k, v, m), Q, K, V, mask)


def test_rows_masked_by_the_lowest_number_are_uniform() -> None:
    mask = torch.zeros(1, 1, 5, 6)
    mask[..., 2, :] = torch.finfo(torch.float32).min
    check(lambda q, k, v, m: attention(q, k, v, m), Q, K, V, mask)


def test_minus_infinity_masks_entries() -> None:
    mask = torch.zeros(5, 6)
    mask[2, 1:] = -INFINITY
    check(lambda q, k, v, m: attention(q, k, v, m), Q, K, V, mask)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_a_half_precision_model_is_compared_in_double_precision(kind: torch.dtype) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 4)).to(kind)
    compiled = spyre_mlir.compile(model, (X.to(kind),), numerics="exact")
    assert compiled.verify(X.to(kind), tolerance=1e-6)
    assert model[0].weight.dtype is kind


def test_a_computed_index_outside_of_the_table_shows() -> None:
    """torch raises; a program on the device cannot, so a row by a sum of floats is NaN, never another row."""

    class Pick(torch.nn.Module):
        def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
            return (x * 2)[i + (x.sum() * 0).long()]

    x, inside = numbers(5, 3), torch.tensor([0, 4])
    compiled = spyre_mlir.compile(Pick(), (x, inside), numerics="exact")
    torch.testing.assert_close(compiled(x, inside), Pick()(x, inside))
    got = compiled(x, torch.tensor([2, 8]))
    torch.testing.assert_close(got[0], 2 * x[2])
    assert got[1].isnan().all()
