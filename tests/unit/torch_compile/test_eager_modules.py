"""Modules that `fully_shard` divides: compiled where Dynamo captures them, named where it leaves them to eager."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import deepcopy

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from spyre_mlir import torch_compile
from spyre_mlir.torch_compile.eager_modules import EagerModulesWarning

X = torch.linspace(-1, 1, 32).reshape(4, 8)


class Block(nn.Module):
    """A layer with a forward of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x).tanh()


class Blocks(nn.Module):
    """Two blocks and a layer of torch's own class."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch_compile.forget()
    torch.manual_seed(0)


@pytest.fixture
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    yield
    dist.destroy_process_group()


def divided(model: nn.Module, *modules: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cpu", (1,))
    for module in (*modules, model):
        fully_shard(module, mesh=mesh)
    return model


@torch.no_grad()
@pytest.mark.usefixtures("one_rank")
def test_blocks_are_compiled_and_their_memory_stays_the_models() -> None:
    eager = Blocks()
    model = deepcopy(eager)
    divided(model, *model.blocks)  # frees the memory of whole weights behind every block
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact"})
    with warnings.catch_warnings():
        warnings.simplefilter("error", EagerModulesWarning)
        for _ in range(2):
            torch.testing.assert_close(compiled(X), eager(X), rtol=1e-4, atol=1e-5)
        eager.blocks[1].layer.bias += 1
        model.blocks[1].layer.bias += 1
        torch.testing.assert_close(compiled(X), eager(X), rtol=1e-4, atol=1e-5)
    assert "forward" in {made.function for made in torch_compile.compilations()}


@pytest.mark.usefixtures("one_rank")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # Dynamo's own
def test_they_are_trained() -> None:
    eager = Blocks()
    model = deepcopy(eager)
    divided(model, *model.blocks)
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact", "training": True})
    for call, each in ((eager, eager), (compiled, model)):
        optimizer = torch.optim.SGD(each.parameters(), 0.5)
        for _ in range(2):
            optimizer.zero_grad()
            call(X).square().mean().backward()
            optimizer.step()
    for found, wanted in zip(model.parameters(), eager.parameters(), strict=True):
        assert isinstance(found, DTensor)
        torch.testing.assert_close(found.full_tensor(), wanted, rtol=1e-4, atol=1e-5)


@torch.no_grad()
@pytest.mark.usefixtures("one_rank")
def test_modules_that_torch_runs_in_eager_are_named_once() -> None:
    model = Blocks()
    divided(model, model.head)
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact"})
    with pytest.warns(EagerModulesWarning, match=r"modules of Blocks in eager.*: head \(Linear\)\n  try: "):
        compiled(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", EagerModulesWarning)
        compiled(X[:2])


@torch.no_grad()
@pytest.mark.usefixtures("one_rank")
def test_a_container_is_the_model_itself() -> None:
    compiled = torch.compile(divided(nn.Sequential(Block(), nn.Linear(8, 8))), backend="spyre")
    with pytest.warns(EagerModulesWarning, match=r"the model itself \(Sequential\)"):
        compiled(X)


@torch.no_grad()
def test_compile_of_a_module_of_torchs_own_says_that_it_does_nothing() -> None:
    layer, block = nn.Linear(8, 8), Block()
    layer.compile(backend="spyre")
    with pytest.warns(EagerModulesWarning, match="`compile` of torch's own Linear does nothing"):
        layer(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", EagerModulesWarning)
        layer(X[:2])
        block.compile(backend="spyre", options={"numerics": "exact"})
        block(X)
        torch.compile(layer, backend="spyre", options={"numerics": "exact"})(X)
    assert len(torch_compile.compilations()) == 2
