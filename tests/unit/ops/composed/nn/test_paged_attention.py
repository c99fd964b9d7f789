"""Attention to a cache in pages, against loops over sequences and their places."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.fms_operators import attended, stored

SCALE = 0.25


class Store(nn.Module):
    def forward(self, *x: Tensor) -> Any:
        return torch.ops.spyre.paged_attn_store(*x)


class Compute(nn.Module):
    def forward(self, q: Tensor, keys: Tensor, values: Tensor, *places: Tensor) -> Tensor:
        return torch.ops.spyre.paged_attn_compute(q, keys, values, SCALE, *places)


class Sunk(nn.Module):
    def __init__(self, window: int) -> None:
        super().__init__()
        self.window = window

    def forward(self, q: Tensor, keys: Tensor, values: Tensor, *places: Tensor) -> Tensor:
        return torch.ops.spyre.paged_attn_compute_with_sinks(q, keys, values, SCALE, *places, self.window)


def caches(pages: int = 6, size: int = 64, heads: int = 2, features: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    keys, values = (torch.randn(pages, size, heads, features, generator=generator) for _ in range(2))
    return keys, values


def queries(count: int, heads: int = 4, features: int = 16) -> Tensor:
    return torch.randn(2, count, heads, features, generator=torch.Generator().manual_seed(2))


def places(ends: list[int], starts: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths, places in front that are not used, and pages: of the second sequence one, and a number behind it."""
    return torch.tensor(ends), torch.tensor(starts), torch.tensor([[3, 5], [1, 0]])


def agrees(module: nn.Module, inputs: tuple[Tensor, ...], wanted: Any) -> None:
    """A module at every level is as eager is, on the device, and both are what loops say."""
    compiled = spyre_mlir.compile(module, inputs)
    assert not compiled.host_steps
    assert compiled.verify(*inputs)
    for got, other in zip(_tensors(compiled(*inputs)), _tensors(wanted), strict=True):
        torch.testing.assert_close(got, other, rtol=0.02, atol=0.02)


def _tensors(value: Any) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


@pytest.mark.parametrize("slots", [[[197], [77]], [[5, 6, 7], [77, 78, 77]], [[-1, 0], [64, 383]]])
def test_tokens_are_stored_at_their_slots(slots: list[list[int]]) -> None:
    numbers = torch.tensor(slots)
    new = torch.randn(2, *numbers.shape, 2, 16, generator=torch.Generator().manual_seed(3))
    inputs = new[0], new[1], *caches(), numbers
    agrees(Store(), inputs, stored(*inputs))


@pytest.mark.parametrize(
    ("count", "ends", "starts"),
    [(1, [70, 17], [0, 3]), (1, [128, 1], [64, 0]), (5, [70, 17], [0, 3]), (5, [66, 6], [62, 3])],
    ids=["one", "whole pages", "several", "more queries than places"],
)
def test_a_query_sees_the_places_of_its_sequence(count: int, ends: list[int], starts: list[int]) -> None:
    q, (keys, values), where = queries(count), caches(), places(ends, starts)
    agrees(Compute(), (q, keys, values, *where), attended(q, keys, values, SCALE, *where))


@pytest.mark.parametrize("heads", [1, 4])
def test_heads_of_queries_share_those_of_keys(heads: int) -> None:
    q, (keys, values), where = queries(1), caches(heads=heads), places([70, 17], [0, 0])
    agrees(Compute(), (q, keys, values, *where), attended(q, keys, values, SCALE, *where))


@pytest.mark.parametrize(("count", "window"), [(1, 0), (1, 9), (4, 9)])
def test_a_sink_takes_part(count: int, window: int) -> None:
    q, (keys, values), where = queries(count), caches(), places([70, 17], [0, 3])
    sinks = torch.tensor([0.5, -1.0, 2.0, 0.0])
    wanted = attended(q, keys, values, SCALE, *where, sinks, window)
    agrees(Sunk(window), (q, keys, values, *where, sinks), wanted)


def test_places_that_no_query_sees_may_be_anything() -> None:
    """The place behind the last of a sequence, and one in front of the first."""
    q, (keys, values), where = queries(1), caches(), places([70, 17], [0, 3])
    for cache in (keys, values):
        cache[5, 6] = cache[1, 2] = torch.nan
    agrees(Compute(), (q, keys, values, *where), attended(q, keys, values, SCALE, *where))


@pytest.mark.parametrize(("tokens", "on_host"), [(2048, False), (2112, True)])
def test_many_tokens_are_stored_by_the_host(tokens: int, on_host: bool) -> None:
    """Above 2^26 pairs of a token and one of 2^15 places."""
    new = torch.empty(1, tokens, 1, 64, dtype=torch.float16, device="meta")
    cache = torch.empty(512, 64, 1, 64, dtype=torch.float16, device="meta")
    slots = torch.empty(1, tokens, dtype=torch.int64, device="meta")
    module = import_program(Store(), (new, new, cache, cache, slots)).module
    assert bool(lower(module, make_context()).host_steps) is on_host
