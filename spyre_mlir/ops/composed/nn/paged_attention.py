"""Attention to a cache in pages, as IBM's Foundation Model Stack calls it for Spyre.

A cache [pages, places, heads, features] holds the keys or the values of several sequences. A table says which pages a
sequence has, in order; a slot is the number of a place if those of all pages are counted on.

Decision: docs/decisions/0232-pages-of-caches-are-gathered.md
Decision: docs/decisions/0240-pages-stay-in-the-scratchpads.md
Decision: docs/decisions/0254-chunks-see-pages-in-blocks-of-queries.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.indexing.index_writes import placed_rows
from spyre_mlir.ops.composed.nn.attention import masked_softmax, repeat_heads
from spyre_mlir.ops.helpers.index_matching import MOST_COMPARISONS, from_end
from spyre_mlir.ops.native.gathers import TAKE_PAGES
from spyre_mlir.ops.value import Value

STORE = "spyre::paged_attn_store"
COMPUTE = "spyre::paged_attn_compute"
COMPUTE_WITH_SINKS = "spyre::paged_attn_compute_with_sinks"
MOST_QUERIES = 512  # of a block, as in causal attention


@ATEN.composed(aten=[STORE], ulps=1)
def paged_attn_store(
    b: Build, key: Value, value: Value, key_cache: Value, value_cache: Value, slot_mapping: Value
) -> tuple[Value, Value]:
    """Both caches with keys and values [sequences, tokens, heads, features] at the slots [sequences, tokens].

    A slot that is named twice holds the later token. A slot outside of the cache, one that the program computes, makes
    the token's numbers NaN, at least one of them in the result: the device has no way to refuse it. Those that a call
    gives are checked on the host.

    Raises:
        UnsupportedError: more than `MOST_COMPARISONS` pairs of a token and a place.
    """
    places, tokens = key_cache.shape[0] * key_cache.shape[1], prod(slot_mapping.shape)
    if places * tokens > MOST_COMPARISONS:
        raise UnsupportedError(f"{tokens} tokens in a cache of {places} places", hint="store fewer tokens at a time")
    slots = from_end(slot_mapping.view(-1), places)
    return _stored(b, key_cache, slots, key), _stored(b, value_cache, slots, value)


def _stored(b: Build, cache: Value, slots: Value, tokens: Value) -> Value:
    pages, places, *token = cache.shape
    new = tokens.reshape(prod(slots.shape), *token)
    here, rows = placed_rows(b, slots, new, pages * places, 0)
    rows = rows if rows.shape[0] == 1 else rows.view(*cache.shape)
    return here.view(pages, places, *(1 for _ in token)).where(rows, cache)


@ATEN.composed(aten=[COMPUTE], ulps=32)
def paged_attn_compute(
    b: Build,
    query: Value,
    key_cache: Value,
    value_cache: Value,
    current_tkv_mask: Value,
    left_padded_prompt_mask: Value,
    block_table: Value,
    *,
    scale: float,
) -> Value:
    """Attention of queries [sequences, queries, heads, features] to the places of their sequences' pages.

    Args:
        b: what builds.
        query: the last one of a sequence is that of its last place.
        key_cache: the keys of all pages.
        value_cache: the values of all pages.
        current_tkv_mask: how many places a sequence has, those in front included that it does not use.
        left_padded_prompt_mask: how many places in front a sequence does not use.
        block_table: the pages of each sequence; those behind its last place are read, and no query sees them.
        scale: the factor of products of queries and keys.
    """
    seen = _Seen(b, query, value_cache, current_tkv_mask, left_padded_prompt_mask, block_table)

    def weights(scores: Value, block: _Block) -> Value:
        return masked_softmax(b, scores, seen.mask(block))

    return _attended(query, scale, key_cache, value_cache, seen, weights)


@ATEN.composed(aten=[COMPUTE_WITH_SINKS], ulps=32)
def paged_attn_compute_with_sinks(
    b: Build,
    query: Value,
    key_cache: Value,
    value_cache: Value,
    current_tkv_mask: Value,
    left_padded_prompt_mask: Value,
    block_table: Value,
    sinks: Value,
    *,
    scale: float,
    sliding_window: int,
) -> Value:
    """As `paged_attn_compute`, with a number of `sinks` for each head that takes part in the sum of its softmax.

    A query sees `sliding_window` places up to its own, or all of them if that is 0.
    """
    seen = _Seen(b, query, value_cache, current_tkv_mask, left_padded_prompt_mask, block_table)
    heads = query.shape[2]

    def weights(scores: Value, block: _Block) -> Value:
        scores = seen.mask(block, sliding_window).where(scores, float("-inf"))
        return b.call("spyre::softmax_beside", scores, sinks.view(1, heads, 1, 1), dim=-1)

    return _attended(query, scale, key_cache, value_cache, seen, weights)


class _Block(NamedTuple):
    """Queries from one to another, and the places from the first on that they may see."""

    first: int
    end: int
    places: int


def _attended(
    query: Value,
    scale: float,
    key_cache: Value,
    value_cache: Value,
    seen: _Seen,
    weights: Callable[[Value, _Block], Value],
) -> Value:
    """The values of places, each block of queries with its weights of scores."""
    b, heads, made = seen.b, query.shape[2], list[Value]()
    keys = values = None
    for block in seen.blocks():
        scaled = _part(b, query, 1, block.first, block.end).transpose(1, 2) * scale
        keys = seen.keys(key_cache) if keys is None else keys
        near = repeat_heads(_part(b, keys, 2, 0, block.places), heads)
        found = weights(scaled @ near.transpose(-2, -1), block)
        # Keys have left the scratchpads by now, if there is one block.
        values = seen.values(value_cache) if values is None else values
        near = repeat_heads(_part(b, values, 2, 0, block.places), heads)
        made.append((found @ near).transpose(1, 2))
    return made[0] if len(made) == 1 else b.call("cat", made, dim=1)


def _part(b: Build, value: Value, dim: int, first: int, end: int) -> Value:
    """A part of a dimension, or all of it."""
    if end - first == value.shape[dim]:
        return value
    return b.call("slice.Tensor", value, dim=dim, start=first, end=end, step=1)


class _Seen:
    """The places of the pages of each sequence, and which of them a query sees."""

    def __init__(self, b: Build, query: Value, cache: Value, ends: Value, starts: Value, table: Value) -> None:
        """Takes the arguments of an attention; `cache` for its sizes alone."""
        self.b, self.queries = b, query.shape[1]
        self.pages, self.places = cache.shape[:2]
        self.sequences, self.used = table.shape
        self.ends, self.starts = (b.cast(v, "i64").view(self.sequences, 1) for v in (ends, starts))
        self.place = b.iota(self.used * self.places, "i64").view(1, -1)
        self.table = table
        query = b.iota(self.queries, "i64", start=1 - self.queries).view(1, -1, 1)
        self.last = query + self.ends.unsqueeze(1)
        # A loop begins with the first kernel from which on one gains: over several queries with these, not with places.
        self._own = self._of_sequences() if self.queries == 1 else None

    @property
    def own(self) -> Value:
        """Truth values [sequences, places] of the places of each sequence."""
        if self._own is None:
            self._own = self._of_sequences()
        return self._own

    def _of_sequences(self) -> Value:
        return self.b.call("logical_and", self.place.ge(self.starts), self.place.lt(self.ends))

    def keys(self, cache: Value) -> Value:
        """The keys [sequences, heads, places, features] of all pages of the table."""
        return self.b.call(TAKE_PAGES, cache, self.table)

    def values(self, cache: Value) -> Value:
        """The values in the same form, 0 where no query sees one: a page that nothing was stored in may hold NaN."""
        return self.own.view(self.sequences, 1, -1, 1).where(self.keys(cache), 0.0)

    def blocks(self) -> Sequence[_Block]:
        """All queries in blocks; the last query sees no place behind the table, and each before it one less."""
        used = self.used * self.places
        if self.queries <= MOST_QUERIES:
            return [_Block(0, self.queries, used)]
        firsts = range(0, self.queries, MOST_QUERIES)
        ends = [min(first + MOST_QUERIES, self.queries) for first in firsts]
        behind = [self.places * ((self.queries - end) // self.places) for end in ends]
        return [
            _Block(first, end, max(used - less, self.places))
            for first, end, less in zip(firsts, ends, behind, strict=True)
        ]

    def mask(self, block: _Block, window: int = 0) -> Value:
        """Truth values [sequences, 1, queries, places]: places that a query sees, at most so many up to its own."""
        b = self.b
        last = _part(b, self.last, 1, block.first, block.end)
        back = last - (_part(b, self.place, 1, 0, block.places) + 1).unsqueeze(0)
        seen = _part(b, self.own, 1, 0, block.places).unsqueeze(1)
        if self.queries > 1:
            seen = b.call("logical_and", seen, back.ge(0))
        if window:
            seen = b.call("logical_and", seen, back.lt(window))
        return seen.unsqueeze(1)
