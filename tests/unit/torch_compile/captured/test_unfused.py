"""Fused encoder layers made of other operators, against the layer of torch."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch import nn
from torch.fx import Graph, GraphModule

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.torch_private import FUSED_ENCODER_LAYER
from spyre_mlir.torch_compile.captured.unfused import unfused

EMBED, HEADS = 8, 2


def layer(**choices: Any) -> nn.TransformerEncoderLayer:
    torch.manual_seed(0)
    made = nn.TransformerEncoderLayer(EMBED, HEADS, 12, dropout=0.0, batch_first=True, layer_norm_eps=0.5, **choices)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made.eval()


def fused_call(x: torch.Tensor, of: Any, *mask: Any) -> tuple[Any, ...]:
    """The arguments that the layer calls the fused operator with."""
    attention = of.self_attn
    return (
        *(x, EMBED, HEADS, attention.in_proj_weight, attention.in_proj_bias),
        *(attention.out_proj.weight, attention.out_proj.bias, of.activation_relu_or_gelu == 2, of.norm_first),
        *(of.norm1.eps, of.norm1.weight, of.norm1.bias, of.norm2.weight, of.norm2.bias),
        *(of.linear1.weight, of.linear1.bias, of.linear2.weight, of.linear2.bias, *mask),
    )


def run(arguments: tuple[Any, ...]) -> torch.Tensor:
    """What a graph gives that calls the fused operator, made of others."""
    graph = Graph()
    inputs = [graph.placeholder(f"a{n}") for n in range(len(arguments))]
    graph.output(graph.call_function(FUSED_ENCODER_LAYER, tuple(inputs)))
    made = unfused(whole := GraphModule(nn.Module(), graph))
    assert made is whole
    assert not graph.find_nodes(op="call_function", target=FUSED_ENCODER_LAYER)
    assert not any(value is FUSED_ENCODER_LAYER for value in made.forward.__globals__.values())
    with torch.no_grad():
        return made(*arguments)


X = torch.randn(3, 5, EMBED, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_a_layer_is_what_it_is_in_training(activation: str, norm_first: bool) -> None:
    """In training mode torch takes a layer apart itself."""
    of = layer(activation=activation, norm_first=norm_first)
    of.activation_relu_or_gelu = 2 if activation == "gelu" else 1
    with torch.no_grad():
        wanted = of.train()(X)
    torch.testing.assert_close(run(fused_call(X, of)), wanted, rtol=1e-5, atol=1e-5)


KEYS = torch.tensor([[False, False, True, False, False]] * 2 + [[False, False, False, True, True]])
QUERIES = torch.ones(5, 5, dtype=torch.bool).triu(1)
WHOLE = (KEYS[:, None, None] | QUERIES).expand(3, HEADS, 5, 5)


@pytest.mark.parametrize(
    ("mask", "kind", "padding", "causal"),
    [
        (KEYS, 1, KEYS, None),
        (QUERIES, 0, None, QUERIES),
        (torch.zeros(5, 5).masked_fill(QUERIES, -torch.inf), 0, None, QUERIES),
        (WHOLE, 2, KEYS, QUERIES),
    ],
)
def test_masks_hide_keys(mask: torch.Tensor, kind: int, padding: Any, causal: Any) -> None:
    of = layer()
    with torch.no_grad():
        wanted = of.train()(X, src_mask=causal, src_key_padding_mask=padding)
    torch.testing.assert_close(run(fused_call(X, of, mask, kind)), wanted, rtol=1e-5, atol=1e-5)


def test_other_calls_stay() -> None:
    graph = Graph()
    graph.output(graph.call_function(torch.relu, (graph.placeholder("x"),)))
    assert unfused(GraphModule(nn.Module(), graph))(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]


def test_multiply_adds_of_optimizers_are_unfused() -> None:
    from torch._inductor import inductor_prims

    graph = Graph()
    a, b, c = (graph.placeholder(name) for name in "abc")
    graph.output((graph.call_function(inductor_prims.fma, (a, b, c)),))
    made = unfused(GraphModule({}, graph))
    (result,) = made(torch.tensor([2.0]), torch.tensor(3.0), torch.tensor([4.0]))
    assert result.tolist() == [10.0]
    assert not any(str(node.target) == "prims.fma.default" for node in made.graph.nodes)


def test_data_of_a_tensor_is_read_and_written() -> None:
    class Clipped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([3.0, -0.5]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.weight.data.clamp_(-1, 1)
            return x.data * self.weight

    model, x = Clipped(), torch.tensor([2.0, 4.0], requires_grad=True)
    trained = torch.compile(model, backend="spyre", options={"numerics": "exact", "training": True})
    trained(x).sum().backward()
    assert model.weight.tolist() == [1, -0.5]
    assert (cast(Any, model.weight.grad).tolist(), x.grad) == ([2, 4], None)


def test_other_memory_for_a_buffer_is_refused() -> None:
    class Exchanged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.kept.data = x + 1
            return x * self.kept

    with pytest.raises(UnsupportedError, match="assigns to its `data`"), torch.no_grad():
        torch.compile(Exchanged(), backend="spyre")(torch.ones(2))
