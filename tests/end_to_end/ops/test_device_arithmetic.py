"""Compositions whose steps must stay exact, or in range, in the device's arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.hw.number_formats.dl16 import round_trip
from tests.functions import FunctionModel


def on_device(function: Any, *inputs: Tensor) -> Tensor:
    return spyre_mlir.compile(FunctionModel(function), inputs)(*inputs)


def dl16(numbers: Any) -> Tensor:
    return torch.from_numpy(round_trip(np.asarray(numbers, dtype=np.float64)).astype(np.float32))


@pytest.mark.parametrize(("mode", "whole"), [("floor", torch.floor), ("trunc", torch.trunc)])
def test_whole_quotients_up_to_a_thousand(mode: str, whole: Any) -> None:
    draw = np.random.default_rng(3)
    y = dl16(draw.uniform(0.1, 9.0, 512) * draw.choice([-1, 1], 512))
    x = dl16(y.double().numpy() * draw.integers(1, 1000, 512))  # at the edge of the next quotient
    quotient = on_device(lambda a, b: torch.div(a, b, rounding_mode=mode), x, y)
    assert torch.equal(quotient, whole(x.double() / y.double()).float())
    few = x[x.abs() < 2000]
    by_number = on_device(lambda a: torch.div(a, -2.3125, rounding_mode=mode), few)
    assert torch.equal(by_number, whole(few.double() / -2.3125).float())


@pytest.mark.parametrize("order", [10.0, -10.0])
def test_a_norm_whose_powers_leave_the_range(order: float) -> None:
    x = dl16([[1000.0, 3.0, -2000.0], [1e-4, 2e-4, -4e-4], [3.0, -4.0, 5.0]])
    got = on_device(lambda a: torch.linalg.vector_norm(a, ord=order, dim=-1), x)
    torch.testing.assert_close(got.double(), torch.linalg.vector_norm(x.double(), ord=order, dim=-1), rtol=2e-2, atol=0)


def test_the_norm_of_zeros() -> None:
    x = torch.tensor([[0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    assert on_device(lambda a: torch.linalg.vector_norm(a, ord=3.0, dim=-1), x).tolist() == [0.0, 2.0]


def test_a_norm_of_negative_order_of_a_vector_with_a_zero() -> None:
    x = torch.tensor([[0.0, 4.0], [2.0, 2.0]])
    assert on_device(lambda a: torch.linalg.vector_norm(a, ord=-1.0, dim=-1), x).tolist() == [0.0, 1.0]


def test_a_histogram_counts_elements_beside_its_borders() -> None:
    x = dl16([-10.0, -9.0, -9.002, -8.99, -3.002, -3.0, -2.998, -0.0039, 0.0, 0.01, -10.02])
    got = on_device(lambda a: torch.histc(a, bins=10, min=-10, max=0), x)
    assert torch.equal(got, torch.histc(x, bins=10, min=-10, max=0))


def test_a_margin_loss_whose_exponentials_leave_the_range() -> None:
    x, target = dl16([30.0, -40.0, 0.5, 200.0]), dl16([-1.0, 1.0, 1.0, 1.0])
    got = on_device(torch.nn.functional.soft_margin_loss, x, target)
    wanted = torch.nn.functional.soft_margin_loss(x.double(), target.double())
    torch.testing.assert_close(got.double(), wanted, rtol=4e-3, atol=0)


def test_the_cosine_of_nothing_is_none() -> None:
    x, y = torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([[1.0, 1.0], [2.0, 4.0]])
    got = on_device(lambda a, b, t: torch.nn.functional.cosine_embedding_loss(a, b, t, reduction="none"), x, y, y[:, 0])
    assert got[0] == 1.0  # the target of the second row is neither 1 nor -1
    assert got[1] == 0.0


@pytest.mark.parametrize(
    "numerics",
    [pytest.param("exact", marks=pytest.mark.slow(reason="device numerics are the stricter case")), "device"],
)
def test_infinities_are_chosen_and_added_where_they_are(numerics: Any) -> None:
    """So many places that elements go through a product with zeros and ones, of which infinity would make NaN."""
    mask = torch.full((260, 256), -torch.inf).triu(1)
    mask[7, 3], mask[9, 4] = torch.inf, torch.nan
    index = torch.tensor([5, 5, 9, 0, 258]).repeat(52)
    model = FunctionModel(lambda x, i: (x[:, i[:9] % 256], torch.zeros(260, 256).index_add(0, i, x)))
    got = spyre_mlir.compile(model, (mask, index), numerics=numerics)(mask, index)
    for one, wanted in zip(got, model(mask, index), strict=True):
        # On the device -65536 stands for the infinity that came in.
        assert torch.equal(one.isnan(), wanted.isnan())
        assert torch.equal(one.nan_to_num(0) <= -65536, wanted == -torch.inf)
        assert torch.equal(one.nan_to_num(0) >= 65536, wanted == torch.inf)
        assert (one[wanted == 0] == 0).all()
