"""Training through torch.compile: gradients, optimizer steps, statistics and draws, against eager."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator
from itertools import zip_longest
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.torch_compile import explain, programs

EXACT = {"training": True, "numerics": "exact", "host_fallback": "allow"}


@pytest.fixture(autouse=True)
def fresh() -> Generator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.enable_grad():
        yield


def trained(model: Any, **options: Any) -> Callable[..., Any]:
    return torch.compile(model, backend="spyre", options={**EXACT, **options}, dynamic=False)


def close(got: Any, wanted: Any, tolerance: float = 2e-5) -> None:
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(6), nn.Linear(6, 16), nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(self.outer(functional.gelu(self.inner(self.norm(x)))), torch.arange(4))


class Scored(nn.Linear):
    """A layer, a function and a loss: an optimizer has two parameters to change."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(functional.gelu(super().forward(x)), torch.arange(4))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.joint, self.norm = nn.Linear(8, 24), nn.RMSNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.joint(self.norm(x)).chunk(3, -1))
        out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return functional.silu(out.transpose(1, 2).flatten(2)).square().sum()


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.avg_pool2d(functional.relu(self.norm(self.inner(x))), 2).square().mean()


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 6)
        self.head = nn.Linear(6, 10, bias=False)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        x = functional.dropout(self.table(places), 0.3, self.training)
        return functional.nll_loss(functional.log_softmax(self.head(x).flatten(0, 1), -1), places.flatten())


class Gathered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        picked = torch.cat([self.weight[1:3], self.weight.flip(0)]) @ x.t()
        return torch.logsumexp(torch.where(picked > 0, picked, picked.exp()), 0).tanh().sum()


MODELS: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "perceptron": (Perceptron, (4, 6)),
    "attention": (Attention, (2, 5, 8)),
    "convolution": (Convolution, (2, 3, 6, 6)),
    "words": (Words, ()),
    "moves": (Gathered, (3, 7)),
}
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda x: (torch.softmax(x, -1) * torch.arange(7.0)).sum(),
    "division": lambda x: (1 / (1 + x.square())).prod(),
    "cumulative": lambda x: x.cumsum(0).sigmoid().amax(1).sum(),
    "powers": lambda x: (x.abs() + 1).log().sqrt().var(),
    "windows": lambda x: functional.max_pool1d(x, 3, 2).square().sum(),
    "triangles": lambda x: (x @ x.t()).tril().std(),
}


