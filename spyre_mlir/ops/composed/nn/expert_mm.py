"""Products of rows with the matrices of their experts, as IBM's Foundation Model Stack calls them."""

from __future__ import annotations

import operator
from functools import reduce

from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.nn.grouped_mm import groups_at_once
from spyre_mlir.ops.helpers.slicing import part
from spyre_mlir.ops.ignored_arguments import PADDING_SIZE
from spyre_mlir.ops.value import Value

EXPERT_MM = "moe::moe_mm"


@ATEN.composed(aten=[EXPERT_MM], ulps=16, ignores=[PADDING_SIZE])
def expert_mm(
    b: Build,
    input: Value,
    moe_matrix: Value,
    token_expert_mapping: Value,
    padded_token_ids_per_block: Value,
    expert_block_mapping: Value,
    total_padded_tokens: Value,
    *,
    topk: int,
) -> Value:
    """The product of each row with the matrix [columns, depth] of each of its experts.

    The result is [tokens, experts of each, columns]. Rows are those of tokens if each meets `topk` matrices, and with
    `topk` 1 those of tokens and experts, in this order. Every row meets every matrix, and what is not its expert's is
    dropped: which rows an expert has is data, and the device has no loop whose bounds are data.
    """
    # They put rows of one expert together for a kernel that walks them so.
    del padded_token_ids_per_block, expert_block_mapping, total_padded_tokens
    tokens, choices = token_expert_mapping.shape
    experts, columns, depth = moe_matrix.shape
    rows = input.view(tokens, choices // topk, depth)
    own = token_expert_mapping.view(1, tokens, choices)
    together = groups_at_once(experts, tokens * choices * columns)
    firsts = range(0, experts, together)
    return reduce(operator.add, [_sum(b, rows, part(b, moe_matrix, 0, e, e + together), own - e) for e in firsts])


def _sum(b: Build, rows: Value, matrices: Value, own: Value) -> Value:
    """The products with some experts, each where it is the row's own."""
    count, columns, depth = matrices.shape
    tokens, each, _ = rows.shape
    everywhere = rows.view(1, tokens * each, depth).expand(count, tokens * each, depth)
    products = b.call("bmm", everywhere, matrices.transpose(1, 2)).view(count, tokens, each, columns)
    inside = b.iota(count, own.element).view(count, 1, 1).eq(own)
    return inside.unsqueeze(-1).where(products, 0.0).sum(0)
