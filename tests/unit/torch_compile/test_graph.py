"""One captured graph: a program per size, frozen buffers, writes, and what is recorded of each compilation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.fx import Graph, GraphModule, Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.torch_compile import graph as graphs
from spyre_mlir.torch_compile.graph import FROZEN_ELEMENTS, CapturedGraph
from spyre_mlir.torch_compile.history import Capture, Compilation, compilations, forget

STACK = """  File "/home/me/model.py", line 3, in __call__
    f(x)
  File "/home/me/model.py", line 9, in twice
    x * 2
"""
BUFFER = "L['self']._buffers['table']"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    forget()
    with torch.no_grad():
        yield
    forget()


def captured(build: Callable[..., Any], *names: str, trace: str | None = STACK, **options: Any) -> CapturedGraph:
    """A graph of inputs that Dynamo took from these places; `build` makes its results from their nodes."""
    graph = Graph()
    inputs: list[Node] = []
    for number, name in enumerate(names):
        inputs.append(graph.placeholder(f"x{number}"))
        inputs[-1].meta["grapharg"] = SimpleNamespace(source=SimpleNamespace(name=name))
    graph.output(tuple(build(*inputs)))
    if trace is not None:
        next(n for n in graph.nodes if n.op == "call_function").meta["stack_trace"] = trace
    return CapturedGraph(GraphModule(torch.nn.Module(), graph), {"numerics": "exact", **options})


def sum_of(x: Node, y: Node) -> list[Node]:
    return [x.graph.call_function(torch.add, (x, y))]


X = torch.tensor([1.0, 2.0])


def test_a_program_per_size() -> None:
    graph = captured(sum_of, "L['x']", "L['y']")
    for size in (2, 3, 2):
        x = torch.arange(float(size))
        (result,) = graph(x, x + 1)
        assert result.tolist() == (2 * x + 1).tolist()
    assert len(graph.programs) == 2
    first, second = compilations()
    assert (first.function, first.reason, first.inputs, first.kernels) == ("twice", "captured", "(2,), (2,)", 1)
    assert (second.reason, second.inputs) == ("inputs of another size", "(3,), (3,)")
    assert 0 < first.seconds < 60
    assert first.graph == "", "Dynamo does not run"
    assert graph.programs[0].name == "twice"


def test_dynamos_reason_is_told_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "compile_id", lambda: "0/1")
    monkeypatch.setattr(graphs, "recompile_reason", lambda of: f"why {of} was made")
    captured(sum_of, "L['x']", "L['y']")(X, X + 1)
    assert [(c.graph, c.reason) for c in compilations()] == [("0/1", "why 0/1 was made")]


@pytest.mark.parametrize(
    ("trace", "function"), [(None, "graph"), ("no frames", "graph"), ('File "m.py", line 1, in forward', "forward")]
)
def test_a_graph_is_called_as_the_function_that_it_is_of(trace: str | None, function: str) -> None:
    captured(sum_of, "L['x']", "L['y']", trace=trace)(X, X + 1)
    assert compilations()[0].function == function


def test_a_small_buffer_is_frozen_until_it_changes() -> None:
    graph, table = captured(sum_of, "L['x']", BUFFER), torch.tensor([1.0, torch.nan])
    for _ in range(2):
        assert graph(X, table)[0].tolist()[0] == 2
    assert len(compilations()) == 1, "NaN is what it was"
    table[1] = 5.0
    assert graph(X, table)[0].tolist() == [2, 7]
    table[0] = 9.0
    assert graph(X, table)[0].tolist() == [10, 7]
    assert [c.reason for c in compilations()] == ["captured", "a buffer of the model has changed"]


def test_inputs_and_large_buffers_are_not_frozen() -> None:
    for name, count in (("L['table']", 2), (BUFFER, FROZEN_ELEMENTS + 1)):
        graph = captured(sum_of, "L['x']", name)
        x, table = torch.ones(count), torch.ones(count)
        graph(x, table)
        table.add_(1)
        assert graph(x, table)[0][0] == 3
        assert len(graph.programs) == 1
        assert compilations()[-1].reason == "captured"


def test_a_large_buffer_stays_on_the_card() -> None:
    graph = captured(sum_of, "L['x']", BUFFER)
    x, table = torch.ones(FROZEN_ELEMENTS + 1), torch.ones(FROZEN_ELEMENTS + 1)
    for value in (1, 1, 4, 4):
        table.fill_(value)
        assert graph(x, table)[0][0] == value + 1
        assert CARD.of(table).transfers == 1
    assert not CARD.lasts(x)


def test_large_buffers_that_are_only_read_are_weights() -> None:
    def add(x: Node, table: Node) -> list[Node]:
        return [x.graph.call_method("add_", (table, x))]

    x = torch.ones(FROZEN_ELEMENTS + 1)
    for build, name, noted in ((sum_of, BUFFER, 1), (sum_of, "L['table']", 0), (add, BUFFER, 0)):
        graph = captured(build, "L['x']", name, trace=None)
        graph(x, torch.ones(FROZEN_ELEMENTS + 1))
        assert graph.programs[0].mlir("aten").count("aten.weight") == noted


def test_a_buffer_as_large_as_may_be_is_frozen() -> None:
    assert FROZEN_ELEMENTS == 65_536
    graph, table = captured(sum_of, "L['x']", BUFFER), torch.ones(FROZEN_ELEMENTS)
    graph(table + 1, table)
    table.add_(1)
    assert graph(table, table + 0)[0][0] == 4
    assert len(compilations()) == 2


def test_a_buffer_that_is_written_is_an_input() -> None:
    def add(x: Node, table: Node) -> list[Node]:
        return [x.graph.call_method("add_", (table, x)), x.graph.call_function(torch.mul, (x, 2))]

    graph, table = captured(add, "L['x']", BUFFER), torch.zeros(2)
    for count in (1, 2):
        result, _ = graph(X, table)
        assert table.tolist() == [count, 2 * count]
        assert result.data_ptr() == table.data_ptr()
    assert len(compilations()) == 1


def writing(x: Node, y: Node) -> list[Node]:
    added = x.graph.call_method("add_", (x, 1))
    return [x.graph.call_function(torch.add, (added, y))]


def test_writes_to_shared_memory_run_on_the_host_and_are_told_once() -> None:
    graph = captured(writing, "L['x']", "L['y']")
    for _ in range(2):
        x = torch.tensor([1.0, 2.0])
        assert graph(x, x)[0].tolist() == [4, 6], "both are what was written"
    assert compilations() == (
        Compilation(
            "", "twice", "runs on the host: it writes to inputs that share memory with others", "(2,), (2,)", 0, 0.0
        ),
    )
    assert graph.programs == ()
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
    assert graph(x, y)[0].tolist() == [12, 23]
    assert x.tolist() == [2, 3]
    assert len(graph.programs) == 1


def test_writes_to_shared_memory_are_refused_where_the_host_is() -> None:
    graph, x = captured(writing, "L['x']", "L['y']", host_fallback="error"), torch.ones(2)
    with pytest.raises(UnsupportedError) as refused:
        graph(x, x)
    assert refused.value.message == "the graph of twice writes to inputs that share memory with others"
    assert refused.value.hint == "pass copies, or allow host steps"


def test_inputs_that_are_only_read_may_share_memory() -> None:
    graph = captured(sum_of, "L['x']", "L['y']")
    assert graph(X, X)[0].tolist() == [2, 4]
    assert len(graph.programs) == 1


def test_tensors_without_elements_share_no_memory() -> None:
    empty = torch.empty(0)
    assert not graphs._share_memory([empty, empty, X, 3])
    assert graphs._share_memory([X, 3, X[1:]])


def test_views_share_the_memory_of_their_inputs() -> None:
    def function(x: Node) -> list[Node]:
        return [x.graph.call_function(torch.add, (x, 1)), x.graph.call_method("t", (x,))]

    x = torch.arange(6.0).view(2, 3)
    more, view = captured(function, "L['x']")(x)
    assert (more.tolist(), view.tolist()) == ((x + 1).tolist(), x.t().tolist())
    assert view.data_ptr() == x.data_ptr()


def nonzero(x: Node) -> list[Node]:
    return [x.graph.call_function(torch.nonzero, (x,))]


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_a_shape_that_depends_on_values_is_made_by_the_host() -> None:
    graph = captured(nonzero, "L['x']")
    for x in (X, torch.zeros_like(X)):
        assert torch.equal(graph(x)[0], torch.nonzero(x))
    assert graphs.IN_PARTS in str(compilations()[-1])
    assert graph.programs == compilations()[-1].programs


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_programs_of_parts_are_logged_when_a_call_first_needs_them(caplog: pytest.LogCaptureFixture) -> None:
    def function(x: Node) -> list[Node]:
        (found,) = nonzero(x.graph.call_function(torch.add, (x, 1)))
        return [x.graph.call_function(torch.mul, (found, 2))]

    def logged(x: torch.Tensor) -> list[str]:
        caplog.clear()
        assert torch.equal(graph(x)[0], torch.nonzero(x + 1) * 2)
        return sorted({record.getMessage().split("\n")[0].split(",")[0] for record in caplog.records})

    graph = captured(function, "L['x']")
    (name,) = {graph.named.graph}
    with caplog.at_level(logging.DEBUG, "spyre_mlir.torch_compile"):
        first = logged(X)
        texts = [r for r in caplog.records if r.name.endswith(".text")]
        plans = [r for r in caplog.records if r.name.endswith(".plan")]
        other = logged(-torch.ones_like(X))
    assert len(first) > 2 and {f"graph {name}/{program.name}" for program in graph.programs} <= {*first, *other}
    assert len(texts) == len(LEVELS) * len(plans) and len(plans) >= 2
    assert not any(line.endswith("_0") for line in other)  # the part before needs no other program
    assert logged(X) == []


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_a_shape_that_depends_on_values_beside_a_write() -> None:
    def function(x: Node) -> list[Node]:
        return nonzero(x.graph.call_function(torch.Tensor.add_, (x, 1)))

    written = X.clone()
    (found,) = captured(function, "L['x']")(written)
    assert torch.equal(found, torch.nonzero(X + 1))
    assert torch.equal(written, X + 1)


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ([], ""),
        ([X, 3, torch.ones(2, 3)], "(2,), 3, (2, 3)"),
        ([1, 2, 3, 4, 5, 6], "1, 2, 3, 4, 5, 6"),
        ([1, 2, 3, 4, 5, 6, 7, 8], "1, 2, 3, 4, 5, 6 and 2 more"),
    ],
)
def test_inputs_are_described_by_their_sizes(inputs: list[Any], text: str) -> None:
    assert graphs._described(inputs) == text


class Update(torch.nn.Module):
    """What Dynamo makes of an optimizer's step: the parameter is the graph's own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, gradient: torch.Tensor) -> tuple[torch.Tensor]:
        self.weight.addcdiv_(gradient, gradient + 1)
        return (gradient * 2,)


class Reading(Update):
    def forward(self, gradient: torch.Tensor) -> tuple[torch.Tensor]:
        return (self.weight * gradient,)


@pytest.mark.parametrize(
    ("kind", "options", "keeps"),
    [
        (Update, {}, {"keep_float32": True}),
        (Update, {"keep_float32": False}, {"keep_float32": False}),
        (Update, {"keep_float32_in": ("addcdiv",)}, {"keep_float32_in": ("addcdiv",)}),
        (Reading, {}, {}),
    ],
)
def test_updates_of_parameters_keep_float32(kind: type[Update], options: dict[str, Any], keeps: dict[str, Any]) -> None:
    graph = CapturedGraph(torch.fx.symbolic_trace(kind()), options, capture=Capture("1/0", 1, "step"))
    assert graph.options == keeps
