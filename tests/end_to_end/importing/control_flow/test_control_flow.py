"""`torch.cond` and `while_loop`: at every level, in `torch.compile` and from disk as eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from spyre_mlir.cli import run as run_tool
from spyre_mlir.errors import UnsupportedError
from tests.end_to_end.importing.against_eager import check_levels, check_torch_compile, close, eager, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
WEIGHT = torch.linspace(-0.3, 0.3, 256).reshape(16, 16)


def looped(holds: Any, body: Any, carried: Any) -> Any:
    """A loop of Python in eager, where torch has no loops in loops."""
    if torch.compiler.is_compiling():
        return while_loop(holds, body, carried)
    while holds(*carried):
        carried = body(*carried)
    return carried


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.int64)


def one_of_two(x: Tensor, _n: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))


def between_kernels(x: Tensor, _n: Tensor) -> Any:
    y = torch.cond((x > 1.4).any(), lambda y: torch.softmax(y, -1), lambda y: y @ WEIGHT, (x * 0.5,))
    return y + x


def several_results(x: Tensor, n: Tensor) -> Any:
    def more(x: Tensor, n: Tensor) -> Any:
        return x.amax(-1), n + 2

    def less(x: Tensor, n: Tensor) -> Any:
        return x.sum(-1), n - 3

    return torch.cond(n > 2, more, less, (x, n))


def with_constants(x: Tensor, n: Tensor) -> Any:
    def counted(x: Tensor) -> Tensor:
        return x + torch.arange(16)

    def masked(x: Tensor) -> Tensor:
        return torch.where(torch.ones(4, 16, dtype=torch.bool).tril(), x, 0.0)

    return torch.cond(n == 3, counted, masked, (x,))


def moves_only(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n < 9, lambda x: x.t().contiguous(), lambda x: x.reshape(16, 4).clone(), (x,))


def two_views_of_one_tensor(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda a, b: a + b, lambda a, b: a * b, (x.t(), x.view(16, 4)))


def a_constant_of_one_branch(x: Tensor, n: Tensor) -> Any:
    """Two runs send one constant behind different numbers of launches."""
    a, b = torch.cond(n > 2, lambda x: (x.clone(), -x), lambda x: (x.clone(), torch.full((4, 16), 2.0)), (x,))
    return torch.hypot(a, b)


def nested_branches(x: Tensor, n: Tensor) -> Any:
    def inner(x: Tensor, n: Tensor) -> Tensor:
        return torch.cond(n > 1, lambda x: torch.tanh(x), lambda x: x - 1, (x,))

    return torch.cond(x.sum() > 0, inner, lambda x, n: x * n, (x, n))


def counted(x: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, y: Tensor) -> Any:
        return i + 1, torch.tanh(y @ WEIGHT) + 0.25

    return while_loop(lambda i, y: i < n, step, (zero(), x))


def until_small(x: Tensor, _n: Tensor) -> Any:
    return while_loop(lambda y: y.abs().sum() > 1, lambda y: (y * 0.5,), (x,))


def no_trip(x: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, y: i > n + 5, lambda i, y: (i - 1, y + 1), (zero(), x))


def fibonacci(x: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, a: Tensor, b: Tensor) -> Any:
        return i + 1, b.clone(), a + b

    return while_loop(lambda i, a, b: i < n, step, (zero(), x, x + 1))


def loop_in_a_loop(x: Tensor, n: Tensor) -> Any:
    def outer(i: Tensor, y: Tensor) -> Any:
        _, z = looped(lambda j, z: j < i, lambda j, z: (j + 1, z * 0.5 + 1), (zero(), y))
        return i + 1, z

    return looped(lambda i, y: i < n, outer, (zero(), x))


def branch_in_a_loop(x: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, y: Tensor) -> Any:
        return i + 1, torch.cond(i % 2 == 0, lambda y: torch.sin(y), lambda y: y + 0.5, (y,))

    return while_loop(lambda i, y: i < n, step, (zero(), x))


def loop_in_a_branch(x: Tensor, n: Tensor) -> Any:
    def looped(x: Tensor, n: Tensor) -> Tensor:
        return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y - 0.125), (zero(), x))[1]

    return torch.cond(x.sum() > 0, looped, lambda x, n: x.clone(), (x, n))


def writes_a_slot(x: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, y: Tensor) -> Any:
        at = (torch.arange(4) == i).unsqueeze(-1)
        return i + 1, torch.where(at, y.sum(0), y)

    return while_loop(lambda i, y: i < n, step, (zero(), x))


def drawn(x: Tensor, n: Tensor) -> Any:
    def step(i: Tensor, y: Tensor) -> Any:
        return i + 1, y + torch.rand_like(y)

    _, y = while_loop(lambda i, y: i < n, step, (zero(), x))
    return y, torch.rand(3)


def on_the_host(x: Tensor, n: Tensor) -> Any:
    return torch.cond(n > 2, lambda x: torch.special.bessel_j1(x * 2) + 1, lambda x: x - 1, (x,))


PROGRAMS: tuple[Callable[..., Any], ...] = (
    one_of_two, between_kernels, several_results, with_constants, moves_only, nested_branches, counted, until_small,
    no_trip, fibonacci, loop_in_a_loop, branch_in_a_loop, loop_in_a_branch, writes_a_slot, drawn, on_the_host,
    two_views_of_one_tensor, a_constant_of_one_branch,
)  # fmt: skip
UP = torch.linspace(-1.0, 1.5, 64).reshape(4, 16), torch.tensor(3)
DOWN = torch.linspace(-1.5, 1.0, 64).reshape(4, 16), torch.tensor(1)


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    """Eager control flow is compiled by Dynamo, which gives up after some."""
    torch._dynamo.reset()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    check_levels(program, (UP, DOWN), numerics="exact")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_torch_compile(program: Callable[..., Any]) -> None:
    check_torch_compile(program, (UP, DOWN), numerics="exact")


@pytest.mark.parametrize("program", [between_kernels, loop_in_a_loop, on_the_host], ids=lambda p: p.__name__)
def test_from_disk(program: Callable[..., Any], tmp_path: Path) -> None:
    model = FunctionModel(program)
    folder = spyre_mlir.compile(model, UP, numerics="exact").save(tmp_path / "bundle")
    loaded = spyre_mlir.load(folder, numerics="exact")
    for args in (UP, DOWN):
        close(results(loaded, args), eager(model, args))


DOORS: dict[str, Callable[[spyre_mlir.CompiledModel], object]] = {
    "KTIR": lambda compiled: compiled.ktir(),
    "a graph": lambda compiled: compiled.graphs(),
    "an explanation": lambda compiled: compiled.explain("add"),
    "host code": lambda compiled: compiled.python(),
}


@pytest.fixture(scope="module")
def branching() -> spyre_mlir.CompiledModel:
    compiled = spyre_mlir.compile(FunctionModel(one_of_two), UP)
    assert isinstance(compiled, spyre_mlir.CompiledModel)
    return compiled


@pytest.mark.parametrize("what", DOORS)
def test_what_needs_one_order_of_kernels_says_so(what: str, branching: spyre_mlir.CompiledModel) -> None:
    with pytest.raises(UnsupportedError, match=f"control.cond: {what} is for programs in which the host decides") as no:
        DOORS[what](branching)
    assert "functions.py:" in str(no.value)


def test_accuracy_is_that_of_the_results(
    branching: spyre_mlir.CompiledModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Launch by launch nothing is said: the two runs may part."""
    found = branching.accuracy(*UP)
    assert 0 < found.worst < 1e-2
    assert found.launches == ()
    branching.save(tmp_path / "bundle", levels=True)
    assert run_tool.run([str(tmp_path / "bundle"), "--accuracy"]) == UnsupportedError.exit_code
    assert "an error by launch is for programs in which the host decides nothing" in capsys.readouterr().err
