"""Tiles of attention as torch-spyre's published rule selects them, to compare this compiler's plans with.

An attention becomes loops over tiles of the batch, of the heads of keys, of the query heads that share them, and of
queries; inside of these, a loop over blocks of keys with a running softmax. The rule enumerates exact counts of each,
estimates what a core holds, and takes the least sum of executions of kernels, bursts of loading and waves of traffic.
One query has a rule of its own. Sizes are plain numbers, so tiles can be selected without a program.

Source: torch-spyre, decompositions.py and test_sdpa_tiling.py of October 2026; certain where
`tests/unit/planning/test_rival_attention.py` has published selections.

Decision: docs/decisions/0128-the-rivals-rules.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import ceil, prod

from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.planning.rival import RivalError

STICK_KEYS = 64  # blocks of keys have whole sticks of two-byte numbers, where the extent has
LONGEST_TILE = 512  # queries or keys, where no plan fits the scratchpads
FALLBACK_HEADS = (4, 2, 1)  # heads of a tile then, the first that divides them
# Kernels of a tile besides its blocks, of a block, and the blocks between which the loop hands its values on.
TILE_EXECUTIONS, BLOCK_EXECUTIONS, BLOCKS_OF_GROUP = 8, 17, 16
WAVE_BYTES = 1 << 20  # of device memory, per core
# Buffers of scores, and of the size of queries, that live at one time: without loops, in loops, in loops of one query.
STRAIGHT_LIVE, LOOP_LIVE, DECODE_LIVE = (1, 3), (4, 7), (2, 2)
MOST_SPILLED = 1
# One query: a block of keys stays in a scratchpad, laid out anew, with so many bytes for each query head that reads it.
KEPT_BYTES_PER_HEAD = 2048
LEAST_KEPT_BLOCK, LEAST_KEPT_BLOCKS, MOST_KEPT_KEYS = 256, 2, 1024


@dataclass(frozen=True, kw_only=True)
class AttentionSizes:
    """Sizes of an attention.

    Attributes:
        batch: sequences.
        heads: of queries.
        kv_heads: of keys and values, a divisor of `heads`.
        queries: rows of a head.
        keys: columns of scores.
        features: of a head.
        element_bytes: of a number.
        masks: extents of additive masks along batch, heads of keys, query heads of one of these, queries, and keys; 1
            where all share.
        staged_bytes: what tiles of heads make move besides, where heads do not lie one after the other in memory.

    Raises:
        RivalError: torch-spyre refuses the heads.
    """

    batch: int = 1
    heads: int
    kv_heads: int
    queries: int
    keys: int
    features: int
    element_bytes: int = 2
    masks: tuple[tuple[int, int, int, int, int], ...] = ()
    staged_bytes: int = 0

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise RivalError(f"{self.kv_heads} heads of keys do not divide {self.heads} heads of queries")

    @property
    def group(self) -> int:
        """Query heads that share one head of keys."""
        return self.heads // self.kv_heads

    @property
    def scores(self) -> tuple[int, int, int, int, int]:
        """Extents of the scores: batch, heads of keys, query heads of one of these, queries, keys."""
        return self.batch, self.kv_heads, self.group, self.queries, self.keys


@dataclass(frozen=True, kw_only=True)
class AttentionTiles:
    """How often each dimension is cut.

    Attributes:
        batch: tiles along the batch.
        heads: tiles along heads of keys.
        groups: tiles along query heads that share one of these.
        queries: tiles along queries.
        blocks: blocks of keys.
        cores: that a tile is estimated to use; 0 where the rule estimates none.
        live_bytes: what a core is estimated to hold at one time.
        spilled: buffers among these that the estimate puts into device memory.
    """

    batch: int = 1
    heads: int = 1
    groups: int = 1
    queries: int = 1
    blocks: int = 1
    cores: int = 0
    live_bytes: int = 0
    spilled: int = 0

    @property
    def cut_groups(self) -> int:
        """Tiles along query heads that become a loop: heads alone are not cut, as that makes no buffer smaller."""
        return self.groups if self.queries > 1 or self.blocks > 1 else 1

    @property
    def outer(self) -> int:
        """Trips of the loops around the blocks."""
        return self.batch * self.heads * self.cut_groups * self.queries

    @property
    def counts(self) -> tuple[int, int, int, int, int]:
        """Tiles along each dimension of scores: batch, heads of keys, query heads of one of these, queries, keys."""
        return self.batch, self.heads, self.cut_groups, self.queries, self.blocks

    @property
    def looped(self) -> bool:
        """Return whether there is a loop; without one, the softmax does not run from block to block."""
        return self.outer > 1 or self.blocks > 1


def attention_tiles(sizes: AttentionSizes, spec: SpyreSpec) -> AttentionTiles:
    """Return the tiles that torch-spyre's rule selects."""
    if sizes.queries == 1:
        return _decode_tiles(sizes, spec)
    plans = [_Plan(sizes, tiles, spec) for tiles in _cuts(sizes)]
    allowed = [plan for plan in plans if plan.spilled <= MOST_SPILLED]
    return min(allowed, key=lambda plan: plan.order).selected if allowed else _fallback(sizes)


