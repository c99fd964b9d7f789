"""Values that follow from the weights which `torch.compile` hands over: computed once, and again after every change."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir import torch_compile
from spyre_mlir.compiled import CompiledModel

X = torch.linspace(-2.0, 2.0, 6 * 64).reshape(6, 64)
EXACT: dict[str, Any] = {"numerics": "exact"}


class Scaled(nn.Module):
    """A scale of one more than a weight, as Gemma's norms have, and a product with a normed weight."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(-0.5, 0.5, 64))
        self.weight = nn.Parameter(torch.linspace(-1, 2, 32 * 64).reshape(32, 64))

    def forward(self, x: Tensor) -> Tensor:
        return (x * (1.0 + self.scale)).tanh() @ (self.weight / self.weight.norm(dim=0)).t()


class Biased(nn.Module):
    """Scores with biases by relative position, as T5 and Swin have."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(11, 2)
        self.register_buffer("place", torch.arange(6)[None, :] - torch.arange(6)[:, None] + 5, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return ((x @ x.t()) * 0.1 + self.bias(self.place).permute(2, 0, 1)).softmax(-1)


class Tied(nn.Module):
    """Two graphs that read one weight, which has two names."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(-0.5, 0.5, 64))
        self.same = self.scale

    def forward(self, x: Tensor) -> Tensor:
        y = x * (1.0 + self.scale) + (self.same * 2.0)
        torch._dynamo.graph_break()
        return (y + 1.0) * (1.0 + self.scale)


class Written(nn.Module):
    """A weight that the call itself changes."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(-0.5, 0.5, 64))

    def forward(self, x: Tensor) -> Tensor:
        before = x * (1.0 + self.scale)
        with torch.no_grad():
            self.scale.add_(0.25)
        return before + (1.0 + self.scale)


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch_compile.forget()
    torch.manual_seed(0)


def compiled(model: nn.Module, **options: Any) -> Callable[..., Any]:
    return torch.compile(model, backend="spyre", options={**EXACT, **options})


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def ahead(program: CompiledModel) -> int:
    """Number of values that are no work of the program, though no caller gives them."""
    return program.mlir("aten").count('aten.kind = "input"') - len(program._program.input_leaves)


@torch.no_grad()
@pytest.mark.parametrize("make", [Scaled, Biased])
def test_calls_compute_no_more_than_those_of_compile(make: Callable[[], nn.Module]) -> None:
    model = make().eval()
    function = compiled(model)
    close(function(X), model(X))
    (program,), wanted = torch_compile.programs(function), spyre_mlir.compile(model, (X,))
    assert program.kernels == wanted.kernels
    assert program.timeline().total_us == pytest.approx(wanted.timeline().total_us)


def _optimizer_steps(model: Scaled) -> None:
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    torch.optim.SGD(model.parameters(), 0.5).step()


CHANGES: dict[str, Callable[[Scaled], object]] = {
    "in place": lambda m: m.scale.add_(1),
    "by data, which torch does not count": lambda m: m.scale.data.mul_(3),
    "one element by numpy": lambda m: m.weight.detach().numpy().__setitem__((3, 4), 9.0),
    "other data": lambda m: setattr(m.scale, "data", torch.full_like(m.scale, 2.0)),
    "a state dict": lambda m: m.load_state_dict({n: -2 * t for n, t in m.state_dict().items()}),
    "other tensors of a state dict": lambda m: m.load_state_dict(
        {n: t + 1 for n, t in m.state_dict().items()}, assign=True
    ),
    "another parameter": lambda m: setattr(m, "scale", nn.Parameter(m.scale.detach() * 5)),
    "a step of an optimizer": _optimizer_steps,
}


@torch.no_grad()
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_next_call_sees_a_change(change: Callable[[Scaled], object]) -> None:
    model = Scaled().eval()
    function = compiled(model)
    close(function(X), before := model(X))
    change(model)
    close(function(X), model(X))
    assert not torch.allclose(model(X), before)
    close(function(-X), model(-X))
    assert [ahead(program) for program in torch_compile.programs(function)] == [2]


@torch.no_grad()
def test_graphs_and_names_that_share_a_weight_see_a_change() -> None:
    model = Tied().eval()
    function = compiled(model)
    for _ in range(3):
        close(function(X), model(X))
        model.same.data.add_(1)
    assert [ahead(program) for program in torch_compile.programs(function)] == [2, 1]


@torch.no_grad()
def test_what_follows_from_a_weight_that_the_call_writes_stays_in_the_program() -> None:
    model = Written().eval()
    eager, function = deepcopy(model), compiled(model)
    for _ in range(2):
        close(function(X), eager(X))
        close(model.scale, eager.scale)
    assert [ahead(program) for program in torch_compile.programs(function)] == [0]


@torch.no_grad()
def test_modules_that_share_a_program_have_values_of_their_own() -> None:
    models = [Scaled().eval() for _ in range(2)]
    for model in models:
        model.compile(backend="spyre", options=EXACT)
    for _ in range(2):
        for factor, model in enumerate(models, 2):
            close(model(X), model.forward(X))
            model.scale.data.mul_(factor)
    assert len(torch_compile.compilations()) == 1


@torch.no_grad()
def test_programs_of_all_sizes_see_a_change() -> None:
    model = Scaled().eval()
    function = torch.compile(model, backend="spyre", options=EXACT, dynamic=True)
    for rows in (4, 6, 4, 6):
        close(function(X[:rows]), model(X[:rows]))
        model.scale.data.add_(0.5)
    assert [ahead(program) for program in torch_compile.programs(function)] == [2, 2]


def test_training_computes_what_follows_from_trained_weights_in_calls() -> None:
    model, eager = Scaled(), Scaled()
    function = compiled(model, training=True)
    for _ in range(2):
        for each, call in ((eager, eager), (model, function)):
            call(X).square().mean().backward()
            with torch.no_grad():
                for weight in each.parameters():
                    assert weight.grad is not None
                    weight.sub_(weight.grad, alpha=0.1)
            each.zero_grad()
        for weight, wanted in zip(model.parameters(), eager.parameters(), strict=True):
            torch.testing.assert_close(weight, wanted, rtol=1e-3, atol=1e-4)
    assert [ahead(program) for program in torch_compile.programs(function)] == [0, 0]
    with torch.no_grad():
        close(function(X), eager(X))
    assert ahead(torch_compile.programs(function)[-1]) == 2


@torch.no_grad()
def test_a_saved_program_computes_it_of_the_weights_of_its_calls(tmp_path: Path) -> None:
    model = Scaled().eval()
    function = compiled(model)
    function(X)
    (program,) = torch_compile.programs(function)
    saved = spyre_mlir.load(program.save(tmp_path / "saved"), numerics="exact")
    for factor in (1, -2):
        model.weight.data *= factor
        given = {(64,): model.scale, (6, 64): X, (32, 64): model.weight}
        inputs = [given[argument.shape] for argument in program._program.inputs]
        close(saved(*inputs)[0], model(X))
        assert program.verify(*inputs)
