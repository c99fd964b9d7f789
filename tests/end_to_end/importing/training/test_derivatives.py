"""Models that take derivatives, at every level, in `torch.compile` and from disk as eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.functional import dropout

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import ImportProgramError, UnsupportedError
from tests.functions import FunctionModel

X = torch.linspace(-1.0, 1.0, 12).reshape(3, 4)
W = torch.linspace(0.9, -1.1, 16).reshape(4, 4)
t = torch.func


def layer(x: Tensor) -> Tensor:
    return torch.tanh(x @ W)


def loss(x: Tensor) -> Tensor:
    return (layer(x) ** 2).sum()


def squares(row: Tensor) -> Tensor:
    return (row * row).sum()


def by_autograd(x: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(loss(x), x)
    return gradient * 2


def by_backward(x: Tensor) -> Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        loss(x).backward()
    return x.grad.neg()


def attention(x: Tensor) -> Tensor:
    return nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]).sum()


FUNCTIONS: dict[str, Callable[[Tensor], Any]] = {
    "grad": lambda x: t.grad(loss)(x),
    "grad_and_value": lambda x: t.grad_and_value(loss)(x),
    "grad_of_grad": lambda x: t.grad(lambda y: t.grad(loss)(y).sum())(x),
    "vjp": lambda x: t.vjp(layer, x)[1](torch.ones_like(x))[0],
    "jvp": lambda x: t.jvp(layer, (x,), (torch.ones_like(x),)),
    "jacrev": lambda x: t.jacrev(layer)(x),
    "jacfwd": lambda x: t.jacfwd(layer)(x),
    "hessian": lambda x: t.hessian(loss)(x),
    "vmap": lambda x: t.vmap(lambda row: torch.softmax(row @ W, 0))(x),
    "grad_of_rows": lambda x: t.vmap(t.grad(squares))(x),
    "attention": lambda x: t.grad(attention)(x),
}
IN_ONE_PROGRAM: dict[str, Callable[[Tensor], Any]] = {"autograd": by_autograd, "backward": by_backward}


@pytest.mark.parametrize("name", [*FUNCTIONS, *IN_ONE_PROGRAM])
def test_derivatives_are_eagers(name: str, tmp_path: Path) -> None:
    function = {**FUNCTIONS, **IN_ONE_PROGRAM}[name]
    made = spyre_mlir.compile(FunctionModel(function), (X,), numerics="exact")
    # Torch counts the derivatives that it is in; an export that breaks off inside of one must not change that.
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0
    torch.testing.assert_close(t.jvp(layer, (X,), (X,))[0], layer(X))
    assert isinstance(made, CompiledModel)
    assert not made.host_steps
    for x in (X, X.flip(0) * 0.5):
        torch.testing.assert_close(made(x), function(x), rtol=1e-5, atol=1e-5)
    outcome = made.verify(X)
    assert outcome, str(outcome)
    made.save(tmp_path / "bundle")
    loaded = spyre_mlir.load(tmp_path / "bundle")
    torch.testing.assert_close(loaded(X), function(X), rtol=0.02, atol=0.02)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs_of_torch_compile_take_derivatives(name: str) -> None:
    torch._dynamo.reset()
    function = FUNCTIONS[name]
    compiled = torch.compile(FunctionModel(function), backend="spyre", fullgraph=True, options={"numerics": "exact"})
    # Dynamo makes sizes symbols at the second one, and has no symbols in `jvp`.
    for x in (X, X.flip(0) * 0.5, *([] if name == "jvp" else [X[:2]])):
        torch.testing.assert_close(compiled(x), function(x), rtol=1e-5, atol=1e-5)


def rows(function: Callable[[Tensor], Tensor], randomness: str) -> Callable[[Tensor], Any]:
    return lambda x: t.vmap(function, randomness=randomness)(x)


DRAWING: dict[str, Callable[[Tensor], Any]] = {
    "dropout in a derivative": lambda x: t.grad(lambda x: dropout(x, 0.5, True).square().sum())(x),
    "dropout of what is transposed": lambda x: t.grad(lambda x: dropout(x.T, 0.5, True).square().sum())(x),
    "dropout in a map": rows(lambda row: dropout(row, 0.5, True), "different"),
    "one dropout for all": rows(lambda row: dropout(row, 0.5, True), "same"),
    "a draw like a row": rows(lambda row: row + torch.rand_like(row), "different"),
    "one draw for all": rows(lambda row: row + torch.rand_like(row), "same"),
    "rows that are filled": rows(lambda row: row.clone().uniform_() + row, "different"),
    "normal numbers": rows(lambda row: torch.normal(row, 1.0), "different"),
    "derivatives of rows": rows(t.grad(lambda row: (row * torch.rand_like(row)).square().sum()), "different"),
}


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
@pytest.mark.parametrize("door", ["compile", "torch.compile"])
@pytest.mark.parametrize("name", DRAWING)
def test_numbers_drawn_in_maps_and_derivatives_are_eagers(name: str, door: str) -> None:
    model = FunctionModel(DRAWING[name])
    torch.manual_seed(3)
    wanted, state = model(X), torch.get_rng_state()
    torch._dynamo.reset()
    exact = {"numerics": "exact"}
    compiled = spyre_mlir.compile(model, (X,), **exact) if door == "compile" else None
    compiled = compiled or torch.compile(model, backend="spyre", options=exact)
    torch.manual_seed(3)
    torch.testing.assert_close(compiled(X), wanted)
    assert torch.equal(torch.get_rng_state(), state)


def test_draws_in_maps_of_exported_programs_are_refused() -> None:
    exported = torch.export.export(FunctionModel(DRAWING["a draw like a row"]), (X,))
    with pytest.raises(UnsupportedError, match=r"aten.rand_like draws random numbers inside of vmap") as caught:
        spyre_mlir.compile(exported)
    assert "compile the module itself" in str(caught.value.hint)


def test_what_the_host_runs_takes_derivatives() -> None:
    """A graph that writes to inputs which share memory runs on the host, where calls record no gradients."""

    def function(x: Tensor, y: Tensor) -> Tensor:
        x.add_(1)
        return t.grad(loss)(y)

    torch._dynamo.reset()
    ours, theirs = X.clone(), X.clone()
    found = torch.compile(function, backend="spyre")(ours, ours[:])
    torch.testing.assert_close(found, function(theirs, theirs[:]))
    torch.testing.assert_close(ours, theirs)


class Forces(nn.Module):
    """Forces from an energy: the usual model of molecules, whose output is a derivative by its input."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.energy = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 1))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.calls += 1
        force, energy = t.grad_and_value(lambda y: self.energy(y).sum())(x)
        return energy, -force * self.calls