@pytest.mark.parametrize("name", MODELS)
def test_gradients_of_parameters_are_eagers(name: str) -> None:
    make, shape = MODELS[name]
    model = make().train()
    twin, x = copy.deepcopy(model), torch.randn(shape) if shape else torch.randint(0, 10, (2, 5))
    torch.manual_seed(1)
    got = trained(model)(x)
    got.backward()
    torch.manual_seed(1)
    wanted = twin(x)
    wanted.backward()
    close(got, wanted)
    for mine, eager in zip_longest(model.parameters(), twin.parameters()):
        close(mine.grad, eager.grad)
    for mine, eager in zip_longest(model.buffers(), twin.buffers()):
        close(mine, eager)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_of_inputs_are_eagers(name: str) -> None:
    x = torch.randn(4, 7, requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    got, wanted = trained(FUNCTIONS[name])(x), FUNCTIONS[name](twin)
    got.backward()
    wanted.backward()
    close((got, x.grad), (wanted, twin.grad))


def test_the_history_and_the_programs_have_both_passes() -> None:
    compiled = trained(Scored(6, 5))
    compiled(torch.randn(4, 6)).backward()
    forward, backward = programs(compiled)
    assert "aten.gelu(" in forward.mlir("aten") and "aten.gelu(" not in backward.mlir("aten")
    assert "aten.scatter" in backward.mlir("aten"), "the derivative of the loss"
    assert list(explain().columns[1].cells)[-2:] == ["forward", "forward_backward"]


def test_an_optimizer_step_compiles_and_training_follows_eager() -> None:
    model, x = Scored(6, 5), torch.randn(4, 6)
    twin = copy.deepcopy(model)
    mine, eager = (torch.optim.AdamW(each.parameters(), 0.05) for each in (model, twin))
    loss, step = trained(model), torch.compile(mine.step, backend="spyre", options={"numerics": "exact"})
    for _ in range(3):
        got, wanted = loss(x), twin(x)
        close(got, wanted, 1e-4)
        for each, optimizer, update in ((got, mine, step), (wanted, eager, eager.step)):
            optimizer.zero_grad()
            each.backward()
            update()
    for left, right in zip_longest(model.parameters(), twin.parameters()):
        close(left, right, 1e-4)
        close(mine.state[left]["step"], eager.state[right]["step"])


def test_device_numerics_train_too() -> None:
    model, x = Perceptron(), torch.randn(4, 6)
    loss, optimizer = trained(model, numerics="device"), torch.optim.SGD(model.parameters(), 0.3)
    found: list[float] = []
    for _ in range(12):
        optimizer.zero_grad()
        found.append(loss(x))
        found[-1].backward()
        optimizer.step()
    assert found[-1] < 0.7 * found[0]


def test_an_update_on_the_device_keeps_float32() -> None:
    """A hundredth of the square of a gradient is below the least DLFloat16, and the update is divided by its root."""
    weight = nn.Parameter(torch.linspace(-1, 1, 8))
    weight.grad = torch.linspace(-3e-4, 5e-4, 8)
    twin = copy.deepcopy(weight)
    twin.grad = weight.grad.clone()
    mine, eager = (torch.optim.RMSprop([each], 0.1) for each in (weight, twin))
    step = torch.compile(mine.step, backend="spyre")
    step()
    eager.step()
    close(weight, twin, 2e-3)


def test_a_call_without_gradients_runs_the_usual_program() -> None:
    compiled = trained(lambda x: x.tanh())
    with torch.no_grad():
        assert not compiled(torch.ones(3, requires_grad=True)).requires_grad
    assert not compiled(torch.ones(3)).requires_grad


def test_an_operator_without_a_backward_pass_on_the_host_is_named() -> None:
    compiled = trained(lambda x: torch.cdist(x, x.flip(0), p=1.5).sum(), host_fallback="error")
    with pytest.raises(UnsupportedError, match="cdist"):
        compiled(torch.randn(3, 4, requires_grad=True)).backward()


def test_dropout_draws_in_the_order_of_memory() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    twin = x.detach().clone().requires_grad_()
    for run, given in ((trained(turned), x), (turned, twin)):
        torch.manual_seed(1)
        run(given).backward()
    assert x.grad is not None
    close(x.grad, twin.grad)


def test_the_backward_pass_draws_nothing_anew() -> None:
    """Torch's backward graph has the draws of the forward pass whose place in memory it knows; eager draws once."""
    x = torch.randn(4, 6, requires_grad=True)
    run = trained(lambda x: functional.dropout(functional.gelu(x), 0.5).square().sum())
    torch.manual_seed(1)
    result = run(x)
    after = torch.get_rng_state()
    result.backward()
    assert torch.equal(torch.get_rng_state(), after)
    twin = x.detach().clone().requires_grad_()
    torch.manual_seed(1)
    functional.dropout(functional.gelu(twin), 0.5).square().sum().backward()
    close(x.grad, twin.grad)


class LastOfSequence(nn.Module):
    """A recurrent layer, which the CPU runs by an operator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(6, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.reshape(2, 2, 6))[0][:, -1].square().sum()


class Normalised(nn.Module):
    """Normalisations whose parameters are float32 while autocast makes their inputs bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.layer, self.group = nn.Linear(6, 8), nn.LayerNorm(8), nn.GroupNorm(2, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = self.layer(self.inner(x)) + self.group(self.inner(x))
        return y.float().tanh().square().mean()


@pytest.mark.parametrize(("make", "tolerance"), [(LastOfSequence, 2e-5), (Normalised, 0.01)])
def test_gradients_of_recurrent_layers_and_of_mixed_precision(make: type[nn.Module], tolerance: float) -> None:
    model, x = make(), torch.randn(4, 6)
    twin = copy.deepcopy(model)
    for run, each in ((trained(model, host_fallback="error"), model), (twin, twin)):
        run(x).backward()
        assert all(p.grad is not None and p.grad.dtype is torch.float32 for p in each.parameters())
    for mine, eager in zip_longest(model.parameters(), twin.parameters()):
        close(mine.grad, eager.grad, tolerance)


def turned(x: torch.Tensor) -> torch.Tensor:
    return (functional.dropout(x.t() * 1, 0.5, True) * torch.arange(3.0)).sum()


def test_a_filling_whose_order_is_not_known_is_refused() -> None:
    compiled = trained(lambda x: (x.t() * torch.empty_like(x.t()).bernoulli_(0.5)).sum())
    with pytest.raises(UnsupportedError, match="order of a memory that is not row-major"):
        compiled(torch.randn(3, 4, requires_grad=True))


def test_a_function_may_hold_a_whole_step() -> None:
    """Dynamo runs `backward` between its graphs, and would trace whatever is called there."""
    model, x = Scored(6, 5), torch.randn(4, 6)
    twin = copy.deepcopy(model)

    def steps(learner: nn.Module) -> Callable[[torch.Tensor], None]:
        optimizer = torch.optim.SGD(learner.parameters(), 0.1)

        def step(x: torch.Tensor) -> None:
            optimizer.zero_grad()
            learner(x).backward()
            optimizer.step()

        return step

    mine, eager = trained(steps(model)), steps(twin)
    for step in (mine, eager) * 2:
        step(x)
    close(list(model.parameters()), list(twin.parameters()))
