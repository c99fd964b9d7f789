"""Loops that carry numbers of Python: at every level, in `torch.compile` and from disk as eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from tests.end_to_end.importing.control_flow.test_control_flow import looped
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
X = torch.linspace(-2.0, 3.0, 12).reshape(3, 4)


def times_its_number(x: Tensor, n: Tensor) -> Any:
    return looped(lambda i, y: i < n, lambda i, y: (i + 1, y * 0.5 + i), (0, x))


def the_tensor_alone(x: Tensor, n: Tensor) -> Any:
    return looped(lambda i, y: i < n, lambda i, y: (i + 2, torch.tanh(y) - i), (1, x))[1]


def carries_what_it_reads(x: Tensor, n: Tensor) -> Any:
    return looped(lambda i, y: i < n, lambda i, y: (i + 1, y + x), (0, x))


def rows(x: Tensor, _n: Tensor) -> Any:
    return looped(lambda i, y: i < 3, lambda i, y: (i + 1, y * x[i]), (0, x + 1))


def rows_from_the_end(x: Tensor, _n: Tensor) -> Any:
    return looped(lambda i, y: i >= -3, lambda i, y: (i - 1, y * 2 + x[i]), (-1, x + 1))[1]


def branches_by_number(x: Tensor, n: Tensor) -> Any:
    def step(i: int, y: Tensor) -> Any:
        if torch.compiler.is_compiling():
            return i + 1, torch.cond(y.sum() > 0, lambda y: y - i, lambda y: y * i + 1, (y,))
        return i + 1, y - i if y.sum() > 0 else y * i + 1

    return looped(lambda i, y: i < n, step, (0, x))


def several_numbers(x: Tensor, _n: Tensor) -> Any:
    return looped(lambda i, j, y: i < j, lambda i, j, y: (i + 2, j + 1, y + (j - i)), (0, 4, x))


def fibonacci(x: Tensor, n: Tensor) -> Any:
    return looped(lambda i, a, b, y: i < n, lambda i, a, b, y: (i + 1, b, a + b, y + a), (0, 1, 1, x))


def arithmetic(x: Tensor, n: Tensor) -> Any:
    return looped(lambda i, y: i < n, lambda i, y: (i + 1, y + (i - 7) % 3 * 2 + (9 - i) // 4 - (i & 1) + (-i)), (0, x))


def constants(x: Tensor, _n: Tensor) -> Any:
    return looped(lambda i, j, y: j < 5, lambda i, j, y: (4, i + j, y + i), (1, 0, x))


def where_and_full(x: Tensor, _n: Tensor) -> Any:
    def step(i: int, y: Tensor) -> Any:
        return i * 2 - 1, y + torch.full((4,), i) + torch.where(y > i, y, i)

    return looped(lambda i, y: y.sum() < 50, step, (3, x))


def a_size_behind(x: Tensor, n: Tensor) -> Any:
    count, y = looped(lambda i, y: i < n, lambda i, y: (i + 1, y * 2), (0, x))
    return y[:, :count] + 1


def a_factor_behind(x: Tensor, n: Tensor) -> Any:
    count, y = looped(lambda i, y: i < n, lambda i, y: (i + 1, y * 2), (0, x))
    return y * count


PROGRAMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    f.__name__: f
    for f in (
        times_its_number,
        the_tensor_alone,
        carries_what_it_reads,
        rows,
        rows_from_the_end,
        branches_by_number,
        several_numbers,
        fibonacci,
        arithmetic,
        constants,
        where_and_full,
        a_size_behind,
        a_factor_behind,
    )
}


def check(got: Any, wanted: Any) -> None:
    """Numbers of Python stay numbers, and all are equal to eager's."""
    mine, eager = (torch.utils._pytree.tree_leaves(results) for results in (got, wanted))
    assert [type(result) for result in mine] == [type(result) for result in eager]
    for ours, theirs in zip(mine, eager, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_level_is_eager(name: str) -> None:
    model = FunctionModel(PROGRAMS[name])
    compiled = spyre_mlir.compile(model, (X, torch.tensor(3)), numerics="exact")
    for trips in (3, 1, 4):
        check(compiled(X, torch.tensor(trips)), model(X, torch.tensor(trips)))
    outcome = compiled.verify(X, torch.tensor(2))
    assert outcome, str(outcome)


@pytest.mark.parametrize("name", PROGRAMS)
def test_torch_compile_takes_one_graph(name: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(PROGRAMS[name], backend="spyre", options={"numerics": "exact"}, fullgraph=True)
    for trips in (3, 1):
        check(compiled(X, torch.tensor(trips)), PROGRAMS[name](X, torch.tensor(trips)))


def test_a_program_from_disk(tmp_path: Path) -> None:
    model = FunctionModel(the_tensor_alone)
    spyre_mlir.compile(model, (X, torch.tensor(3)), numerics="exact").save(tmp_path / "saved")
    loaded = spyre_mlir.load(tmp_path / "saved", numerics="exact")
    for trips in (4, 0):
        check(loaded(X, torch.tensor(trips)), model(X, torch.tensor(trips)))
