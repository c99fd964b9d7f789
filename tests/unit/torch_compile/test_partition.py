"""What the forward pass keeps for parts that are computed again: what they read before they write, and effects."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spyre_mlir.errors import UnsupportedError

TRAINING = {"training": True, "numerics": "exact", "host_fallback": "allow"}
X = torch.randn(2, 4, generator=torch.Generator().manual_seed(1))


@torch.library.custom_op("spyre_tests::with_noise", mutates_args={"total"})
def with_noise(total: Tensor, more: Tensor) -> None:
    """Draws numbers, so that another call writes others."""
    total.add_(more * torch.rand_like(more))


class Model(nn.Module):
    def __init__(self, inner: Callable[[Model, Tensor], Tensor]) -> None:
        super().__init__()
        self.linear, self.mean, self.inner = nn.Linear(4, 4), nn.Buffer(torch.arange(4.0)), inner
        self.kept = True

    def forward(self, x: Tensor) -> Tensor:
        made = checkpoint(lambda a: self.inner(self, a), x, use_reentrant=False) if self.kept else self.inner(self, x)
        return made.square().sum()  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]


def changed(model: Model, y: Tensor) -> Tensor:
    with torch.no_grad():
        return model.mean.lerp_(y.mean(0), 0.25)


def read_behind(model: Model, x: Tensor) -> Tensor:
    y = model.linear(x)
    return y.sin() * changed(model, y)


def read_before(model: Model, x: Tensor) -> Tensor:
    y = model.linear(x) * model.mean.exp()
    changed(model, y)
    return y.sin()


def read_through_a_view(model: Model, x: Tensor) -> Tensor:
    part, z = model.mean[1:3], model.linear(x)
    y = z[:, :2] * part.exp()
    changed(model, z)
    return y.sin()


def operators_that_write(model: Model, x: Tensor) -> Tensor:
    y = model.linear(x)
    with_noise(model.mean, y.detach()[0])
    return y.sin() * model.mean


@pytest.mark.parametrize("inner", [read_behind, read_before, read_through_a_view, operators_that_write])
def test_buffers_change_once_and_gradients_are_those_without_a_checkpoint(
    inner: Callable[[Model, Tensor], Tensor],
) -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Model(inner)
    twin = copy.deepcopy(model)
    twin.kept = False
    with torch.enable_grad():
        for run in (torch.compile(model, backend="spyre", options=TRAINING, fullgraph=True), twin):
            torch.manual_seed(3)
            for _ in range(2):
                run(X).backward()
    torch.testing.assert_close(model.mean, twin.mean)
    for mine, eager in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, eager.grad, rtol=2e-5, atol=2e-5)


def test_sparse_gradients_are_refused_at_the_call() -> None:
    layer = nn.Embedding(5, 4, sparse=True)
    compiled = torch.compile(lambda x: layer(x).sum(), backend="spyre", options=TRAINING)
    with torch.enable_grad(), pytest.raises(UnsupportedError, match=r"a gradient has the layout torch\.sparse_coo"):
        compiled(torch.arange(3))
