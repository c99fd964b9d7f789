"""Attention: a softmax of products, with a mask or without.

Decision: docs/decisions/0152-causal-blocks-grow-where-keys-are-read-often.md
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops.annotations import INF, Lanes, Number, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.reduction_dims import MASKED
from spyre_mlir.ops.table import Sample
from spyre_mlir.ops.value import Value


def _with_mask(scores: Lanes, mask: Lanes) -> Lanes:
    """Scores where a boolean mask holds, else minus infinity; or scores plus an additive mask."""
    return np.where(mask, scores, -INF) if mask.dtype.kind == "b" else scores + mask


def attention_shape(
    query: tuple[int, ...],
    key: tuple[int, ...],
    value: tuple[int, ...],
    *,
    enable_gqa: bool = False,
    **_: object,
) -> tuple[int, ...]:
    """Shape of attention: that of query, against which the batches of key broadcast, with the features of value."""
    batch = query[:-2] if enable_gqa else np.broadcast_shapes(query[:-2], key[:-2], value[:-2])
    return (*batch, query[-2], value[-1])


def _attention_meaning(
    query: Lanes,
    key: Lanes,
    value: Lanes,
    attn_mask: Lanes | None,
    *,
    is_causal: bool,
    scale: Number | None,
    enable_gqa: bool,
    **_: object,
) -> Lanes:
    if enable_gqa:
        repeat = query.shape[-3] // key.shape[-3]
        key, value = np.repeat(key, repeat, axis=-3), np.repeat(value, repeat, axis=-3)
    factor = 1.0 / np.sqrt(query.shape[-1]) if scale is None else scale
    scores = query @ np.swapaxes(key, -1, -2) * factor
    if is_causal:
        attn_mask = np.tril(np.ones((query.shape[-2], key.shape[-2]), dtype=np.bool_))
    if attn_mask is not None:
        scores = _with_mask(scores, attn_mask)
    peak = np.max(scores, axis=-1, keepdims=True)
    e = np.exp(scores - np.where(peak == -INF, 0.0, peak))
    total = np.sum(e, axis=-1, keepdims=True)
    return (e / np.where(total == 0, 1.0, total)) @ value


@ATEN.composed(
    aten=["scaled_dot_product_attention"], promote=True, ulps=32, meaning=_attention_meaning, shape=attention_shape
)
def attention(
    b: Build,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    *,
    dropout_p: Number = 0.0,
    is_causal: bool = False,
    scale: Number | None = None,
    enable_gqa: bool = False,
) -> Value:
    """softmax(query @ key transposed * scale + mask) @ value; fully masked rows give 0."""
    if dropout_p:
        raise UnsupportedError(f"attention with dropout {dropout_p}", hint="call model.eval() before export")
    shared = enable_gqa and key.shape[-3] < query.shape[-3]
    most_reads = _most_reads(query, key, value)
    if enable_gqa:
        heads = query.shape[-3]
        key, value = repeat_heads(key, heads), repeat_heads(value, heads)
    factor = 1.0 / float(np.sqrt(query.shape[-1])) if scale is None else scale
    if is_causal:
        return _causal(b, query, key, value, factor, shared=shared, most_reads=most_reads)
    scores = (query * factor) @ key.transpose(-2, -1)
    mask = attn_mask if attn_mask is None or attn_mask.is_bool else b.cast(attn_mask, like=scores)
    return masked_softmax(b, scores, mask) @ value


# Queries of one block of causal attention. A block fills the PE array of all cores with the rows of few heads, and the
# more blocks there are, the less is computed that the mask hides: of n blocks (n + 1) / 2n.
CAUSAL_BLOCK = 512
# Bytes that attention may move over those of its arguments and its result.
CAUSAL_TRAFFIC = 2
CAUSAL_STEP = 128  # queries, by which the lengths of blocks differ then
# Numbers of one head and block: four heads have to fit in the scratchpads, as eight cores that share keys read them in
# no more time than one. They are the scores, and those of the block's own keys twice: before the mask, and the mask.
CAUSAL_NUMBERS = 6_000_000


def _causal(
    b: Build, query: Value, key: Value, value: Value, factor: Number, *, shared: bool, most_reads: float
) -> Value:
    """Attention of every query to the keys up to its own place, in blocks of queries where they are many."""
    rows, columns = query.shape[-2], key.shape[-2]
    if rows != columns or rows % CAUSAL_BLOCK or rows <= CAUSAL_BLOCK:
        scores = _below_diagonal(b, (query * factor) @ key.transpose(-2, -1))
        # The first key is seen by all queries, so that no row is masked as a whole, and exp gives 0 for masked entries.
        e = (scores - scores.amax(-1, keepdim=True)).exp()
        return (e / e.sum(-1, keepdim=True)) @ value
    ends = block_ends(rows, most_reads)
    made = [
        _causal_block(b, query, key, value, factor, first, end, shared=shared)
        for first, end in zip([0, *ends], ends, strict=False)
    ]
    return b.call("cat", made, dim=-2)


def _most_reads(query: Value, key: Value, value: Value) -> float:
    """How often keys and values may be read on average for all bytes to be `CAUSAL_TRAFFIC` times the least ones."""
    queries = prod(query.shape[:-1])
    once = queries * (query.shape[-1] + value.shape[-1])
    again = max(1, prod(key.shape) + prod(value.shape))
    # For the mask, all queries of four heads have a stick with their place.
    places = queries // 4 * DL16.elements_per_stick()
    return (CAUSAL_TRAFFIC * (once + again) - once - places) / again


def block_ends(rows: int, most_reads: float) -> list[int]:
    """Where blocks of queries end: equal ones, or where those read keys too often the ones that compute the least."""
    equal = list(range(CAUSAL_BLOCK, rows + 1, CAUSAL_BLOCK))
    if sum(equal) <= most_reads * rows:
        return equal
    # By end of a block and the keys that all blocks up to it read: the least to compute, and where they end.
    found: dict[int, dict[int, tuple[int, list[int]]]] = {0: {0: (0, [])}}
    for end in range(CAUSAL_STEP, rows + 1, CAUSAL_STEP):
        best = found[end] = {}
        for start in range(0, end, CAUSAL_STEP):
            own = end - start
            if own * end + 2 * own**2 > CAUSAL_NUMBERS:
                continue
            for keys, (before, ends) in found[start].items():
                # A short block waits for its keys as long as one that fills the PE array computes.
                computed = before + max(own, CAUSAL_BLOCK) * end
                if keys + end <= most_reads * rows and computed < best.get(keys + end, (computed + 1, []))[0]:
                    best[keys + end] = computed, [*ends, end]
    return min(found[rows].values())[1] if found[rows] else equal


def _causal_block(
    b: Build, query: Value, key: Value, value: Value, factor: Number, first: int, end: int, *, shared: bool
) -> Value:
    """The block of queries from `first` to `end`, to all keys before it without a mask and to its own with one."""
    q = _rows(b, query, first, end) * factor
    scores = q @ _rows(b, key, first, end).transpose(-2, -1)
    # One mask for each head: cores that divide heads have it in their scratchpads, and blocks of one length share it.
    scores = _causal_mask(b, scores.shape).where(scores, MASKED)
    if first:
        far = q @ _rows(b, key, 0, first).transpose(-2, -1)
        scores = b.call("cat", [far, scores], dim=-1)
    e = (scores - scores.amax(-1, keepdim=True)).exp()
    total, value = e.sum(-1, keepdim=True), _rows(b, value, 0, end)
    # Where heads share their keys, a product has time to write its result while it computes; else it waits for memory.
    return (e / total) @ value if shared else (e @ value) / total


def _rows(b: Build, x: Value, start: int, end: int) -> Value:
    return b.call("slice.Tensor", x, dim=-2, start=start, end=end)


def _below_diagonal(b: Build, scores: Value) -> Value:
    """Scores of keys up to the place of each query; the rest is the floor of masks."""
    return _causal_mask(b, scores.shape[-2:]).where(scores, MASKED)


def _causal_mask(b: Build, shape: Sequence[int]) -> Value:
    """Row number >= column number, from two short index tensors instead of a square constant."""
    *batch, rows, columns = shape
    row = b.call("arange.start_step", start=0, end=rows, step=1).unsqueeze(1).expand(*batch, rows, 1)
    return row.ge(b.call("arange.start_step", start=0, end=columns, step=1))


def masked_softmax(b: Build, scores: Value, mask: Value | None) -> Value:
    """Softmax over the last dimension; masked entries are 0, and so are fully masked rows."""
    if mask is None:
        return b.call("softmax.int", scores, dim=-1)
    if mask.is_bool:
        kept = mask.where(scores, MASKED)
    else:
        # The device has no infinity. What a mask takes below the floor is the floor itself, whatever the scores:
        # a row that is masked as a whole is uniform, as in torch, where the scores vanish beside finfo.min.
        masked = mask.le(MASKED)
        kept = masked.where(MASKED, scores + mask)
        mask = mask.ne(-INF)
    e = mask.where((kept - kept.amax(-1, keepdim=True)).exp(), 0.0)
    # A row with one entry left has a sum of at least exp(0) = 1, so the floor changes masked rows only.
    return e / e.sum(-1, keepdim=True).maximum(1.0)


def repeat_heads(x: Value, heads: int) -> Value:
    """Return [..., heads, rows, features] from a tensor with fewer heads, each of which neighbours share."""
    *batch, own, rows, features = x.shape
    if own == heads:
        return x
    return x.unsqueeze(-3).expand(*batch, own, heads // own, rows, features).view(*batch, heads, rows, features)


ATEN.samples(
    attention,
    Sample(((1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8))),
    Sample(((1, 4, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8)), {"is_causal": True, "enable_gqa": True, "scale": 0.5}),
    Sample(((1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)), {"is_causal": True}),
    Sample(((4, 3, 8), (2, 4, 6, 8), (2, 4, 6, 8))),
    Sample(((2, 2, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), (2, 1, 5, 7))),
)
