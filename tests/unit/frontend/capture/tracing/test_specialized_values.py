"""Values that Python reads, as for the example inputs: eager's results, refusals of other calls, and what stays."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as f

import spyre_mlir
from spyre_mlir.errors import InputError, MachineFault, UnsupportedError
from tests.end_to_end.importing.against_eager import close, results
from tests.functions import FunctionModel
from tests.unit.frontend.capture.tracing.asserting import with_text

pytestmark = pytest.mark.filterwarnings("ignore")
X = torch.tensor([[0.5, -1.0, 2.0, 3.0], [1.0, 2.0, -3.0, 0.25]])
Y = torch.tensor([[0.5, -0.75, 2.0, 3.0], [1.0, 2.0, -2.0, 0.75]])  # Python reads the same of it


def branch(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x - 1


def turns(x: Tensor) -> Tensor:
    for _ in range(int(x.max())):
        x = x + 1
    return x


def until(x: Tensor) -> Tensor:
    while x.max() > 1:
        x = x / 2
    return x


def chosen(x: Tensor) -> Tensor:
    return [x, x * 3, x + 2][(x > 1).sum() % 3]


def of_a_list(x: Tensor) -> Tensor:
    signs = (x[0] > 0).tolist()
    return x * sum(signs) + (1 if signs[0] else 5)


def sizes(x: Tensor) -> Any:
    count = (x[0] > 0).sum()
    return f.pad(x, (count, 0)), x[:, :count] + 1, torch.ones(count) * 2, x.reshape(count - 1, -1)


def contained(x: Tensor) -> Tensor:
    return x * 2 if 0.5 in x else x * 3


def compared(x: Tensor) -> Tensor:
    y = x * 2 if torch.equal(x, x.relu()) else x * 4
    return y + 1 if torch.allclose(x, x + 1) else y - 1


PROGRAMS = [branch, turns, until, chosen, of_a_list, sizes, contained]


@pytest.mark.parametrize("program", [*PROGRAMS, compared], ids=lambda p: p.__name__)
def test_every_level_is_eager(program: Callable[[Tensor], Any]) -> None:
    model = FunctionModel(program)
    compiled: Any = spyre_mlir.compile(model, (X,), specialize_values=True)
    for x in (X, Y):
        close(results(compiled, (x,)), results(model, (x,)))
        assert (verification := compiled.verify(x)), str(verification)


def test_without_the_option_the_refusal_names_it() -> None:
    with pytest.raises(UnsupportedError, match="decides its control flow") as caught:
        spyre_mlir.compile(FunctionModel(branch), (X,))
    assert "specialize_values=True" in str(caught.value.hint)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_call_that_would_read_something_else_is_refused(program: Callable[[Tensor], Any]) -> None:
    compiled = spyre_mlir.compile(FunctionModel(program), (X,), specialize_values=True)
    with pytest.raises(MachineFault) as caught:
        compiled(-2 * X)
    assert re.search(rf"fails: Python reads \w+ of a tensor at {re.escape(__file__)}:\d+, and", caught.value.message)
    assert caught.value.hint == "compile again with inputs like these"


def test_what_is_loaded_checks_too(tmp_path: Path) -> None:
    spyre_mlir.compile(FunctionModel(branch), (X,), specialize_values=True).save(tmp_path / "saved")
    loaded = spyre_mlir.load(tmp_path / "saved")
    close(results(loaded, (X,)), [X * 2])
    with pytest.raises(MachineFault, match="was compiled for True"):
        loaded(-X)


class Counting(nn.Module):
    """Reads a buffer and writes to it, counts in Python, and draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(2))
        self.calls: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.calls.append(len(self.calls))
        for _ in range(int(self.count)):
            x = x + torch.rand(4)
        self.count += int(x.shape[0] > 2)
        return x


def test_the_model_and_the_generator_stay_as_they_were() -> None:
    model = Counting()
    state = torch.get_rng_state()
    compiled = spyre_mlir.compile(model, (X,), specialize_values=True, numerics="exact")
    assert torch.equal(torch.get_rng_state(), state)
    assert model.calls == []
    assert model.count.item() == 2
    close(results(compiled, (X,)), results(model, (X,)))


def test_an_assertion_keeps_its_message() -> None:
    compiled = spyre_mlir.compile(FunctionModel(lambda x: branch(with_text(x))), (X.abs(),), specialize_values=True)
    with pytest.raises(MachineFault, match="numbers must be positive"):
        compiled(X)


def test_floats_that_are_read_stay_tensors() -> None:
    def program(x: Tensor) -> Tensor:
        return x * x.mean().item() if x.max() > 1 else x

    model = FunctionModel(program)
    compiled = spyre_mlir.compile(model, (X,), specialize_values=True)
    close(results(compiled, (X * 1.5,)), results(model, (X * 1.5,)))


def test_a_model_without_values_is_refused() -> None:
    with torch.device("meta"):
        model = nn.Linear(4, 4)
    with pytest.raises(InputError, match="it has tensors without values") as caught:
        spyre_mlir.compile(model, (X,), specialize_values=True)
    assert "load the weights" in str(caught.value)


def test_an_exported_program_is_refused() -> None:
    exported = torch.export.export(nn.Linear(4, 4), (X,))
    with pytest.raises(InputError, match="an exported program has no Python"):
        spyre_mlir.compile(exported, specialize_values=True)
