"""torch-spyre's selection of tiles for attention, against the selections that its own tests publish.

Expected numbers are facts of torch-spyre's tests/inductor/test_sdpa_tiling.py (October 2026): 32 cores that hold
1,625,344 bytes each, two bytes a number.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.planning.rival import RivalError
from spyre_mlir.planning.rival_attention import AttentionSizes, AttentionTiles, attention_tiles, exact_tiles

CARD = replace(SPYRE, lx_usable_bytes=1_625_344)


def sizes(
    heads: int = 12, kv_heads: int = 12, queries: int = 512, keys: int = 512, features: int = 128
) -> AttentionSizes:
    """An attention of one sequence without a mask."""
    return AttentionSizes(heads=heads, kv_heads=kv_heads, queries=queries, keys=keys, features=features)


def selected(*numbers: int) -> AttentionTiles:
    """The selection for heads, heads of keys, queries, keys and features."""
    return attention_tiles(sizes(*numbers), CARD)


def test_heads_that_fit_have_no_loop() -> None:
    tiles = selected(12, 12, 512, 512, 64)
    assert not tiles.looped and tiles.counts == (1, 1, 1, 1, 1)
    assert (tiles.cores, tiles.live_bytes, tiles.spilled) == (32, 336_640, 0)


def test_a_batch_of_an_encoder_has_no_loop() -> None:
    staged = 6 * 4 * 12 * 512 * 64 * 2
    wanted = replace(sizes(features=64), batch=4, masks=((4, 1, 1, 1, 512),), staged_bytes=staged)
    tiles = attention_tiles(wanted, CARD)
    assert not tiles.looped
    assert (tiles.cores, tiles.live_bytes, tiles.spilled) == (32, 1_182_720, 0)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "features", "block", "head_tiles", "group_tiles"),
    [(32, 8, 128, 512, 2, 1), (16, 8, 256, 256, 1, 1), (16, 2, 512, 256, 2, 1), (16, 1, 512, 256, 1, 2)],
)
def test_a_chunk_of_a_prompt(
    heads: int, kv_heads: int, features: int, block: int, head_tiles: int, group_tiles: int
) -> None:
    tiles = selected(heads, kv_heads, 512, 8192, features)
    assert (8192 // tiles.blocks, tiles.heads, tiles.groups, tiles.cores) == (block, head_tiles, group_tiles, 32)


@pytest.mark.parametrize(("queries", "block"), [(2, 4096), (8, 4096), (16, 4096), (64, 1024)])
def test_a_short_chunk_is_divided_over_heads_and_queries(queries: int, block: int) -> None:
    tiles = selected(32, 8, queries, 8192)
    assert (8192 // tiles.blocks, tiles.heads, tiles.groups, tiles.cores) == (block, 1, 1, 32)


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_heads_that_share_keys_do_not_lengthen_blocks(kv_heads: int) -> None:
    tiles = selected(16, kv_heads, 16, 8192, 512)
    assert (8192 // tiles.blocks, tiles.cores) == (1024, 32)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "queries", "keys", "features", "query_tiles", "block", "spilled"),
    [
        (32, 8, 512, 8192, 128, 2, 512, 1),
        (32, 8, 512, 32768, 128, 4, 1024, 0),
        (16, 8, 1024, 8192, 256, 2, 256, 0),
        (16, 8, 1024, 32768, 256, 2, 256, 0),
    ],
)
def test_masks_and_heads_that_are_staged_favour_tiles_of_queries(
    heads: int, kv_heads: int, queries: int, keys: int, features: int, query_tiles: int, block: int, spilled: int
) -> None:
    staged = 2 * (2 * kv_heads * keys + heads * queries) * features * 2
    wanted = replace(
        sizes(heads, kv_heads, queries, keys, features), masks=((1, 1, 1, queries, keys),), staged_bytes=staged
    )
    tiles = attention_tiles(wanted, CARD)
    assert tiles.counts == (1, 1, 1, query_tiles, keys // block)
    assert (tiles.spilled, tiles.cores) == (spilled, 32)


def test_without_staging_heads_are_cut() -> None:
    wanted = replace(sizes(32, 8, 512, 8192), masks=((1, 1, 1, 512, 8192),))
    assert attention_tiles(wanted, CARD).counts[1:4] == (2, 1, 1)
    assert attention_tiles(replace(wanted, staged_bytes=75_497_472), CARD).counts[1:4] == (1, 1, 2)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "features", "block"),
    [
        (16, 2, 512, 256),
        (8, 1, 512, 256),
        (16, 2, 256, 512),
        (16, 4, 256, 1024),
        (16, 4, 512, 1024),
        (32, 4, 512, 1024),
        (16, 1, 512, 1024),
    ],
)
def test_one_query_keeps_few_blocks_of_keys(heads: int, kv_heads: int, features: int, block: int) -> None:
    tiles = selected(heads, kv_heads, 1, 1024, features)
    assert (1024 // tiles.blocks, tiles.heads, tiles.groups) == (block, 1, heads // kv_heads)


@pytest.mark.parametrize(("kv_heads", "keys"), [(2, 2048), (2, 4096), (2, 8192), (1, 4096)])
def test_one_query_has_one_block_where_executions_count(kv_heads: int, keys: int) -> None:
    assert selected(16, kv_heads, 1, keys, 512).blocks == 1


@pytest.mark.parametrize(("numbers", "looped"), [((32, 8, 1, 128, 128), False), ((4, 1, 1, 512, 128), True)])
def test_query_heads_alone_are_no_loop(numbers: tuple[int, ...], looped: bool) -> None:
    tiles = selected(*numbers)
    assert tiles.groups > 1 and tiles.looped is looped


def test_odd_numbers_of_queries_use_fewer_cores() -> None:
    tiles = selected(12, 12, 500, 500)
    assert (tiles.blocks, tiles.cores) == (1, 30)


def test_blocks_are_whole_sticks() -> None:
    assert selected(16, 16, 3520, 3520).blocks == 5  # of 704 keys


def test_one_buffer_may_go_to_device_memory() -> None:
    tiles = attention_tiles(replace(sizes(), batch=2), replace(CARD, lx_usable_bytes=300 * 1024))
    assert (tiles.blocks, tiles.queries, tiles.heads) == (2, 1, 6)
    assert (tiles.live_bytes, tiles.spilled) == (311_552, 1)


def test_sequences_are_cut_too() -> None:
    tiles = attention_tiles(replace(sizes(), batch=6), replace(CARD, lx_usable_bytes=600 * 1024))
    assert (tiles.batch, tiles.heads, tiles.spilled) == (2, 4, 1)


@pytest.mark.parametrize("length", [8192, 32768])
def test_long_prompts_are_cut_along_heads_or_queries_and_keys(length: int) -> None:
    tiles = selected(12, 12, length, length)
    assert tiles.blocks > 1 and tiles.heads * tiles.queries > 1 and tiles.spilled <= 1


def test_where_nothing_fits_heads_go_by_fours_and_keys_by_quarters() -> None:
    tiles = attention_tiles(replace(sizes(), batch=2), replace(CARD, lx_usable_bytes=16 * 1024))
    assert tiles.counts == (1, 3, 1, 1, 4)


def test_heads_of_keys_have_to_divide_heads() -> None:
    with pytest.raises(RivalError, match="5 heads of keys do not divide 12 heads of queries"):
        sizes(12, 5)


@pytest.mark.parametrize("extent", [1, 63, 64, 130, 257, 509, 512, 3520])
@pytest.mark.parametrize("longest", [1, 7, 64, 127, 512])
def test_tiles_are_equal_and_of_whole_sticks(extent: int, longest: int) -> None:
    count = exact_tiles(extent, longest, 64)
    assert extent % count == 0 and extent // count <= longest
    assert longest < 64 or extent % 64 or extent // count % 64 == 0


@pytest.mark.parametrize("numbers", [(0, 64, 64), (64, 0, 64), (64, 64, -1)])
def test_tiles_of_nothing_are_an_error(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="give positive numbers"):
        exact_tiles(*numbers)