def exact_tiles(extent: int, longest: int, stick: int = 1) -> int:
    """Return the least count of equal tiles, none longer than `longest`; of whole sticks where the extent allows it.

    Raises:
        ValueError: an argument is not positive.
    """
    if min(extent, longest, stick) < 1:
        raise ValueError(f"{extent} elements in tiles of at most {longest}, in steps of {stick}: give positive numbers")
    step = stick if extent % stick == 0 and longest >= stick else 1
    return next(n for n in range(ceil(extent / longest), extent + 1) if extent % n == 0 and extent // n % step == 0)


def _cuts(sizes: AttentionSizes) -> Iterator[AttentionTiles]:
    """Every combination of exact counts."""
    counts = [divisors(extent, extent) for extent in (sizes.batch, sizes.kv_heads, sizes.group)]
    for b, h, g in product(*counts):
        for q in _query_counts(sizes.queries):
            for blocks in _block_counts(sizes.keys):
                yield AttentionTiles(batch=b, heads=h, groups=g, queries=q, blocks=blocks)


def _query_counts(extent: int) -> list[int]:
    """One tile, and tiles of at most each power of two."""
    powers = [1 << bit for bit in reversed(range(extent.bit_length()))]
    return list(dict.fromkeys([1, *(exact_tiles(extent, power) for power in powers)]))


def _block_counts(extent: int) -> list[int]:
    """Blocks of at most each doubling of a stick, and one block."""
    whole = max(STICK_KEYS, ceil(extent / STICK_KEYS) * STICK_KEYS)
    longest = [STICK_KEYS << step for step in range((whole // STICK_KEYS - 1).bit_length())]
    return list(dict.fromkeys(exact_tiles(extent, one, STICK_KEYS) for one in (*longest, whole)))


def tile_extents(sizes: AttentionSizes, tiles: AttentionTiles) -> tuple[int, ...]:
    """Return batch, heads of keys, query heads of one of these, queries and keys of one block of one tile."""
    return tuple(extent // count for extent, count in zip(sizes.scores, tiles.counts, strict=True))


@dataclass(frozen=True)
class _Plan:
    """Estimates of tiles with more than one query."""

    sizes: AttentionSizes
    tiles: AttentionTiles
    spec: SpyreSpec

    @property
    def extents(self) -> tuple[int, ...]:
        """Batch, heads of keys, query heads of one of these, and queries of a tile."""
        return tile_extents(self.sizes, self.tiles)[:-1]

    @cached_property
    def cores(self) -> int:
        """The most cores that equal slices of a tile's rows give work."""
        most = self.spec.cores_per_card
        found = {1}
        for extent in self.extents:
            found = {c * d for c in found for d in divisors(extent, most) if c * d <= most}
        return max(found)

    @property
    def block(self) -> int:
        """Keys of a block."""
        return self.sizes.keys // self.tiles.blocks

    @property
    def score_bytes(self) -> int:
        """Scores of a core."""
        return prod(self.extents) // self.cores * self.block * self.sizes.element_bytes

    @property
    def query_bytes(self) -> int:
        """Queries of a core."""
        return self.score_bytes * self.sizes.features // self.block

    @property
    def laid_out_bytes(self) -> int:
        """Keys that a core lays out anew; only sequences and heads are certain to divide them."""
        rows = self.extents[0] * self.extents[1]
        keys = rows * self.block * self.sizes.features * self.sizes.element_bytes
        return ceil(keys / min(self.spec.cores_per_card, rows))

    @property
    def live_bytes(self) -> int:
        """Bytes that a core holds at one time."""
        scores, queries = LOOP_LIVE if self.tiles.looped else STRAIGHT_LIVE
        sums = 2 * self.score_bytes // self.block
        return scores * self.score_bytes + queries * self.query_bytes + sums + self.laid_out_bytes

    @property
    def spilled(self) -> int:
        """Buffers beyond what a core has."""
        return ceil(max(0, self.live_bytes - self.spec.lx_usable_bytes) / self.query_bytes)

    @property
    def order(self) -> tuple[int, ...]:
        """Numbers that plans are compared by, the first ones first; the least is selected."""
        tiles, trips = self.tiles, self.tiles.outer * self.tiles.blocks
        executions = _executions(tiles)
        staged = self.sizes.staged_bytes if tiles.heads > 1 else 0
        bursts = 2 * trips + _waves(staged, self.spec)
        buffer = max(self.score_bytes, self.query_bytes)
        moved = _moved_bytes(self.sizes, tiles) + staged
        moved += 2 * self.spilled * buffer * self.spec.cores_per_card * trips
        work = executions + bursts + _waves(moved, self.spec)
        ties = (-self.cores, self.laid_out_bytes * trips, tiles.batch, tiles.heads, tiles.queries, tiles.groups)
        return (work, self.spilled, bursts, moved, executions, *ties, tiles.blocks)

    @property
    def selected(self) -> AttentionTiles:
        """The tiles with these estimates."""
        return replace(self.tiles, cores=self.cores, live_bytes=self.live_bytes, spilled=self.spilled)


def _executions(tiles: AttentionTiles) -> int:
    """Kernels that run."""
    groups = ceil(tiles.blocks / min(tiles.blocks, BLOCKS_OF_GROUP))
    return tiles.outer * (TILE_EXECUTIONS + BLOCK_EXECUTIONS * tiles.blocks + groups)


def _waves(moved: int, spec: SpyreSpec) -> int:
    return ceil(moved / (spec.cores_per_card * WAVE_BYTES))


def _moved_bytes(sizes: AttentionSizes, tiles: AttentionTiles) -> int:
    """Bytes of device memory: queries and results once, keys and values for each tile of queries or of their heads."""
    rows = sizes.heads * sizes.queries + sizes.kv_heads * sizes.keys * tiles.cut_groups * tiles.queries
    elements = 2 * sizes.batch * sizes.features * rows
    for mask in sizes.masks:
        walked = zip(mask, sizes.scores, tiles.counts, strict=True)
        again = [count for own, extent, count in walked if own == 1 and extent != 1]
        elements += prod(mask) * prod(again)
    return elements * sizes.element_bytes


def _decode_tiles(sizes: AttentionSizes, spec: SpyreSpec) -> AttentionTiles:
    """One query: the fewest executions, or few blocks of keys that stay in the scratchpads after they are laid out."""
    batch = sizes.batch // 2 if sizes.batch % 2 == 0 else sizes.batch
    rows = sizes.batch // batch * sizes.heads
    fitting, kept = list[AttentionTiles](), list[AttentionTiles]()
    for blocks in _block_counts(sizes.keys):
        tiles = AttentionTiles(batch=batch, groups=sizes.group, blocks=blocks)
        block = sizes.keys // blocks
        scores, queries = DECODE_LIVE if tiles.looped else STRAIGHT_LIVE
        live = rows * (scores * block + queries * sizes.features + 2) * sizes.element_bytes
        if live > spec.lx_usable_bytes:
            continue
        tiles = replace(tiles, live_bytes=live)
        fitting.append(tiles)
        keys = sizes.batch // batch * sizes.kv_heads * block * sizes.features * sizes.element_bytes
        laid_out = ceil(keys / min(spec.cores_per_card, 2 * sizes.heads))
        few = blocks <= max(LEAST_KEPT_BLOCKS, MOST_KEPT_KEYS // block)
        if laid_out <= KEPT_BYTES_PER_HEAD * sizes.group and block >= LEAST_KEPT_BLOCK and few:
            kept.append(tiles)
    return min(kept or fitting, key=lambda t: (_executions(t), t.blocks), default=_fallback(sizes))


def _fallback(sizes: AttentionSizes) -> AttentionTiles:
    """Tiles where nothing fits the scratchpads: few heads, and blocks of at most a quarter of the keys."""
    quarter = max(STICK_KEYS, ceil(ceil(sizes.keys / 4) / STICK_KEYS) * STICK_KEYS)
    heads = next(n for n in FALLBACK_HEADS if sizes.kv_heads % n == 0)
    return AttentionTiles(
        batch=sizes.batch // 2 if sizes.batch % 2 == 0 else sizes.batch,
        heads=sizes.kv_heads // heads,
        groups=sizes.group,
        queries=exact_tiles(sizes.queries, LONGEST_TILE),
        blocks=exact_tiles(sizes.keys, min(LONGEST_TILE, quarter), STICK_KEYS),
    )