class ByParameters(nn.Module):
    """A derivative by the parameters of the model itself."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.inner = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        def cost(parameters: dict[str, Tensor]) -> Tensor:
            return t.functional_call(self.inner, parameters, (x,)).square().mean()

        return t.grad(cost)(dict(self.inner.named_parameters()))


@pytest.mark.parametrize("way", ["compile", "torch.compile"])
@pytest.mark.parametrize("kind", [Forces, ByParameters])
def test_models_with_weights(kind: type[nn.Module], way: str) -> None:
    torch._dynamo.reset()
    ours, eager = kind(), kind()
    if way == "compile":
        made = spyre_mlir.compile(ours, (X,), numerics="exact")
    else:
        made = torch.compile(ours, backend="spyre", options={"numerics": "exact"})
    with torch.no_grad():
        for x in (X, X * 0.3):
            torch.testing.assert_close(made(x), eager(x), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(dict(ours.named_buffers()), dict(eager.named_buffers()))
    assert all(p.grad is None for p in ours.parameters())


def test_weights_keep_their_names() -> None:
    made = spyre_mlir.compile(Forces(), (X,), numerics="exact")
    assert '"energy.0.weight"' in made.mlir("aten")
    other = Forces()
    nn.init.normal_(other.energy[0].weight)
    bound = made.bind(other)
    torch.testing.assert_close(bound(X), other(X), rtol=1e-5, atol=1e-5)


class Backward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            self.inner(x).sum().backward()
        return x.grad


class Replaced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        self.last = t.grad(loss)(x + self.last)
        return self.last * 2


@pytest.mark.parametrize(
    ("model", "because", "instead"),
    [
        (Backward(), r"Backward calls backward\(\), which leaves gradients in 'weight'", "use torch.autograd.grad"),
        (Replaced(), "Replaced replaces its tensor 'last' in a call in which it takes derivatives", "self.last.copy_"),
    ],
    ids=["backward", "replaced"],
)
def test_effects_that_a_derivative_hides_are_refused(model: nn.Module, because: str, instead: str) -> None:
    with pytest.raises(UnsupportedError, match=because) as refused:
        spyre_mlir.compile(model, (X,))
    assert instead in str(refused.value.hint)


def test_symbolic_sizes_are_refused_by_name() -> None:
    shapes = ({0: Dim("rows", min=2, max=64)},)
    with pytest.raises(UnsupportedError, match="FunctionModel takes derivatives, and has symbolic sizes") as refused:
        spyre_mlir.compile(FunctionModel(FUNCTIONS["grad"]), (X,), dynamic_shapes=(shapes,))
    assert "compile it without dynamic_shapes" in str(refused.value.hint)


def test_what_is_refused_inside_a_derivative_says_where() -> None:
    def cost(x: Tensor) -> Tensor:
        return x.sum() if x.mean() > 0 else x.square().sum()

    with pytest.raises(
        UnsupportedError, match="FunctionModel decides its control flow or a shape by the values"
    ) as refused:
        spyre_mlir.compile(FunctionModel(lambda x: t.grad(cost)(x)), (X,))
    assert "test_derivatives.py:" in str(refused.value.where)


def test_derivatives_of_control_flow_are_refused_by_name() -> None:
    def cost(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin().sum(), lambda x: (x * x).sum(), (x,))

    with pytest.raises(ImportProgramError, match="torch cannot take the derivatives of FunctionModel") as refused:
        spyre_mlir.compile(FunctionModel(t.grad(cost)), (X,))
    assert "take derivatives inside of torch.cond and loops, not of them" in str(refused.value.hint)


def test_a_derivative_inside_of_a_branch() -> None:
    def function(x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, t.grad(loss), lambda x: x * 2, (x,))

    made = spyre_mlir.compile(FunctionModel(function), (X,), numerics="exact")
    for x in (X + 1, X - 1):
        torch.testing.assert_close(made(x), function(x), rtol=1e-5, atol=1e-5)
