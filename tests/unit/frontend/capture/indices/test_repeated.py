"""Look-ups of repeated indices."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir import compile as compile_model
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.capture.indices.repeated import with_repeated_rows
from tests.functions import FunctionModel

look_up: Callable[..., Tensor] = nn.functional.embedding
TABLE = torch.arange(40.0).reshape(5, 8)


@pytest.mark.parametrize(
    ("shape", "sizes", "read"),
    [
        ([1, 3], [4, 3], [1, 3]),
        ([3], [4, 3], [3]),
        ([4, 1], [2, 4, 1], [4, 1]),
        ([4, 3], [4, 3], [4, 3]),
    ],
)
def test_rows_are_looked_up_once(shape: list[int], sizes: list[int], read: list[int]) -> None:
    def function(ids: Tensor, table: Tensor) -> Tensor:
        return look_up(ids.expand(sizes), table, padding_idx=1)

    inputs = (torch.arange(12)[: torch.Size(shape).numel()].reshape(shape) % 5, TABLE)
    program = with_repeated_rows(decompose(export_model(FunctionModel(function), inputs, {})))
    program.graph.lint()
    (node,) = (n for n in program.graph.nodes if n.target is torch.ops.aten.embedding.default)
    assert list(node.args[1].meta["val"].shape) == read
    (result,) = torch.fx.GraphModule(nn.Module(), program.graph)(*inputs)
    assert torch.equal(result, function(*inputs))


class Typed(nn.Module):
    """Types of tokens as BERT gives them: the same for each sequence of a batch."""

    zeros: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.types = nn.Embedding(2, 64)
        self.register_buffer("zeros", torch.zeros(1, 8, dtype=torch.int64), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.types(self.zeros.expand(x.shape[0], -1))


def test_a_batch_reads_types_of_tokens_once() -> None:
    model, x = Typed(), torch.randn(4, 8, 64)
    compiled = compile_model(model, (x,))
    assert "tensor<1x8x64xf32>" in compiled.mlir("aten") and "embedding" not in compiled.mlir("spyre.loop")
    assert compiled.mlir("spyre.kernel").count("spyre.kernel.compute") == 1
    assert compiled.verify(x)


def test_a_batch_of_any_size_repeats_rows() -> None:
    compiled = compile_model(Typed(), (torch.randn(4, 8, 64),), dynamic_shapes=({0: torch.export.Dim("n")},))
    x = torch.randn(3, 8, 64)
    assert compiled.verify(x)
