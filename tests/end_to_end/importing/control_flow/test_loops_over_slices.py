"""Loops over the slices of tensors, `scan` and `map`: at every level as eager, and bodies that are one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import spyre_mlir
from tests.end_to_end.importing import against_eager
from tests.end_to_end.importing.against_eager import close
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")


def spread(*shape: int) -> Tensor:
    return torch.linspace(-1.5, 1.5, torch.Size(shape).numel()).reshape(shape)


def running_sum(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + row, c * 2), h, x, dim=0)


def backwards_along_another(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, c - row), h, x.transpose(0, 1), dim=1, reverse=True)


def several_are_carried(x: Tensor, h: Tensor) -> Any:
    def step(carried: Any, row: Any) -> Any:
        a, b = carried
        return (torch.tanh(a + row["x"]), b * row["y"]), (a.sum(-1), b + 1)

    return scan(step, (h, h + 1), {"x": x, "y": x * 0.5}, dim=0)


def counting(x: Tensor, h: Tensor) -> Any:
    def step(carried: Any, row: Tensor) -> Any:
        count, most = carried
        return (count + 1, torch.maximum(most, row)), torch.where(row > 0, row, most) * count

    return scan(step, (torch.zeros((), dtype=torch.int64), h), x, dim=0)


def carried_twice_and_read(x: Tensor, h: Tensor) -> Any:
    def step(carried: Any, row: Tensor) -> Any:
        a, b = carried
        return (a * 0.5 + row, b * 0.25 - row), a - b + h * 2

    return scan(step, (h, h), x, dim=0)


def one_slice(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + row, row.clone()), h, x[:1], dim=0)


def mapped(x: Tensor, h: Tensor) -> Any:
    return map_slices(lambda row: torch.softmax(row, -1) @ row.t(), x)


def mapped_with_others(x: Tensor, h: Tensor) -> Any:
    return map_slices(lambda pair, other: (pair[0] @ other.t(), pair[1].amax(-1)), (x, x * x), h)


def loops_in_a_loop(x: Tensor, h: Tensor) -> Any:
    def outer(carried: Tensor, rows: Tensor) -> Any:
        return scan(lambda c, row: (c * 0.5 + row, torch.sin(c)), carried, rows, dim=0)

    return scan(outer, h[0], x, dim=0)


def a_map_in_a_scan(x: Tensor, h: Tensor) -> Any:
    def step(carried: Tensor, rows: Tensor) -> Any:
        scaled = map_slices(lambda row: row / row.abs().amax(), rows + carried)
        return torch.tanh(scaled), scaled.sum(0)

    return scan(step, h, x, dim=0)


def one_behind_the_other(x: Tensor, h: Tensor) -> Any:
    _, rows = scan(lambda c, row: (c + row, c * row), h, x, dim=0)
    return map_slices(torch.relu, rows), rows[0]


def in_any_order(x: Tensor, h: Tensor) -> Any:
    return associative_scan(lambda a, b: a * 0.5 + b, x, dim=0, combine_mode="generic")


def drawing(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + torch.rand_like(row), torch.bernoulli(torch.sigmoid(row))), h, x, dim=0)


PROGRAMS: tuple[Callable[..., Any], ...] = (
    running_sum, backwards_along_another, several_are_carried, carried_twice_and_read, counting, one_slice, mapped,
    mapped_with_others,
    loops_in_a_loop, a_map_in_a_scan, one_behind_the_other, in_any_order, drawing,
)  # fmt: skip
INPUTS = spread(4, 3, 5), spread(3, 5)


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    """Eager loops are compiled by Dynamo, which gives up after some."""
    torch._dynamo.reset()


def results(model: Callable[..., Any]) -> list[Tensor]:
    return against_eager.results(model, INPUTS)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[..., Any]) -> None:
    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, INPUTS, numerics="exact")
    close(results(compiled), results(model))
    verification = compiled.verify(*INPUTS)
    assert verification, str(verification)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_torch_compile(program: Callable[..., Any]) -> None:
    model = FunctionModel(program)
    close(results(torch.compile(model, backend="spyre", options={"numerics": "exact"})), results(model))


TABLE = torch.linspace(-0.5, 0.5, 9).reshape(3, 3)


def averaged(rows: Tensor) -> Tensor:
    return scan(lambda c, row: ((c + row) * 0.5, c - row), torch.zeros_like(rows[0]), rows, dim=0)[1]


def averaged_by_hand(rows: Tensor) -> Tensor:
    carried, made = torch.zeros_like(rows[0]), list[Tensor]()
    for row in rows:
        made.append(carried - row)
        carried = (carried + row) * 0.5
    return torch.stack(made)


def a_scan_in_a_branch(x: Tensor, h: Tensor) -> Any:
    return torch.cond(h.sum() > -1, lambda x: averaged(x), lambda x: x + 1, (x,))


def a_map_in_a_branch_of_a_loop(x: Tensor, h: Tensor) -> Any:
    """Two loops over slices in one branch, so that graphs in it have names of their own."""

    def halved(y: Tensor) -> Tensor:
        return map_slices(lambda rows: map_slices(lambda row: row / 2, rows) + 1, y)

    def step(i: Tensor, y: Tensor) -> Any:
        return i + 1, torch.cond(i > 0, halved, lambda y: averaged(y), (y,))

    return while_loop(lambda i, _y: i < 3, step, (torch.zeros((), dtype=torch.int64), x))[1]


def a_branch_in_a_loop_in_a_scan(x: Tensor, h: Tensor) -> Any:
    def step(i: Tensor, y: Tensor) -> Any:
        return i + 1, torch.cond(y.sum() > 0, lambda y: y - 0.5, lambda y: y @ TABLE, (y,))

    """Torch exports a loop that reads a tensor from outside, in the body of a scan, if Dynamo traces it."""
    trips = x.isfinite().sum() // 6

    def body(carried: Tensor, rows: Tensor) -> Any:
        _, y = while_loop(lambda i, _y: i < trips, step, (torch.zeros((), dtype=torch.int64), carried + rows))
        return y, y * 2

    return scan(body, h, x, dim=0)[1]


def by_hand(program: Callable[..., Any], x: Tensor, h: Tensor) -> Tensor:
    """The same in Python alone."""
    if program is a_scan_in_a_branch:
        return averaged_by_hand(x) if h.sum() > -1 else x + 1
    if program is a_map_in_a_branch_of_a_loop:
        return (averaged_by_hand(x) / 2 + 1) / 2 + 1
    made = list[Tensor]()
    for rows in x:
        h = h + rows
        for _ in range(2):
            h = h - 0.5 if h.sum() > 0 else h @ TABLE
        made.append(h * 2)
    return torch.stack(made)


@pytest.mark.parametrize(
    "program",
    [a_scan_in_a_branch, a_map_in_a_branch_of_a_loop, a_branch_in_a_loop_in_a_scan],
    ids=lambda p: p.__name__,
)
def test_loops_over_slices_and_control_flow_hold_one_another(program: Callable[..., Any]) -> None:
    inputs = spread(2, 2, 3), spread(2, 3)
    compiled = spyre_mlir.compile(FunctionModel(program), inputs, numerics="exact")
    for args in (inputs, (-inputs[0], inputs[1] - 1)):
        close(against_eager.results(compiled, args), [by_hand(program, *args)])
    torch._dynamo.reset()
    verification = compiled.verify(*inputs)
    assert verification, str(verification)


class Recurrent(nn.Module):
    """A recurrence over time with weights, as large as a region has to be."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer, self.norm = nn.Linear(64, 64), nn.Linear(64, 64), nn.LayerNorm(64)

    def forward(self, x: Tensor, h: Tensor) -> Any:
        def step(carried: Tensor, row: Tensor) -> Any:
            new = torch.tanh(self.norm(self.inner(carried) + self.outer(row)))
            gate = torch.sigmoid(self.inner(new))
            carried = gate * new + (1 - gate) * carried
            return carried, self.outer(carried)

        return scan(step, h, x, dim=0)


