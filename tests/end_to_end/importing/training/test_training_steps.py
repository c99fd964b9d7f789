"""Gradients of a loss as results of one program: every level against eager."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from tests.end_to_end.importing.training.test_training import FUNCTIONS, MODELS, close

# What a bias adds, the normalisation of a batch takes away: its gradient is rounding errors alone.
CANCELLED = {"convolution": ("inner.bias",)}


class Gradients(nn.Module):
    """A loss, and its gradients with respect to parameters."""

    def __init__(self, model: nn.Module, left_out: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.model, self.left_out = model, left_out

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            loss = self.model(x)
            parameters = [p for name, p in self.model.named_parameters() if name not in self.left_out]
            return loss, *torch.autograd.grad(loss, parameters)


class OfInput(nn.Module):
    """A loss, and its gradient with respect to the input."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        gradient, loss = torch.func.grad_and_value(self.function)(x)
        return loss, gradient


class Step(nn.Module):
    """A step of AdamW: weights and moments are buffers, which a call writes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.linspace(-1, 1, 12).view(3, 4))
        self.register_buffer("mean", torch.zeros(3, 4))
        self.register_buffer("square", torch.zeros(3, 4))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        def cost(weight: Tensor) -> Tensor:
            return (torch.tanh(x @ weight.T) - y).square().mean()

        gradient, loss = torch.func.grad_and_value(cost)(self.weight)
        self.count += 1
        self.mean.mul_(0.9).add_(0.1 * gradient)
        self.square.mul_(0.999).add_(0.001 * gradient.square())
        mean, square = self.mean / (1 - 0.9**self.count), self.square / (1 - 0.999**self.count)
        self.weight.mul_(1 - 0.05 * 0.01).sub_(0.05 * mean / (square.sqrt() + 1e-8))
        return loss


@pytest.mark.parametrize("name", [*MODELS, *FUNCTIONS])
def test_gradients_are_eagers_at_every_level(name: str) -> None:
    torch.manual_seed(0)
    if name in MODELS:
        make, shape = MODELS[name]
        model: nn.Module = Gradients(make().train(), CANCELLED.get(name, ()))
        x = torch.randn(shape) if shape else torch.randint(0, 10, (2, 5))
    else:
        model, x = OfInput(FUNCTIONS[name]), torch.randn(4, 7)
    twin = copy.deepcopy(model)
    compiled = spyre_mlir.compile(model, (x,), numerics="exact", host_fallback="allow")
    assert isinstance(compiled, CompiledModel)
    outcome = compiled.verify(x)
    assert outcome, str(outcome)
    torch.manual_seed(1)
    got = compiled(x)
    torch.manual_seed(1)
    close(got, twin(x))
    close(dict(model.named_buffers()), dict(twin.named_buffers()))


def test_steps_of_an_optimizer_follow_eager() -> None:
    ours, eager = Step(), Step()
    x, y = torch.linspace(-2, 2, 20).view(5, 4), torch.linspace(1, -1, 15).view(5, 3)
    compiled = spyre_mlir.compile(ours, (x, y), numerics="exact")
    assert isinstance(compiled, CompiledModel)
    assert not compiled.host_steps
    losses = []
    for _ in range(4):
        losses.append(compiled(x, y))
        close(losses[-1], eager(x, y), 1e-4)
    assert losses[-1] < losses[0]
    close(dict(ours.named_buffers()), dict(eager.named_buffers()), 1e-4)
    twin = Step().train()
    update = torch.optim.AdamW([weight := nn.Parameter(twin.weight.clone())], lr=0.05)
    with torch.enable_grad():
        for _ in range(4):
            update.zero_grad()
            (torch.tanh(x @ weight.T) - y).square().mean().backward()
            update.step()
    close(ours.weight, weight.detach(), 1e-4)
    outcome = compiled.verify(x, y)
    assert outcome, str(outcome)
