"""Control flow, and draws that follow a tensor's numbers, in programs in which data decides sizes: as eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from spyre_mlir.parted.model import PartedModel
from tests.end_to_end.importing.against_eager import close, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
N = torch.tensor(3)
WEIGHT = torch.linspace(-0.5, 0.5, 36).reshape(6, 6)
FEW, MANY = (X, N), (-X.abs() + 1.5, N + 2)


def zero() -> Tensor:
    return torch.zeros((), dtype=torch.int64)


def some_rows(x: Tensor) -> Tensor:
    return x[x[:, 0] > 0]


def a_branch_before(x: Tensor, _n: Tensor) -> Any:
    y = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))
    return some_rows(y)


def a_branch_beside(x: Tensor, _n: Tensor) -> Any:
    places = x.nonzero()
    return places, torch.cond(x.sum() > 0, lambda x: x.softmax(-1), lambda x: x @ WEIGHT, (x,)).sum(-1)


def a_branch_on_selected_numbers(x: Tensor, _n: Tensor) -> Any:
    y = some_rows(x)
    return torch.cond(y.sum() > 1, lambda y: y.sum(0) + 1, lambda y: y.sum(0) * 2, (y,))


def a_branch_of_selected_shape(x: Tensor, _n: Tensor) -> Any:
    y = some_rows(x)
    return torch.cond(y.sum() > 1, lambda y: y + 1, lambda y: y * 2, (y,)).exp()


def a_branch_on_a_count(x: Tensor, _n: Tensor) -> Any:
    count = torch.tensor(some_rows(x).shape[0])
    return torch.cond(count > 2, lambda x: x + 1, lambda x: x * 2, (x,))


def a_branch_on_a_size(x: Tensor, _n: Tensor) -> Any:
    return torch.cond(some_rows(x).shape[0] > 2, lambda x: x + 1, lambda x: x * 2, (x,))


def a_size_in_a_branch(x: Tensor, _n: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda x: x[x > 0].exp().sum(), lambda x: x.sum() * 2, (x,)) + x


def a_loop_behind(x: Tensor, n: Tensor) -> Any:
    y = some_rows(x)
    return while_loop(lambda i, _s: i < n, lambda i, s: (i + 1, s * 2 + y.sum()), (zero(), y.sum()))


def a_loop_over_selected_rows(x: Tensor, n: Tensor) -> Any:
    _, y = while_loop(lambda i, _y: i < n, lambda i, y: (i + 1, y * 1.5), (zero(), some_rows(x)))
    return y


def a_loop_before(x: Tensor, n: Tensor) -> Any:
    _, y = while_loop(lambda i, _y: i < n, lambda i, y: (i + 1, y * 2), (zero(), x))
    return y[y > 0]


def a_size_in_a_loop(x: Tensor, n: Tensor) -> Any:
    return while_loop(lambda i, _y: i < n, lambda i, y: (i + 1, y + y[y > 0].sum()), (zero(), x))


def branches_in_branches(x: Tensor, _n: Tensor) -> Any:
    def outer(y: Tensor) -> Tensor:
        return torch.cond(y.sum() > 3, lambda y: y * 3, lambda y: y - 1, (y,))

    return torch.cond(x.sum() > 0, outer, lambda y: y + 0.5, (some_rows(x),))


BRANCHING = [
    a_branch_before,
    a_branch_beside,
    a_branch_on_selected_numbers,
    a_branch_of_selected_shape,
    a_branch_on_a_count,
    a_branch_on_a_size,
    a_size_in_a_branch,
    a_loop_behind,
    a_loop_over_selected_rows,
    a_loop_before,
    a_size_in_a_loop,
    branches_in_branches,
]


def truths(x: Tensor, _n: Tensor) -> Any:
    return torch.bernoulli(torch.sigmoid(x[x > 0]))


def places_of_truths(x: Tensor, _n: Tensor) -> Any:
    return torch.bernoulli(torch.sigmoid(x)).nonzero()


def draws_of_rows(x: Tensor, _n: Tensor) -> Any:
    return torch.multinomial(some_rows(x).softmax(-1), 2)


def around_selected_numbers(x: Tensor, _n: Tensor) -> Any:
    y = x[x > 0]
    return torch.normal(y * 2, 0.5) + torch.rand_like(y)


def draws_in_a_branch_come_first(x: Tensor, _n: Tensor) -> Any:
    y = torch.cond(x.sum() > 0, lambda x: x + torch.rand(4, 6), lambda x: x * torch.rand(4, 6), (x,))
    return y + torch.rand(4, 6), x.nonzero()


def draws_of_a_loop(x: Tensor, n: Tensor) -> Any:
    def body(i: Tensor, y: Tensor) -> Any:
        return i + 1, y + torch.rand(4, 6)

    _, y = while_loop(lambda i, _y: i < n, body, (zero(), x))
    return some_rows(y) + torch.rand(6)


DRAWING = [
    truths,
    places_of_truths,
    draws_of_rows,
    around_selected_numbers,
    draws_in_a_branch_come_first,
    draws_of_a_loop,
]


def parted(program: Callable[..., Any]) -> tuple[FunctionModel, PartedModel]:
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, FEW, numerics="exact")
    assert isinstance(compiled, PartedModel)
    return model, compiled


@pytest.mark.parametrize("program", [*BRANCHING, *DRAWING])
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    model, compiled = parted(program)
    for args in (FEW, MANY):
        close(results(compiled, args), results(model, args))
        torch._dynamo.reset()
        verification = compiled.verify(*args)
        assert verification, str(verification)


@pytest.fixture
def sizes_captured() -> Iterator[None]:
    settings = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    torch._dynamo.reset()
    with torch._dynamo.config.patch(settings):
        yield
    torch._dynamo.reset()


@pytest.mark.parametrize("program", [*BRANCHING, *DRAWING])
@pytest.mark.usefixtures("sizes_captured")
def test_torch_compile_in_one_graph(program: Callable[..., Any]) -> None:
    model = FunctionModel(program)
    compiled = torch.compile(model, backend="spyre", fullgraph=True, options={"numerics": "exact"})
    for args in (FEW, MANY):
        close(results(compiled, args), results(model, args))


@pytest.mark.parametrize("program", [a_branch_of_selected_shape, a_size_in_a_branch, a_loop_behind, draws_of_a_loop])
def test_from_disk(program: Callable[..., Any], tmp_path: Path) -> None:
    model, compiled = parted(program)
    loaded = spyre_mlir.load(compiled.save(tmp_path / "parts"), numerics="exact")
    for args in (FEW, MANY):
        close(results(loaded, args), results(model, args))


def test_branches_that_make_sizes_are_host_steps_with_their_line() -> None:
    (step,) = parted(a_size_in_a_branch)[1].host_steps
    assert step.op == "cond"
    assert "functions.py:" in step.place


def test_branches_stay_on_the_device_where_they_make_no_size() -> None:
    _, compiled = parted(a_branch_of_selected_shape)
    results(compiled, FEW)
    assert all(step.op != "cond" for step in compiled.host_steps)
    assert any("control.cond" in program.mlir("aten") for program in compiled.programs)