def test_equal_bodies_are_one_function() -> None:
    torch.manual_seed(0)
    model, kernels = Recurrent(), list[int]()
    for count in (6, 8):
        args = spread(count, 2, 64), spread(2, 64)
        compiled = spyre_mlir.compile(model, args, numerics="exact")
        assert compiled.mlir("spyre.kernel").count("func.call @") > 1
        assert not compiled.host_steps
        kernels.append(compiled.kernels)
        close(against_eager.results(compiled, args), against_eager.results(model, args))
    assert kernels[1] - kernels[0] < 10  # a body has some twenty; what grows with the slices are copies


def test_steps_of_a_selective_scan_lay_nothing_out_again() -> None:
    """As Mamba's: a state of few numbers per channel, and one column of a product in every step."""

    def steps(x: Tensor, rates: Tensor, columns: Tensor) -> Tensor:
        decay, more = torch.exp(x[:, :, None] * rates), x[:, :, None] * columns
        state, rows, columns = torch.zeros_like(rates), list[Tensor](), torch.tanh(columns[:, 0, :, None])
        for at in range(len(x)):
            state = decay[at] * state + more[at]
            rows.append(state @ columns[at])
        return torch.stack(rows, 1)[..., 0]

    given = spread(8, 192), spread(192, 16), spread(8, 1, 16)
    program = spyre_mlir.compile(FunctionModel(steps), given)
    assert program.verify(*given)
    assert program.mlir("spyre.kernel").count("spyre.kernel.restickify") < 8, "fewer than steps"
