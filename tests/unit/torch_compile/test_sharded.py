"""Which inputs stand for others, and a program of a group of one rank for them; end_to_end/ranks has groups of more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.torch_compile.sharded import is_sharded

X = torch.linspace(-1, 1, 128).reshape(2, 64)


@pytest.fixture
def weight() -> Iterator[DTensor]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield distribute_tensor(torch.eye(64) * 2, init_device_mesh("cpu", (1,)), [Shard(0)])
    dist.destroy_process_group()


def test_inputs_that_stand_for_others(weight: DTensor) -> None:
    assert is_sharded([X, weight])
    assert not is_sharded([X, nn.Parameter(X), 3])


def test_results_stand_for_others_and_weights_stay_on_the_card(weight: DTensor) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(weight, requires_grad=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return DTensor.from_local(x, weight.device_mesh, [Replicate()]) @ self.weight

    compiled = torch.compile(Scaled(), backend="spyre", fullgraph=True)
    result = compiled(X)
    assert isinstance(result, DTensor)
    torch.testing.assert_close(result.to_local(), 2 * X, atol=2e-3, rtol=0)
    before = CARD.card_bytes
    compiled(X)
    assert CARD.card_bytes == before > 0


def test_parts_of_ranks_are_not_trained(weight: DTensor) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(weight)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return DTensor.from_local(x, weight.device_mesh, [Replicate()]) @ self.weight

    compiled = torch.compile(Scaled(), backend="spyre", options={"training": True})
    with torch.enable_grad(), pytest.raises(UnsupportedError, match="tensors of which a rank has a part"):
        compiled(X)


def test_a_nested_input_is_refused_where_the_model_reads_it() -> None:
    torch._dynamo.reset()
    given = torch.nested.nested_tensor([X, X[:1]], layout=torch.jagged)
    with pytest.raises(UnsupportedError, match=r"an input is a nested tensor\n  at: .*test_sharded.py:\d+"):
        torch.compile(lambda x: torch.relu(x) * 2, backend="spyre")(given)
