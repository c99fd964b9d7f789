"""Parts that are computed again for a backward pass, and parts that are compiled once: with and without gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import spyre_mlir
from tests.functions import FunctionModel

X = torch.randn(4, 16, generator=torch.Generator().manual_seed(1))
TRAINING = {"training": True, "numerics": "exact", "host_fallback": "allow"}
WEIGHT = torch.randn(16, 16, generator=torch.Generator().manual_seed(2)) / 4


@torch.compiler.nested_compile_region
def region(x: Tensor) -> Tensor:
    return (x @ WEIGHT).sin()


def kept(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    made = checkpoint(function, x, use_reentrant=False)
    assert isinstance(made, Tensor)
    return made


def a_checkpoint(x: Tensor) -> Tensor:
    return kept(lambda a: (a @ WEIGHT).relu(), x) + 1


def a_checkpoint_in_another(x: Tensor) -> Tensor:
    return kept(lambda a: kept(lambda b: (b @ WEIGHT).sin(), a) * 2, x)


def a_checkpoint_in_a_branch(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda a: kept(lambda b: (b @ WEIGHT).sin(), a), lambda a: a.cos(), (x,))


def a_region_called_twice(x: Tensor) -> Tensor:
    return region(region(x)) + 1


def a_region_in_a_branch(x: Tensor) -> Tensor:
    return torch.cond(x.sum() > 0, lambda a: region(a).cos(), region, (x,))


@pytest.mark.parametrize(
    "program",
    [a_checkpoint, a_checkpoint_in_another, a_checkpoint_in_a_branch, a_region_called_twice, a_region_in_a_branch],
)
def test_programs_give_eagers_numbers(program: Callable[[Tensor], Tensor]) -> None:
    torch._dynamo.reset()
    compiled = spyre_mlir.compile(FunctionModel(program), (X,), numerics="exact")
    captured = torch.compile(FunctionModel(program), backend="spyre", options={"numerics": "exact"}, fullgraph=True)
    for x in (X - X.mean() + 1, X - X.mean() - 1):  # both branches
        with torch.compiler.set_stance("force_eager"):
            wanted = program(x)
        torch.testing.assert_close(compiled(x), wanted)
        torch.testing.assert_close(captured(x), wanted)


def a_branch_in_a_checkpoint(x: Tensor) -> Tensor:
    def branching(a: Tensor) -> Tensor:
        return torch.cond(a.sum() > 0, lambda b: b + b.shape[0], lambda b: b * b.shape[0], (a,)) @ WEIGHT

    return kept(branching, x)


def a_loop_in_a_checkpoint(x: Tensor) -> Tensor:
    size = x.shape[0]

    def loop(a: Tensor) -> Tensor:
        begin = torch.zeros((), dtype=torch.int64), a
        return while_loop(lambda i, _: i < size, lambda i, b: (i + 1, (b @ WEIGHT).sin() + size), begin)[1]

    return kept(loop, x)


def slices_in_a_checkpoint(x: Tensor) -> Tensor:
    size = x.shape[0]
    return kept(lambda a: map_slices(lambda row: row * size, a), x) + 1


def a_scan_over_columns_in_a_checkpoint(x: Tensor) -> Tensor:
    return kept(lambda a: scan(lambda c, row: (c * 0.5 + row, c - row.shape[0]), a[:, 0] * 2, a.T)[1], x)


@pytest.mark.parametrize(
    "program",
    [
        a_checkpoint,
        a_branch_in_a_checkpoint,
        a_loop_in_a_checkpoint,
        slices_in_a_checkpoint,
        a_scan_over_columns_in_a_checkpoint,
    ],
)
def test_sizes_may_be_symbols(program: Callable[[Tensor], Tensor]) -> None:
    torch._dynamo.reset()
    rows = ({0: torch.export.Dim("rows", min=2, max=64)},)
    compiled = spyre_mlir.compile(FunctionModel(program), (X,), dynamic_shapes=(rows,), numerics="exact")
    captured = torch.compile(FunctionModel(program), backend="spyre", dynamic=True, options={"numerics": "exact"})
    for x in (X - X.mean() + 1, (X - X.mean() - 1)[:3]):
        with torch.compiler.set_stance("force_eager"):
            wanted = program(x)
        torch.testing.assert_close(compiled(x), wanted)
        torch.testing.assert_close(captured(x), wanted)


class Block(nn.Module):
    """A layer that is computed again, beside one that is not; both draw."""

    def __init__(self, inner: Callable[[Block, Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.norm, self.inner = nn.Linear(16, 16), nn.BatchNorm1d(16), inner

    def forward(self, x: Tensor) -> Tensor:
        y = kept(lambda a: self.inner(self, a), x)
        return (y.sin() + functional.dropout(y, 0.1, self.training)).square().sum()


def dropped(block: Block, x: Tensor) -> Tensor:
    return functional.dropout(block.linear(functional.dropout(x, 0.3)).sin(), 0.5)


def with_noise(block: Block, x: Tensor) -> Tensor:
    return block.linear(x * torch.rand_like(x)) * torch.randn(4, 1)


def in_a_region(block: Block, x: Tensor) -> Tensor:
    return region(block.linear(x))


@pytest.mark.parametrize("inner", [dropped, with_noise, in_a_region])
def test_the_backward_pass_has_the_numbers_of_the_forward_pass(inner: Callable[[Block, Tensor], Tensor]) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Block(inner)
    twin = copy.deepcopy(model)
    with torch.enable_grad():
        for run in (torch.compile(model, backend="spyre", options=TRAINING, fullgraph=True), twin):
            torch.manual_seed(3)
            run(X).backward()
    for mine, eager in zip(model.linear.parameters(), twin.linear.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, eager.grad, rtol=2e-5, atol=2e-5)


def test_running_statistics_change_once() -> None:
    """Eager changes them once more where it computes the layer again; its numbers are those of a layer without that."""
    torch._dynamo.reset()
    model = Block(lambda block, x: block.norm(block.linear(x)))
    with torch.enable_grad():
        torch.compile(model, backend="spyre", options=TRAINING)(X).backward()
    assert model.norm.num_batches_tracked is not None and model.norm.num_batches_tracked.item() == 1
    torch.testing.assert_close(model.norm.running_mean, model.linear(X).mean(0) / 10)
