"""Attention of one tile as a loop over tiles computes it: block after block of keys, with a running softmax.

Decision: docs/decisions/0128-the-rivals-rules.md
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from typing_extensions import override


class AttentionTile(nn.Module):
    """Attention with query heads beside the head of keys that they share, which is not repeated.

    A call takes queries [batch, heads of keys, query heads of one, queries, features], keys and values [batch, heads of
    keys, keys, features], and masks that are added to scores, with as many dimensions as queries. It returns
    softmax(queries @ keys transposed * scale + masks) @ values, in the shape of the queries.
    """

    def __init__(self, blocks: int, scale: float) -> None:
        """Takes the number of blocks, a divisor of the number of keys, and the factor of queries."""
        super().__init__()
        self.blocks, self.scale = blocks, scale

    @override
    def forward(self, query: Tensor, key: Tensor, value: Tensor, *masks: Tensor) -> Tensor:
        """Attend to one block of keys after the other; none of them is masked as a whole."""
        query = query * self.scale
        peak = total = out = None
        size = key.shape[-2] // self.blocks
        for start in range(0, key.shape[-2], size):
            block = slice(start, start + size)
            scores = query @ key[:, :, None, block].transpose(-1, -2)
            for mask in masks:
                scores = scores + (mask[..., block] if mask.shape[-1] > 1 else mask)
            highest, values = scores.amax(-1, keepdim=True), value[:, :, None, block]
            if peak is None or total is None or out is None:
                weights = (scores - highest).exp()
                peak, total, out = highest, weights.sum(-1, keepdim=True), weights @ values
                continue
            # As published: the factor is found before the new maximum, so that this can overwrite the old one.
            factor = (peak - highest).clamp_max(0.0).exp()
            peak = torch.maximum(peak, highest)
            weights = (scores - peak).exp()
            total = total * factor + weights.sum(-1, keepdim=True)
            out = out * factor + weights @ values
        assert out is not None and total is not None
        return out / total


def tile_call(
    queries: Sequence[int], keys: int, masks: Sequence[Sequence[int]], *, blocks: int, scale: float
) -> tuple[AttentionTile, tuple[Tensor, ...]]:
    """Return the model of one tile, and arguments in half precision that have no numbers.

    Args:
        queries: batch, heads of keys, query heads of one of these, queries, features.
        keys: of a sequence.
        masks: shapes of what is added to scores.
        blocks: of keys.
        scale: of scores.
    """
    kept = (*queries[:2], keys, queries[-1])
    shapes = (queries, kept, kept, *masks)
    inputs = tuple([torch.zeros(tuple(shape), dtype=torch.float16, device="meta") for shape in shapes])
    return AttentionTile(blocks, scale).eval(), inputs


__all__ = ["AttentionTile", "tile_call"]
