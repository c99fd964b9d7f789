"""The history of what was compiled: kept in order, shown as a table, and forgotten."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from dataclasses import FrozenInstanceError, replace
from io import StringIO
from typing import Any

import pytest
import torch
from rich.console import Console

from spyre_mlir.torch_compile.history import Compilation, compilations, explain, forget, print_history, programs, record

FIRST = Compilation("0/0", "forward", "captured", "(2, 3)", 4, 1.256)
SECOND = Compilation("0/1", "forward", "inputs of another size", "(5, 3)", 7, 0.1)


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    forget()
    yield
    forget()


def test_what_is_recorded_is_kept_in_order_until_it_is_forgotten() -> None:
    assert compilations() == ()
    record(FIRST)
    before = compilations()
    record(SECOND)
    assert before == (FIRST,), "what was given stays as it was"
    assert compilations() == (FIRST, SECOND)
    forget()
    assert compilations() == ()


def test_a_compilation_is_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "spyre_mlir.torch_compile.history"):
        record(FIRST)
        record(replace(SECOND, cached=True))
    assert [one.getMessage() for one in caplog.records] == [
        "graph 0/0 of forward for (2, 3): 4 kernels, 1.256 s; why: captured",
        "graph 0/1 of forward for (5, 3): 7 kernels, 0.100 s, lowered before; why: inputs of another size",
    ]


def test_what_happened_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        FIRST.kernels = 5  # type: ignore[misc]


def test_a_table_explains_every_program() -> None:
    record(FIRST)
    record(SECOND)
    out = StringIO()
    Console(file=out, width=200).print(explain())
    lines = [" ".join(line.replace("│", " ").replace("┃", " ").split()) for line in out.getvalue().splitlines()]
    assert "graph function why it was compiled inputs kernels seconds cache" in lines
    assert "0/0 forward captured (2, 3) 4 1.26" in lines
    assert "0/1 forward inputs of another size (5, 3) 7 0.10" in lines
    assert explain().row_count == 2


def broken(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x)
    torch._dynamo.graph_break()
    return torch.exp(y)


def other(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x)


def overloads(of: Any) -> list[str]:
    """What the programs of a function compute."""
    return [op for p in programs(of) for op in ("relu", "exp", "tanh", "linear") if f"aten.{op}(" in p.mlir("aten")]


def test_programs_of_a_function_are_those_of_its_parts_and_sizes() -> None:
    torch._dynamo.reset()
    compiled, unlike = (torch.compile(f, backend="spyre", dynamic=False) for f in (broken, other))
    for x in (torch.ones(2, 64), torch.ones(3, 64)):
        compiled(x)
        unlike(x)
    assert sorted(overloads(compiled)) == sorted(overloads(broken)) == ["exp", "exp", "relu", "relu"]
    assert overloads(unlike) == ["tanh", "tanh"]
    assert len(programs()) == 6
    (first, *_) = programs(unlike)
    assert first.accuracy(torch.ones(2, 64)).worst < 1e-2
    assert "tanh" in str(first.report())


class Own(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)


@pytest.mark.parametrize("module", [Own(), torch.nn.Sequential(torch.nn.Tanh())])
def test_programs_of_a_module_are_found_by_what_torch_compile_gave_and_was_given(module: torch.nn.Module) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="spyre", dynamic=False)
    exact = torch.compile(module, backend="spyre", dynamic=False, options={"numerics": "exact"})
    for x in (torch.ones(2, 64), torch.ones(3, 64)):
        compiled(x)
    exact(torch.ones(2, 64))
    assert [len(programs(each)) for each in (compiled, exact, module)] == [2, 1, 3]
    assert overloads(exact) == ["tanh"]


def test_a_program_that_torch_has_dropped_is_gone() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(other, backend="spyre", dynamic=False)
    compiled(torch.ones(2, 64))
    (made,) = compilations()
    assert made.program is programs()[0]
    del compiled
    torch._dynamo.reset()
    gc.collect()
    assert made.program is None
    assert programs() == []


def test_programs_of_before_a_reset_are_not_taken_for_those_of_another_function() -> None:
    torch._dynamo.reset()
    before = torch.compile(other, backend="spyre", dynamic=False)
    before(torch.ones(2, 64))
    kept = programs(before)
    torch._dynamo.reset()
    after = torch.compile(broken, backend="spyre", dynamic=False)
    after(torch.ones(2, 64))
    first, second, third = compilations()
    assert first.graph == second.graph != third.graph, "Dynamo gives the name again"
    assert sorted(overloads(after)) == ["exp", "relu"]
    assert programs() == kept + programs(after), "what its user holds is in the history"


def chosen(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(torch.exp(x)[x > 0])


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_programs_of_a_graph_that_data_divides_are_those_of_its_parts() -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        torch._dynamo.reset()
        compiled = torch.compile(chosen, backend="spyre", fullgraph=True, dynamic=False)
        compiled(torch.tensor([1.0, -1.0, 2.0]))
        assert overloads(compiled) == overloads(chosen) == ["exp", "tanh"]
        (made,) = compilations()
        assert made.program is None and list(made.programs) == programs(compiled)
        compiled(torch.ones(3))
        assert overloads(compiled) == ["exp", "tanh", "tanh"], "the second part has another size"
        (first, *_) = programs(compiled)
        assert first.name == "chosen_0" and "exp" in str(first.report())
        del compiled, first
        torch._dynamo.reset()
        gc.collect()
        assert made.programs == ()


def test_the_history_is_printed_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    torch._dynamo.reset()
    forget()
    torch.compile(other, backend="spyre", dynamic=False)(torch.ones(2, 64))
    print_history()
    said = capsys.readouterr()
    assert said.out == "" and "captured" in said.err
