"""Attention to a cache in pages, against loops over sequences and their places."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import NoSuchPlaceError
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.ops.composed.nn import paged_attention
from spyre_mlir.options import CompileOptions
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


@pytest.mark.parametrize("ends", [[129, 17], [70, -1]])
def test_a_sequence_of_more_places_than_its_pages_is_an_error(ends: list[int]) -> None:
    """Eager finds no page for such a place; the device would attend to all that there are."""
    q, (keys, values), (_, starts, table) = queries(1), caches(), places([128, 17], [0, 3])
    made = spyre_mlir.compile(Compute(), (q, keys, values, torch.tensor([128, 0]), starts, table), numerics="exact")
    wrong = rf"{ends[0]} at \[0\]" if ends[0] > 128 else rf"{ends[1]} at \[1\]"
    with pytest.raises(NoSuchPlaceError, match=rf"argument 3, .*holds {wrong}, and .*compute takes 0 to 128"):
        made(q, keys, values, torch.tensor(ends), starts, table)


@pytest.mark.parametrize("window", [None, 70])
def test_blocks_of_queries_see_fewer_places(monkeypatch: pytest.MonkeyPatch, window: int | None) -> None:
    """A prompt of two pages and a part, as one chunk and behind places that are there."""
    monkeypatch.setattr(paged_attention, "MOST_QUERIES", 64)
    q, (keys, values) = queries(140), caches()
    where = torch.tensor([192, 150]), torch.tensor([0, 20]), torch.tensor([[3, 5, 2], [1, 0, 4]])
    if window is None:
        agrees(Compute(), (q, keys, values, *where), attended(q, keys, values, SCALE, *where))
        return
    sinks = torch.tensor([0.5, -1.0, 2.0, 0.0])
    wanted = attended(q, keys, values, SCALE, *where, sinks, window)
    agrees(Sunk(window), (q, keys, values, *where, sinks), wanted)


@pytest.mark.parametrize(("count", "pages", "most_us"), [(512, 32, 850), (1024, 16, 620)])
def test_scores_of_chunks_stay_in_the_scratchpads(count: int, pages: int, most_us: float) -> None:
    """67 MB of scores are neither written nor read, and a first chunk has none behind its blocks."""
    half, counts = {"dtype": torch.float16, "device": "meta"}, {"dtype": torch.int64, "device": "meta"}
    cache, ends = torch.empty(256, 64, 8, 128, **half), torch.empty(1, **counts)
    given = torch.empty(1, count, 32, 128, **half), cache, cache, ends, ends, torch.empty(1, pages, **counts)
    assert spyre_mlir.compile(Compute(), given).timeline().total_us < most_us


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


@pytest.mark.parametrize(
    ("sequences", "pages", "heads", "looped", "most_us"),
    [(4, 64, 8, False, 550), (8, 64, 8, True, 1100), (1, 64, 8, False, 250), (4, 64, 2, False, 300)],
    ids=["a head for each core", "two trips", "halves of sequences", "16 cores"],
)
def test_pages_stay_in_the_scratchpads(sequences: int, pages: int, heads: int, looped: bool, most_us: float) -> None:
    """Keys and values are read once from device memory, and go nowhere else; both are most of the time."""
    half = {"dtype": torch.float16, "device": "meta"}
    cache, count = torch.empty(512, 64, heads, 128, **half), torch.empty(sequences, dtype=torch.int64, device="meta")
    table = torch.empty(sequences, pages, dtype=torch.int64, device="meta")
    given = torch.empty(sequences, 1, 4 * heads, 128, **half), cache, cache, count, count, table
    compiled = spyre_mlir.compile(Compute(), given)
    text = compiled.mlir("spyre.kernel").splitlines()
    gathers = [line for line in text if "kernel.gather" in line]
    assert len(gathers) == 2 and all(line.rstrip(")").endswith("lx>") for line in gathers)
    assert any("scf.for" in line for line in text) is looped
    assert compiled.timeline().total_us < most_us


class Step(nn.Module):
    def forward(self, q: Tensor, new: tuple[Tensor, Tensor], kept: tuple[Tensor, Tensor], *places: Tensor) -> Any:
        slots, *where = places
        made = torch.ops.spyre.paged_attn_store(*new, *kept, slots)
        return torch.ops.spyre.paged_attn_compute(q, *made, SCALE, *where), made


def test_stored_pages_are_gathered_where_they_lie() -> None:
    """A cache that entries are stored in has the order that its gather wants: nothing copies 67 MB."""
    half, counts = {"dtype": torch.float16, "device": "meta"}, {"dtype": torch.int64, "device": "meta"}
    cache, new = torch.empty(512, 64, 8, 128, **half), torch.empty(4, 1, 8, 128, **half)
    slots, count, table = (torch.empty(*s, **counts) for s in ((4, 1), (4,), (4, 64)))
    given = torch.empty(4, 1, 32, 128, **half), (new, new), (cache, cache), slots, count, count, table
    compiled = spyre_mlir.compile(Step(), given)
    assert 'identity" [d0 = 512' not in compiled.mlir("spyre.kernel")
    assert compiled.timeline().total_us < 600


@pytest.mark.parametrize("room", [20_000, None], ids=["loop", "halves of sequences"])
def test_pages_in_the_scratchpads_at_every_level(room: int | None) -> None:
    """In a loop over heads, and with cores that share the places of a head, whose sum is divided."""
    generator = torch.Generator().manual_seed(4)
    sequences, heads, used, shared = (8, 8, 2, 1) if room else (1, 2, 64, 2)
    q = torch.randn(sequences, 1, heads * shared, 64, generator=generator)
    keys, values = (torch.randn(20, 64, heads, 64, generator=generator) for _ in range(2))
    ends = torch.randint(1, used * 64, (sequences,), generator=generator)
    where = ends, torch.zeros_like(ends), torch.randint(20, (sequences, used), generator=generator)
    given, options = (q, keys, values, *where), CompileOptions()
    program = import_program(Compute(), given)
    context = make_context(SPYRE if room is None else replace(SPYRE, lx_usable_bytes=room))
    lowered = lower(program.module, context, options={**options.passes(), "plan": {"shortest_us": 0}})
    text = str(lowered.modules["spyre.kernel"])
    assert text.count("scf.for") == (1 if room else 0)
    assert len(re.findall(r"d1 = 64 over 2|k = 4096 over 2", text)) == (0 if room else 3)
    compiled = CompiledModel(program, lowered, options)
    assert compiled.verify(*given)
    torch.testing.assert_close(compiled(*given), attended(q, keys, values, SCALE, *where), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("kind", ["compute", "sunk", "store", "both"])
def test_caches_beyond_reach_at_every_level(kind: str) -> None:
    """A core reaches one head of a cache, and not all four; so it is for the page that an entry is stored in."""
    generator = torch.Generator().manual_seed(5)
    keys, values = (torch.randn(20, 64, 4, 64, generator=generator) for _ in range(2))
    new = torch.randn(2, 3, 1, 4, 64, generator=generator)
    q, sinks = torch.randn(3, 1, 8, 64, generator=generator), torch.randn(8, generator=generator)
    where = torch.tensor([128, 17, 65]), torch.tensor([3, 0, 0]), torch.tensor([[19, 0], [7, 7], [4, -2]])
    slots, kept = torch.tensor([[64], [7 * 64 + 17], [18 * 64]]), (keys, values)
    made = stored(new[0], new[1], *kept, slots)
    module, given, wanted = {
        "compute": (Compute(), (q, *kept, *where), attended(q, *kept, SCALE, *where)),
        "sunk": (Sunk(9), (q, *kept, *where, sinks), attended(q, *kept, SCALE, *where, sinks, 9)),
        "store": (Store(), (new[0], new[1], *kept, slots), made),
        "both": (Step(), (q, (new[0], new[1]), kept, slots, *where), (attended(q, *made, SCALE, *where), *made)),
    }[kind]
    program, options = import_program(module, given), CompileOptions()
    lowered = lower(program.module, make_context(replace(SPYRE, span_bytes=200_000)), options=options.passes())
    assert not lowered.host_steps
    assert str(lowered.modules["spyre.kernel"]).count("kernel.gather") == (0 if kind == "store" else 8)
    compiled = CompiledModel(program, lowered, options)
    assert compiled.verify(*given)
    found = compiled(*given)
    found = (found[0], *found[1]) if kind == "both" else _tensors(found)
    for got, other in zip(found, _tensors(wanted), strict=True):
        torch.testing.assert_close(got, other, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("stores", [False, True], ids=["attention", "with a store"])
def test_large_caches_stay_on_the_device(stores: bool) -> None:
    """2.1 GB of keys and as many of values; 32 sequences take 4,900 us from caches within reach."""
    half, counts = {"dtype": torch.float16, "device": "meta"}, {"dtype": torch.int64, "device": "meta"}
    cache, new = torch.empty(16_383, 64, 8, 128, **half), torch.empty(32, 1, 8, 128, **half)
    slots, count, table = (torch.empty(*s, **counts) for s in ((32, 1), (32,), (32, 64)))
    q = torch.empty(32, 1, 32, 128, **half)
    module, given = Compute(), (q, cache, cache, count, count, table)
    if stores:
        module, given = Step(), (q, (new, new), (cache, cache), slots, count, count, table)
    compiled = spyre_mlir.compile(module, given)
    text = compiled.mlir("spyre.kernel")
    gathers = [line for line in text.splitlines() if "kernel.gather" in line]
    assert not compiled.host_steps and len(gathers) == 16
    assert all(line.rstrip(")").endswith("lx>") for line in gathers)
    assert not re.findall(r" \[[^]]*= 16383[^]]*\] ins", text), "nothing walks a cache"
    assert len(re.findall(r"to_device %\w+ : tensor<16383x", text)) == 2, "each is sent once"
    assert compiled.timeline().total_us < 5_400


@pytest.mark.parametrize(("tokens", "on_host"), [(2048, False), (2112, True)])
def test_many_tokens_are_stored_by_the_host(tokens: int, on_host: bool) -> None:
    """Above 2^26 pairs of a token and one of 2^15 places, at any slots."""
    new = torch.empty(1, tokens, 1, 64, dtype=torch.float16, device="meta")
    cache = torch.empty(512, 64, 1, 64, dtype=torch.float16, device="meta")
    slots = torch.empty(1, tokens, dtype=torch.int64, device="meta")
    module = import_program(Store(), (new, new, cache, cache, slots)).module
    options = CompileOptions(whole_pages=False).passes()
    assert bool(lower(module, make_context(), options=options).host_steps) is on_host
