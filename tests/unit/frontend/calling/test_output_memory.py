"""Where outputs lie for the inputs of a call, found by the program as it was exported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import spyre_mlir
from spyre_mlir.frontend.calling.output_memory import output_memory
from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.lowering.signature import read_signature
from spyre_mlir.frontend.program.result_memory import MemoryPlace, ResultMemory
from spyre_mlir.frontend.symbolic.sizes import Sizes
from tests.functions import FunctionModel
from tests.unit.frontend.graphs import exported

F32 = torch.float32


class Views(nn.Module):
    """Outputs in the memory of an input, of a weight, of a buffer that is written, and in memory of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4), requires_grad=False)
        self.register_buffer("count", torch.zeros(2))
        self.number = torch.ones(5)

    def forward(self, x: torch.Tensor, factor: float, flag: object = None) -> Any:
        self.count.add_(1)
        return x.t(), None, self.weight[1:], x * factor, self.number[:1]


MODEL = Views()


def memory_of(model: nn.Module, *args: Any) -> Callable[[dict[str, torch.Tensor]], tuple[ResultMemory, Any]]:
    program = exported(model, *args)
    return output_memory(program, read_signature(decompose(program), Sizes()))  # type: ignore[return-value]


def test_outputs_are_views_of_inputs_and_weights_or_lie_alone() -> None:
    x = torch.zeros(2, 3)
    memory, inputs = memory_of(MODEL, torch.zeros(2, 3), 2.0, None)({"x": x})
    numbers = {id(value): number for number, value in enumerate(inputs)}
    weight = next(n for n, v in enumerate(inputs) if isinstance(v, torch.Tensor) and v.shape == (4,))
    number = next(n for n, v in enumerate(inputs) if isinstance(v, torch.Tensor) and v.shape == (5,))
    assert memory.views == {
        0: (numbers[id(x)], MemoryPlace(F32, (3, 2), (1, 3), 0)),
        1: (weight, MemoryPlace(F32, (3,), (1,), 1)),
        3: (number, MemoryPlace(F32, (1,), (1,), 0)),
    }
    assert memory.own == ({2: MemoryPlace(F32, (2, 3), (3, 1), 0)},)


def test_sizes_among_the_outputs_have_no_memory() -> None:
    model = FunctionModel(lambda x: (x.shape[0], x * 2, x.shape[0] + 1, x.t()))
    compiled = spyre_mlir.compile(model, (torch.ones(3, 2),), dynamic_shapes=(({0: torch.export.Dim("rows")},),))
    given = torch.ones(4, 2)
    rows, doubled, more, turned = compiled(given)
    assert (rows, more, doubled.tolist(), turned.shape) == (4, 5, [[2, 2]] * 4, (2, 4))
    assert turned.data_ptr() == given.data_ptr()


def test_inputs_are_what_every_placeholder_holds() -> None:
    x = torch.zeros(2, 3)
    _, inputs = memory_of(MODEL, torch.ones(2, 3), 2.0, None)({"x": x})
    tensors = [v for v in inputs if isinstance(v, torch.Tensor)]
    assert [v for v in inputs if not isinstance(v, torch.Tensor)] == [2.0, None]
    assert sorted(len(v) for v in tensors) == [2, 2, 4, 5]
    assert any(v is x for v in tensors)
    assert any(v.data_ptr() == MODEL.weight.data_ptr() for v in tensors)


def test_strides_are_those_of_the_call() -> None:
    memory, _ = memory_of(MODEL, torch.zeros(2, 3), 2.0, None)({"x": torch.zeros(3, 2).t()})
    assert memory.own == ({2: MemoryPlace(F32, (2, 3), (1, 2), 0)},)


class Flat(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return x.view(6), y.t() + 1, 3


def test_strides_that_the_model_does_not_take_count_as_those_of_the_example() -> None:
    memory, inputs = memory_of(Flat(), torch.zeros(2, 3), torch.zeros(2, 3))(
        {"x": torch.zeros(3, 2).t(), "y": torch.zeros(2, 3)}
    )
    assert memory.views == {}
    assert sorted(place for places in memory.own for place in places.items()) == [
        (0, MemoryPlace(F32, (6,), (1,), 0)),
        (1, MemoryPlace(F32, (3, 2), (1, 3), 0)),
    ]
    assert [tuple(x.shape) for x in inputs] == [(2, 3), (2, 3)]
