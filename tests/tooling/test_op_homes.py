"""Home of the overloads that models use most, and of those whose file is hardest to guess."""

from __future__ import annotations

import pytest

from spyre_mlir.ops import ATEN

HOMES = {
    "native.pointwise": (
        "add.Tensor mul.Tensor div.Tensor sub.Tensor neg rsqrt sqrt exp log tanh abs maximum le.Tensor where.self "
        "clamp floor"
    ),
    "native.activations": "relu sigmoid silu gelu mish softplus",
    "native.contractions": "linear mm bmm matmul",
    "native.views": "view permute unsqueeze expand transpose.int t select.int slice.Tensor squeeze.dim",
    "native.movement": "clone _to_copy cat",
    "native.gathers": "embedding index_select",
    "native.reductions": "sum.dim_IntList amax",
    "native.creation": "arange.start_step full",
    "composed.math.arithmetic": "rsub.Scalar addcmul lerp.Scalar clamp.Tensor",
    "composed.math.matmul": "addmm baddbmm",
    "composed.math.powers": "pow.Tensor_Scalar",
    "composed.math.trigonometry": "sin cos",
    "composed.math.bitwise": "bitwise_and.Tensor",
    "composed.math.division": "div.Tensor_mode",
    "composed.math.special_functions": "sinc erf",
    "composed.reductions.statistics": "mean.dim var.correction",
    "composed.reductions.cumulative": "cumsum",
    "composed.reductions.sorting": "topk sort",
    "composed.reductions.extremes": "argmax",
    "composed.reductions.counting": "histc",
    "composed.indexing.gathering": "gather index.Tensor",
    "composed.indexing.scattering": "scatter.src scatter_add",
    "composed.indexing.index_writes": "index_copy slice_scatter",
    "composed.indexing.rearrangement": "stack roll",
    "composed.indexing.masking": "masked_fill.Scalar",
    "composed.indexing.one_hot": "one_hot",
    "composed.nn.attention": "scaled_dot_product_attention",
    "composed.nn.normalization": "layer_norm native_layer_norm _native_batch_norm_legit_no_training",
    "composed.nn.group_normalization": "group_norm native_group_norm",
    "composed.nn.softmax": "softmax.int _log_softmax",
    "composed.nn.activations": "elu relu6 hardtanh",
    "composed.nn.convolution": "convolution conv1d",
    "composed.nn.pooling": "max_pool2d avg_pool2d adaptive_avg_pool2d",
    "composed.nn.padding": "constant_pad_nd",
    "composed.nn.resampling": "upsample_nearest2d.vec",
}  # fmt: skip
PAIRS = [(overload, home) for home, overloads in HOMES.items() for overload in overloads.split()]


@pytest.mark.parametrize(("overload", "home"), PAIRS)
def test_an_overload_is_where_it_is_looked_for(overload: str, home: str) -> None:
    entry = ATEN.find(overload)
    assert entry is not None
    function = entry.decompose if entry.composed else entry.meaning
    assert function is not None
    assert function.__module__ == f"spyre_mlir.ops.{home}"


def test_seventy_five_overloads_are_held() -> None:
    assert len({overload for overload, _ in PAIRS}) >= 75
