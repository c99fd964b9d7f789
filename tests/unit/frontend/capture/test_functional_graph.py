"""The functional graph: signatures, places, and one trace for equal calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.export.graph_signature import OutputKind

from spyre_mlir.frontend.capture import functional_graph
from spyre_mlir.frontend.capture.functional_graph import FunctionalProgram, base_name, functional_program
from spyre_mlir.frontend.capture.operator_tracing import Tables, Trace
from spyre_mlir.frontend.capture.value_memory import Unfollowed
from tests.functions import FunctionModel
from tests.unit.frontend.graphs import calls, exported

X = torch.ones(4, 6)
aten = torch.ops.aten


@pytest.fixture
def tables() -> Tables:
    return Tables(torch.export.default_decompositions())  # type: ignore[arg-type]


def functional(tables: Tables, model: nn.Module, *args: Any) -> FunctionalProgram:
    return functional_program(exported(model, *args), tables, lambda called: called is aten.relu.default)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The operators that are traced."""
    found: list[Any] = []
    original = functional_graph.trace_calls

    def noting(tables: Tables, run: Callable[[Trace], None]) -> None:
        def noted(trace: Trace) -> None:
            run(lambda called, *rest: found.append(called) or trace(called, *rest))

        original(tables, noted)

    monkeypatch.setattr(functional_graph, "trace_calls", noting)
    return found


def test_equal_calls_are_traced_once_in_all_programs(tables: Tables, traced: list[Any]) -> None:
    model = FunctionModel(lambda x: x.transpose(0, 1).transpose(0, 1).transpose(0, 1).relu())
    assert [node.target for node in calls(functional(tables, model, X).graph)] == [
        *[aten.permute.default] * 3,
        aten.relu.default,
    ]
    assert traced == [aten.transpose.int] * 2  # there and back are two forms
    functional(tables, model, X)
    assert len(traced) == 2


def test_parts_have_the_place_of_their_call(tables: Tables) -> None:
    model = nn.Sequential(nn.Flatten(), nn.ReLU())
    view, relu = calls(functional(tables, model, torch.ones(2, 3, 4)).graph)
    assert list(view.meta["nn_module_stack"].values())[-1][0] == "0"
    assert "flatten.py" in view.meta["stack_trace"]
    assert list(relu.meta["nn_module_stack"].values())[-1][0] == "1"


def test_written_arguments_are_results_before_the_users(tables: Tables) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(6))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.mul_(2)
            return self.count.add_(1) + x

    program = functional(tables, Model(), X)
    assert [(spec.kind, spec.target) for spec in program.graph_signature.output_specs] == [
        (OutputKind.BUFFER_MUTATION, "count"),
        (OutputKind.USER_INPUT_MUTATION, "x"),
        (OutputKind.USER_OUTPUT, None),
    ]
    returned: Any = program.graph.output_node().args[0]
    assert [node.name for node in returned] == [spec.arg.name for spec in program.graph_signature.output_specs]


def test_what_nobody_reads_is_gone(tables: Tables) -> None:
    model = FunctionModel(lambda x: (x.transpose(0, 1), x.relu())[1])
    assert [node.target for node in calls(functional(tables, model, X).graph)] == [aten.relu.default]


def test_placeholders_keep_names_that_python_has_too(tables: Tables) -> None:
    class Model(nn.Module):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return input.transpose(0, 1)

    program = functional(tables, Model(), X)
    assert [node.name for node in program.graph.find_nodes(op="placeholder")] == ["input"]


def test_starts_of_tensors_count_where_memory_is_walked(tables: Tables) -> None:
    model = FunctionModel(lambda x: x.relu()[1].as_strided((2,), (1,)) + x[2].as_strided((2,), (1,)))
    selected = [n.meta["val"] for n in calls(functional(tables, model, X).graph) if n.target is aten.select.int]
    assert [value.storage_offset() for value in selected] == [6, 12]


def test_symbols_and_shared_buffers_are_not_followed(tables: Tables) -> None:
    symbolic = torch.export.export(nn.ReLU(), (X,), dynamic_shapes={"input": {0: Dim("n")}})
    with pytest.raises(Unfollowed, match="symbols"):
        functional_program(symbolic, tables, lambda _: True)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            memory = torch.zeros(12)
            self.register_buffer("first", memory[:6])
            self.register_buffer("second", memory[3:9])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.first.add_(1)
            return x + self.second

    with pytest.raises(Unfollowed, match="shared memory"):
        functional(tables, Model(), X)


@pytest.mark.parametrize(
    ("called", "name"),
    [(aten.add.Tensor, "add"), (aten.__lshift__.Scalar, "lshift"), (aten._to_copy.default, "_to_copy")],
)
def test_calls_are_named_as_torch_names_them(called: Any, name: str) -> None:
    assert base_name(called) == name
