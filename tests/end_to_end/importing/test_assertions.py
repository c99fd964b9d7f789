"""Assertions of a model about values: each call checks them, at every level, and says what the model says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import InputError, MachineFault
from tests.functions import FunctionModel
from tests.unit.frontend.capture.tracing.asserting import negated_beside_sizes, with_text

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.linspace(0.5, 2.0, 24).reshape(4, 6)


def unread(x: Tensor) -> Tensor:
    torch._assert_async((x > 0).all(), "numbers must be positive")
    return x * 2


def of_a_result(x: Tensor) -> Tensor:
    y = x @ x.T
    torch._assert_async(x.min() > 0, "numbers must be positive")
    return y.exp()


def one_of_two(x: Tensor) -> Tensor:
    torch._assert_async((x < 100).all(), "numbers must be small")
    torch._assert_async((x > 0).all(), "numbers must be positive")
    return x + 1


def in_a_branch(x: Tensor) -> Tensor:
    def checked(x: Tensor) -> Tensor:
        torch._assert_async((x > 0).all(), "numbers must be positive")
        return x + 1

    return torch.cond(x.sum() < 100, checked, lambda x: x - 1, (x,))


def beside_sizes(x: Tensor) -> Tensor:
    torch._assert_async((x > 0).all(), "numbers must be positive")
    return x[x > 1]


ASSERTING = (unread, of_a_result, one_of_two, in_a_branch, beside_sizes, with_text, negated_beside_sizes)


@pytest.mark.parametrize("program", ASSERTING, ids=lambda p: p.__name__)
def test_a_call_checks_what_the_model_asserts(program: Callable[..., Any]) -> None:
    compiled = spyre_mlir.compile(FunctionModel(program), (X,), numerics="exact")
    torch.testing.assert_close(compiled(X), program(X))
    assert compiled.verify(X)
    with pytest.raises((MachineFault, InputError), match="numbers must be positive"):
        compiled(-X)


@pytest.mark.parametrize("program", [unread, in_a_branch], ids=lambda p: p.__name__)
def test_torch_compile(program: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(FunctionModel(program), backend="spyre", options={"numerics": "exact"})
    torch.testing.assert_close(compiled(X), program(X))
    with pytest.raises(MachineFault, match="numbers must be positive"):
        compiled(-X)


def test_numbers_that_a_model_reads_are_checked() -> None:
    def program(x: Tensor, n: Tensor) -> Tensor:
        torch._check(n.item() > 2, lambda: "too few")
        return x * 2

    n = torch.tensor(3)
    compiled = spyre_mlir.compile(FunctionModel(program), (X, n), numerics="exact")
    torch.testing.assert_close(compiled(X, n), X * 2)
    with pytest.raises(InputError, match=r"gives a number of 2 in this call, expected 3 at least"):
        compiled(X, n - 1)


def test_a_saved_program_checks_too(tmp_path: Path) -> None:
    folder = spyre_mlir.compile(FunctionModel(unread), (X,), numerics="exact").save(tmp_path / "bundle")
    loaded = spyre_mlir.load(folder, numerics="exact")
    torch.testing.assert_close(loaded(X), X * 2)
    with pytest.raises(MachineFault, match="numbers must be positive"):
        loaded(-X)


def test_the_check_is_a_host_step_that_is_told() -> None:
    (step,) = spyre_mlir.compile(FunctionModel(unread), (X,)).host_steps
    assert step.op == "host::holds"


class OfABuffer(torch.nn.Module):
    """Asserts something about what no call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.tensor([1.0, -1.0]), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        torch._assert_async((self.steps > 0).all(), "steps must be positive")
        return x * 2


def test_what_is_asserted_of_a_buffer_is_checked() -> None:
    with pytest.raises(RuntimeError, match="steps must be positive"):
        OfABuffer()(X)
    made = spyre_mlir.compile(OfABuffer(), (X,), numerics="exact")
    with pytest.raises(MachineFault, match="steps must be positive"):
        made(X)
