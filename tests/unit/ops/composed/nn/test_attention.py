"""Attention against a softmax of products in numpy: what it means, and what it is made of."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.composed.nn.attention import attention_shape, block_ends
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.ops.cases import INF, Array, agree, budgets, check_samples, entry_of, made, result, result_of_body

MODULE = "spyre_mlir.ops.composed.nn.attention"

RNG = np.random.default_rng(11)
Q, K, V = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 5, 4)), RNG.normal(size=(2, 5, 6))
OVERLOAD = "scaled_dot_product_attention"


def attended(q: Any, k: Any, v: Any, mask: Any = None, scale: float = 0.5) -> Array:
    """Row by row; the scale is one over the root of four features."""
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = scores if mask is None else scores + (np.where(mask, 0, -INF) if mask.dtype == bool else mask)
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return np.nan_to_num(e / e.sum(-1, keepdims=True)) @ v


def both(*tensors: Any, **facts: Any) -> list[Array]:
    return [result(OVERLOAD, *tensors, **facts), made(OVERLOAD, *tensors, **facts)]


def test_a_mean_of_the_values_by_how_near_their_keys_are() -> None:
    for got in both(Q, K, V):
        agree(got, attended(Q, K, V))


@pytest.mark.parametrize("scale", [0.25, -2.0, 3])
def test_scores_are_scaled(scale: float) -> None:
    for got in both(Q, K, V, scale=scale):
        agree(got, attended(Q, K, V, scale=scale))


def test_no_query_sees_keys_behind_its_place() -> None:
    for q, k, v in ((Q, K, V), (K, Q, V[:, :3])):
        seen = np.arange(q.shape[1])[:, None] >= np.arange(k.shape[1])
        for got in both(q, k, v, is_causal=True):
            agree(got, attended(q, k, v, seen))


@pytest.mark.parametrize("most_reads", [1.25, 1.5, 1.75])
def test_blocks_of_queries_compute_the_least_that_reads_keys_seldom(most_reads: float) -> None:
    """All ways to put 1,536 queries in blocks of so many times 128; a product waits for the keys of a short block.

    Equal blocks of 512 read keys twice.
    """
    kept = list[tuple[int, tuple[int, ...]]]()
    for count in range(12):
        for inner in combinations(range(128, 1536, 128), count):
            ends = (*inner, 1536)
            blocks = [(e - s, e) for s, e in zip((0, *inner), ends, strict=True)]
            if sum(ends) <= most_reads * 1536 and all(own * e + 2 * own**2 <= 6e6 for own, e in blocks):
                kept.append((sum(max(own, 512) * e for own, e in blocks), ends))
    found = block_ends(1536, most_reads)
    assert found[-1] == 1536 and sum(found) <= most_reads * 1536
    assert sum(max(e - s, 512) * e for s, e in zip([0, *found], found, strict=False)) == min(kept)[0]


def test_blocks_are_equal_where_that_is_seldom_enough_and_where_no_others_fit() -> None:
    """Scores of 512 queries and 11,000 keys leave no room for those of more queries."""
    assert block_ends(2048, 2.5) == [512, 1024, 1536, 2048]
    assert block_ends(10_752, 3.0) == list(range(512, 10_753, 512))


@pytest.mark.parametrize(
    "shared", [8, pytest.param(2, marks=pytest.mark.slow(reason="eight heads of their own show the same"))]
)
def test_causal_attention_moves_at_most_twice_its_bytes(shared: int) -> None:
    """Queries, keys, values and the result once would be the least."""
    with torch.device("meta"):
        q, k = (torch.zeros(1, heads, 4096, 128, dtype=torch.float16) for heads in (8, shared))
    model = FunctionModel(lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True))
    options: PassOptions = {"place-inputs": {"inputs": "free"}}
    lowered = lower(import_program(model, (q, k, k)).module, make_context(), options=options)
    moved = module_timeline(lowered.modules["superdsc"]).moved_bytes
    least = (8 + shared + shared + 8) * 4096 * 128 * 2
    assert least < moved <= 2 * least


TRUTH = np.array([[True, False, True, True, False], [False] * 5, [False, False, False, False, True]])


def test_keys_that_a_mask_hides_have_no_part_and_a_row_without_any_is_0() -> None:
    for got in both(Q, K, V, TRUTH):
        agree(got, attended(Q, K, V, TRUTH))
        assert (got[:, 1] == 0).all()


def test_a_mask_of_numbers_is_added() -> None:
    mask = np.array([[0.5, -1.0, 2.0, -INF, 0.0], [-INF] * 5, [0.0, -INF, -INF, -INF, -INF]])
    for got in both(Q, K, V, mask):
        agree(got, attended(Q, K, V, mask))


def test_a_row_under_the_least_float_is_uniform() -> None:
    mask = np.full((3, 5), np.finfo(np.float32).min, np.float64)
    for got in both(Q, K, V, mask):
        agree(got, np.broadcast_to(V.mean(1, keepdims=True), (2, 3, 6)))


def test_a_mask_of_another_float_type_is_brought_to_that_of_the_scores() -> None:
    def body(b: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        decompose = entry_of(OVERLOAD).decompose
        assert decompose is not None
        return decompose(b, q, k, v, b.cast(mask, "f16"))

    mask = np.array([0.5, -1.0, 2.0, 0.0, 0.25])
    agree(result_of_body(body, Q, K, V, mask), attended(Q, K, V, mask))


def test_batches_broadcast() -> None:
    for got in both(Q[:, None], K, V):
        agree(got, attended(Q[:, None], K, V))


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_heads_share_keys(heads: int) -> None:
    q, k, v = RNG.normal(size=(3, 4, 2, 4)), RNG.normal(size=(3, heads, 5, 4)), RNG.normal(size=(3, heads, 5, 6))
    wanted = attended(q, np.repeat(k, 4 // heads, 1), np.repeat(v, 4 // heads, 1))
    for got in both(q, k, v, enable_gqa=True):
        agree(got, wanted)


def test_shapes() -> None:
    assert attention_shape((4, 3, 8), (2, 4, 6, 8), (2, 4, 6, 5)) == (2, 4, 3, 5)
    assert attention_shape((1, 4, 3, 8), (1, 2, 6, 8), (1, 2, 6, 5), enable_gqa=True) == (1, 4, 3, 5)
    assert attention_shape((3, 8), (6, 8), (6, 5), attn_mask=(3, 6), scale=0.5) == (3, 5)


def test_dropout_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"with dropout 0\.1\n  try: call model\.eval\(\) before export"):
        made(OVERLOAD, Q, K, V, dropout_p=0.1)


def test_errors_that_are_allowed() -> None:
    assert budgets(MODULE) == {"attention": (32, True)}


def test_samples_fit() -> None:
    check_samples(MODULE)
