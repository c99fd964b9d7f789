"""Attention to a cache in pages, as IBM's Foundation Model Stack calls it for Spyre.

A cache [pages, places, heads, features] holds the keys or the values of several sequences. A table says which pages a
sequence has, in order; a slot is the number of a place if those of all pages are counted on.

Decision: docs/decisions/0232-pages-of-caches-are-gathered.md
Decision: docs/decisions/0240-pages-stay-in-the-scratchpads.md
"""

from __future__ import annotations

from math import prod

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


@ATEN.composed(aten=[STORE], ulps=1)
def paged_attn_store(
    b: Build, key: Value, value: Value, key_cache: Value, value_cache: Value, slot_mapping: Value
) -> tuple[Value, Value]:
    """Both caches with keys and values [sequences, tokens, heads, features] at the slots [sequences, tokens].

    A slot that is named twice holds the later token. A slot outside of the cache makes the token's numbers NaN, at
    least one of them in the result: the device has no way to refuse it. The host has, where tokens are stored in place.

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
    heads = query.shape[2]
    scores = (query.transpose(1, 2) * scale) @ repeat_heads(seen.keys(key_cache), heads).transpose(-2, -1)
    found = masked_softmax(b, scores, seen.mask())
    # Keys have left the scratchpads by now.
    return (found @ repeat_heads(seen.values(value_cache), heads)).transpose(1, 2)


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
    scores = (query.transpose(1, 2) * scale) @ repeat_heads(seen.keys(key_cache), heads).transpose(-2, -1)
    scores = seen.mask(sliding_window).where(scores, float("-inf"))
    found = b.call("spyre::softmax_beside", scores, sinks.view(1, heads, 1, 1), dim=-1)
    return (found @ repeat_heads(seen.values(value_cache), heads)).transpose(1, 2)


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
        self.own = b.call("logical_and", self.place.ge(self.starts), self.place.lt(self.ends))

    def keys(self, cache: Value) -> Value:
        """The keys [sequences, heads, places, features] of all pages of the table."""
        return self.b.call(TAKE_PAGES, cache, self.table)

    def values(self, cache: Value) -> Value:
        """The values in the same form, 0 where no query sees one: a page that nothing was stored in may hold NaN."""
        return self.own.view(self.sequences, 1, -1, 1).where(self.keys(cache), 0.0)

    def mask(self, window: int = 0) -> Value:
        """Truth values [sequences, 1, queries, places]: places that a query sees, at most so many up to its own."""
        b = self.b
        query = b.iota(self.queries, "i64", start=1 - self.queries).view(1, -1, 1)
        back = (query + self.ends.unsqueeze(1)) - (self.place + 1).unsqueeze(0)
        seen = self.own.unsqueeze(1)
        if self.queries > 1:
            seen = b.call("logical_and", seen, back.ge(0))
        if window:
            seen = b.call("logical_and", seen, back.lt(window))
        return seen.unsqueeze(1)
