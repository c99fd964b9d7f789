"""Which composite ops stay whole when a model is brought to functional form.

torch's default table takes attention apart into some 45 nodes, unrolls recurrent layers over time and
changes bfloat16 results; the ops below keep what their authors meant, and a later pass decides.
"""

from __future__ import annotations

KEEP_COMPOSITES: tuple[str, ...] = (
    "linear.default",
    "scaled_dot_product_attention.default",
    "layer_norm.default",
    "rms_norm.default",
    "group_norm.default",
    "instance_norm.default",
    "softmax.int",
    "log_softmax.int",
    "_safe_softmax.default",
    "gelu.default",
    "silu.default",
    "mish.default",
    "hardshrink.default",
    "matmul.default",
    "one_hot.default",
    "slice_scatter.default",
    "select_scatter.default",
    "index_copy.default",
    "masked_fill.Scalar",
    "masked_fill.Tensor",
    "tril.default",
    "triu.default",
    "cross_entropy_loss.default",
    "nll_loss_nd.default",
    "repeat_interleave.self_int",
    "stack.default",
    "new_zeros.default",
    "new_ones.default",
    "new_full.default",
    "zeros_like.default",
    "ones_like.default",
    "clamp.default",
    "var.correction",
    "std.correction",
    "roll.default",
    "logsumexp.default",
    "dropout.default",
    "where.ScalarOther",
    "where.ScalarSelf",
    "where.Scalar",
    "rsub.Scalar",
    "unfold.default",
    "take_along_dim.default",
    "moveaxis.int",
)
