"""Operators that Dynamo or a layer has fused are expanded to unfused operators.

Without gradients `nn.TransformerEncoderLayer` may take one operator for the whole layer, which is a setting of the
process and left to its owner. Updates by a scaled tensor, as optimizers make them, arrive as multiply-adds of Inductor.
`x.data`, which torch would make outside of a trace, is `x.detach()`: it has the memory of `x`, as that has.
"""

from __future__ import annotations

import torch
from torch.fx import GraphModule
from torch.nn import functional

from spyre_mlir.frontend.torch_private import FUSED_ENCODER_LAYER

Tensor = torch.Tensor
_MULTIPLY_ADD = "prims.fma.default"  # defined when Dynamo first needs it
_DATA = "_get_data_attr"  # Dynamo's function for `x.data`
_OF_QUERIES, _OF_KEYS = 0, 1  # what a mask is for; else it is whole, with batches and heads


def unfused(graph: GraphModule) -> GraphModule:
    """Replace fused operators of a captured graph, in place."""
    for node in graph.graph.find_nodes(op="call_function", target=FUSED_ENCODER_LAYER):
        node.target = _encoder_layer
    for node in graph.graph.nodes:
        if str(node.target) == _MULTIPLY_ADD:
            node.target = _multiply_add
        if getattr(node.target, "__name__", "") == _DATA:
            node.target = torch.Tensor.detach
    graph.recompile()
    return graph


def _multiply_add(a: Tensor, b: Tensor | float, c: Tensor) -> Tensor:
    return a * b + c


def _encoder_layer(
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """As the fused operator, argument by argument."""

    def attention(x: Tensor) -> Tensor:
        parts = functional.linear(x, qkv_weight, qkv_bias).chunk(3, -1)
        query, key, value = (part.view(*part.shape[:2], num_heads, -1).transpose(1, 2) for part in parts)
        seen = None if mask is None else _seen(mask, mask_type)
        out = functional.scaled_dot_product_attention(query, key, value, seen)
        return functional.linear(out.transpose(1, 2).flatten(2), proj_weight, proj_bias)

    def feed_forward(x: Tensor) -> Tensor:
        inner = functional.linear(x, ffn_weight_1, ffn_bias_1)
        return functional.linear(functional.gelu(inner) if use_gelu else inner.relu(), ffn_weight_2, ffn_bias_2)

    def norm_1(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def norm_2(x: Tensor) -> Tensor:
        return functional.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attention(norm_1(src))
        return x + feed_forward(norm_2(x))
    x = norm_1(src + attention(src))
    return norm_2(x + feed_forward(x))


def _seen(mask: Tensor, kind: int | None) -> Tensor:
    """Return the keys visible to a query: the operator hides nonzero mask entries, so -inf in a mask of numbers."""
    seen = mask.to(torch.bool).logical_not()
    if kind == _OF_KEYS:
        return seen[:, None, None, :]
    return seen if kind != _OF_QUERIES else seen[None, None]
