"""`x[i]` by a number that a loop carries: reads, writes through it, and the error of a place that is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from spyre_mlir.errors import MachineFault, UnsupportedError
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.arange(12.0).reshape(4, 3)
Step = Callable[[Any, Tensor, Tensor], Tensor]


def written(i: Any, y: Tensor, x: Tensor) -> Tensor:
    y = y.clone()
    y[i] += x[i]
    return y


def columns(i: Any, y: Tensor, _: Tensor) -> Tensor:
    y = y.clone()
    y.select(1, i).mul_(2)
    return y


def filled(i: Any, y: Tensor, _: Tensor) -> Tensor:
    y = y.clone()
    y[i] = 1.0
    return y


def one_element(i: Any, y: Tensor, x: Tensor) -> Tensor:
    y = y.clone()
    y[i][1:].add_(x[i][1:])
    y[i][i].neg_()  # a place of a place
    return y


def read_behind_a_write(i: Any, y: Tensor, x: Tensor) -> Tensor:
    y = y.clone()
    row = y[i]
    y.mul_(2)  # shows in the row
    before = row + 1
    row.copy_(x[0])
    return y + before


def from_the_end(i: Any, y: Tensor, x: Tensor) -> Tensor:
    y = y.clone()
    y[-1 - i] += x[i - 3]
    return y


def looped(step: Step, trips: int = 3) -> Callable[[Tensor], Any]:
    return lambda x: while_loop(lambda i, y: i < trips, lambda i, y: (i + 1, step(i, y, x)), (0, x * 1))


def unrolled(step: Step, trips: int = 3) -> Tensor:
    """What the loop gives, by Python alone."""
    y = X * 1
    for i in range(trips):
        y = step(i, y, X)
    return y


@pytest.mark.parametrize(
    "step", [written, columns, filled, one_element, read_behind_a_write, from_the_end], ids=lambda s: s.__name__
)
def test_every_level_is_eager(step: Step) -> None:
    made = spyre_mlir.compile(FunctionModel(looped(step)), (X,), numerics="exact")
    count, got = made(X)
    assert count == 3
    torch.testing.assert_close(got, unrolled(step))
    assert made.verify(X)


@pytest.mark.parametrize("step", [lambda i, y, x: y + x[i], written, columns], ids=["read", "written", "columns"])
def test_a_place_outside_is_an_error_of_the_call(step: Step) -> None:
    made = spyre_mlir.compile(FunctionModel(looped(step, 5)), (X,), numerics="exact")
    with pytest.raises(IndexError):
        unrolled(step, 5)
    extent = 3 if step is columns else 4
    with pytest.raises(MachineFault, match=f"index {extent} is out of range for a dimension of {extent} entries"):
        made(X)


def test_a_write_to_what_is_carried_is_refused() -> None:
    def step(i: Any, y: Tensor, _: Tensor) -> Tensor:
        y[i] = 0.0
        return y + 1

    with pytest.raises((UnsupportedError, RuntimeError)):
        spyre_mlir.compile(FunctionModel(looped(step)), (X,))
