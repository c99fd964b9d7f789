"""Which nodes of a graph run to find where its results lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.fx import Interpreter
from torch.utils._python_dispatch import TorchDispatchMode

import spyre_mlir
from spyre_mlir.frontend.calling.memory_run import memory_run
from spyre_mlir.frontend.program.result_memory import ResultMemories, ResultMemory
from tests.functions import FunctionModel
from tests.unit.frontend.graphs import exported


class Layers(nn.Module):
    """Products behind each other, a cache that is written, and what follows the last product."""

    cache: Tensor
    rows: Tensor

    def __init__(self, last: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 6)
        self.register_buffer("cache", torch.zeros(5, 8))
        self.register_buffer("rows", torch.tensor([0, 2]))
        self.last = last

    def forward(self, x: Tensor) -> Any:
        x = torch.tanh(self.up(x * 2))
        self.cache[1:4].index_copy_(0, self.rows, x)
        return self.last(self.down(torch.sigmoid(x)))


class Shares(nn.Module):
    """A product whose result is returned with views of it, an output that is an input, and one of no product."""

    def forward(self, x: Tensor, y: Tensor) -> Any:
        made = x @ y
        made.add_(1)
        return made, made.t(), x, x.t() + 1, torch.stack([x, x]).transpose(0, 1)


class Expands(nn.Module):
    """Writes what it reads from the same memory, and returns both."""

    def forward(self, x: Tensor) -> Any:
        rows = x[:2]
        rows.copy_(x[1:].t().t())
        return rows, x[1:]


class Calls(TorchDispatchMode):
    """Counts the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def values_of(program: torch.export.ExportedProgram, *inputs: Tensor) -> list[Tensor]:
    """What every placeholder holds."""
    given = iter(inputs)
    specs = program.graph_signature.input_specs
    named: dict[Any, Any] = {**program.state_dict, **program.constants}
    return [named[s.target] if s.target in named else next(given) for s in specs]


def both(program: torch.export.ExportedProgram, *inputs: Tensor) -> tuple[ResultMemory, ResultMemory]:
    """The memory of results by the run of some nodes, and by that of all."""
    values = values_of(program, *inputs)
    runs = (memory_run(program.graph_module), Interpreter(program.graph_module).run)
    some, every = (ResultMemories(run)(values) for run in runs)
    return some, every


MAPPED = torch.linspace(-1.0, 1.0, 8).reshape(2, 4), torch.linspace(-1.0, 2.0, 60).reshape(3, 5, 4)
# What follows the last product.
LAST: dict[str, Callable[[Tensor], Any]] = {
    "product": lambda x: x,
    "view": lambda x: x.t(),
    "sum of a view": lambda x: (x.t()[1:] + 1, x),
    "number": lambda x: x.sum(),
    "repeated": lambda x: x.expand(3, *x.shape),
}


@pytest.mark.parametrize("last", LAST)
def test_results_lie_where_the_whole_graph_puts_them(last: str) -> None:
    program = exported(Layers(LAST[last]), torch.zeros(2, 4))
    for x in (torch.zeros(2, 4), torch.zeros(4, 2).t(), torch.zeros(1, 4).expand(2, 4)):
        some, every = both(program, x)
        assert some == every
        assert len(every.writes) == 1


@pytest.mark.parametrize("strided", [False, True])
def test_shared_memory_is_seen(strided: bool) -> None:
    program = exported(Shares(), torch.zeros(3, 4), torch.zeros(4, 3))
    some, every = both(program, torch.zeros(4, 3).t() if strided else torch.zeros(3, 4), torch.zeros(4, 3))
    assert some == every
    assert [sorted(group) for group in every.own] == [[0, 1], [3], [4]]
    assert list(every.views) == [2]


def test_what_is_written_may_read_its_own_memory() -> None:
    some, every = both(exported(Expands(), torch.zeros(3, 4)), torch.zeros(3, 4))
    assert some == every
    assert every.writes == {0} and list(every.views) == [0, 1]


def mapped(x: Tensor, w: Tensor) -> Tensor:
    return torch.vmap(lambda weight: nn.functional.linear(x, weight))(w)


def test_a_product_within_a_map_has_all_that_is_mapped_over() -> None:
    some, every = both(exported(FunctionModel(mapped), torch.zeros(2, 4), torch.zeros(3, 5, 4)), *MAPPED)
    assert some == every
    compiled = spyre_mlir.compile(FunctionModel(mapped), MAPPED, numerics="exact")
    torch.testing.assert_close(compiled(*MAPPED), mapped(*MAPPED))


def test_what_comes_before_the_last_product_does_not_run() -> None:
    program = exported(Layers(torch.neg), torch.zeros(2, 4))
    run, values = memory_run(program.graph_module), values_of(program, torch.zeros(2, 4))
    with torch.no_grad(), Calls() as calls:
        run(*values)
    ran = {name for name in calls.seen if not name.startswith("empty")}
    assert ran == {"slice", "index_copy_", "neg"}


def test_a_symbolic_size_is_found_by_running_everything() -> None:
    rows = torch.export.Dim("rows", min=2, max=9)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 6))
    program = torch.export.export(model, (torch.zeros(3, 4),), dynamic_shapes=({0: rows},))
    some, every = both(program, torch.zeros(7, 4))
    assert some == every
    assert next(iter(every.own[0].values())).size == (7, 6)
