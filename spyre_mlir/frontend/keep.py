"""Which composite ops stay whole when a model is brought to functional form.

torch's default table takes attention apart into some 45 nodes, unrolls recurrent layers over time and
changes bfloat16 results; the ops below keep what their authors meant, and a later pass decides. What the op table
composes stays whole without being listed.
"""

from __future__ import annotations

# The host runs these, or the import where they depend on no input.
KEEP_WITHOUT_ENTRY = (
    # Taken apart, these make integers of what lies between float ends; torch makes integers of the ends first.
    "linspace.default",
    "linspace.Scalar_Tensor",
    "linspace.Tensor_Scalar",
    "linspace.Tensor_Tensor",
    # Taken apart, these check for errors by an op with side effects, which becomes a higher-order one.
    "linalg_inv.default",
    "linalg_solve.default",
    "linalg_cholesky.default",
    "linalg_lu_factor.default",
    "linalg_ldl_factor.default",
)
KEEP_COMPOSITES: tuple[str, ...] = (
    "linear.default",
    "scaled_dot_product_attention.default",
    "layer_norm.default",
    "rms_norm.default",
    "softmax.int",
    "gelu.default",
    "silu.default",
    "mish.default",
    "softplus.default",
    "matmul.default",
    "slice_scatter.default",
    "select_scatter.default",
    "index_copy.default",
    "masked_fill.Scalar",
    "masked_fill.Tensor",
    "tril.default",
    "triu.default",
    "stack.default",
    "clamp.default",
    "where.ScalarOther",
    "where.ScalarSelf",
    "where.Scalar",
    "rsub.Scalar",
    *KEEP_WITHOUT_ENTRY,
)
