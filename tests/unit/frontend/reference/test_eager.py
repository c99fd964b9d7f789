"""What torch computes for a program: results in their order, in the precision asked for, the model unchanged."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.reference.eager import (
    _buffers_restored,
    double_reference,
    shown_as_numpy,
    to_numpy,
    torch_reference,
)
from spyre_mlir.frontend.torch_private import tree_flatten
from tests.unit.frontend.graphs import exported

THIRD = 1 / 3


class Counting(nn.Module):
    """Writes to a buffer and to an input, and gives a number beside its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([THIRD, 2.0]))
        self.register_buffer("count", torch.zeros(2))

    def forward(self, x: torch.Tensor, y: torch.Tensor, *, factor: int = 2) -> Any:
        self.count.add_(1)
        y.add_(self.count)
        return {"product": x * self.weight * factor, "kind": "pair", "whole": x.to(torch.int32)}


X, Y = torch.tensor([3.0, 5.0]), torch.tensor([10.0, 20.0])


def test_results_and_then_what_is_written_without_writing_it() -> None:
    model = Counting()
    program = import_program(model, (X, Y), {"factor": 2})
    product, whole, count, y = torch_reference(program, (X, Y), {"factor": 2})
    assert product.tolist() == [np.float32(THIRD) * 3 * 2, 20]
    assert product.dtype == np.float32
    assert (whole.tolist(), count.tolist(), y.tolist()) == ([3, 5], [1, 1], [11, 21])
    assert (model.count.tolist(), Y.tolist()) == ([0, 0], [10, 20])


@pytest.mark.parametrize("by", ["position", "name"])
def test_what_a_view_of_a_half_precision_input_is_written(by: str) -> None:
    class Row(nn.Module):
        def forward(self, cache: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
            cache[1:2].copy_(row)
            return cache.sum(-1)

    cache, row = torch.zeros(3, 2, dtype=torch.float16), torch.ones(1, 2, dtype=torch.float16)
    args = (cache, row) if by == "position" else ()
    kwargs = {} if args else {"cache": cache, "row": row}
    sums, written = torch_reference(import_program(Row(), args, kwargs), args, kwargs)
    assert sums.tolist() == [0, 2, 0]
    assert written.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert cache.tolist() == [[0, 0]] * 3


def test_a_model_that_refuses_doubles_is_run_as_it_is() -> None:
    class Single(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert x.dtype is torch.float32
            return x * 2 + 1

    (got,) = double_reference(import_program(Single(), (X,)), (X,))
    assert got.dtype == np.float32
    assert got.tolist() == [7, 11]


def test_an_error_of_the_model_itself_is_not_hidden() -> None:
    class Failing(nn.Module):
        fails = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.fails:
                raise ValueError("no more")
            return x + 1

    model = Failing()
    program = import_program(model, (X,))
    model.fails = True
    with pytest.raises(ValueError, match="no more"):
        double_reference(program, (X,))


def test_double_precision_widens_weights_and_inputs() -> None:
    model = Counting()
    program = import_program(model, (X, Y), {"factor": 2})
    product, whole, count, _ = double_reference(program, (X, Y), {"factor": 2})
    assert product.dtype == count.dtype == np.float64
    assert product[0] == float(np.float32(THIRD)) * 3.0 * 2.0
    assert whole.dtype == np.int32
    assert model.weight.dtype is torch.float32
    assert model.count.tolist() == [0, 0]


def test_an_exported_program_is_its_own_reference() -> None:
    program = import_program(exported(Counting(), X, Y))
    for reference in (torch_reference, double_reference):
        product, whole, count, _ = reference(program, (X, Y))
        np.testing.assert_allclose(product, [2, 20], rtol=1e-6)
        assert (whole.tolist(), count.tolist()) == ([3, 5], [1, 1])
    assert double_reference(program, (X, Y))[0].dtype == np.float64


class Halves(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.bfloat16) * 3


class HalfWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0], dtype=torch.float16), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight / x


def test_half_precision_rounds_nothing() -> None:
    x = torch.tensor([1 + 2.0**-20])
    [found] = torch_reference(import_program(Halves(), (x,)), (x,))
    assert found.tolist() == [3 + 3 * 2.0**-20]
    x = torch.tensor([3.0], dtype=torch.float16)
    [found] = torch_reference(import_program(HalfWeight(), (x,)), (x,))
    assert found.tolist() == [THIRD]


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Conv1d(3, 4, 3), (2, 3, 10)),
        (nn.Conv2d(3, 4, 3), (1, 3, 5, 5)),
        (nn.PReLU(3), (2, 3)),
        (nn.GRU(4, 5, batch_first=True), (2, 3, 4)),
        (nn.LSTM(4, 5, batch_first=True), (2, 3, 4)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_layers_that_compare_dtypes_run_in_double_precision_too(model: nn.Module, shape: tuple[int, ...]) -> None:
    """The reference is the model with its weights and inputs widened, to the last bit."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).half()
    program = import_program(model.eval().half(), (x,))
    found = torch_reference(program, (x,))
    with torch.no_grad():
        wanted, _ = tree_flatten(copy.deepcopy(model).double()(x.double()))
    for one, other in zip(found, wanted, strict=True):
        assert np.array_equal(one, other.numpy())
    assert all(p.dtype is torch.float16 for p in model.parameters())


class Sorted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(x, descending=True)[1]


def test_equal_elements_keep_their_order() -> None:
    x = torch.zeros(65)
    [found] = torch_reference(import_program(Sorted(), (x,)), (x,))
    assert found.tolist() == list(range(65))


def test_arguments_are_checked_first() -> None:
    program = import_program(Halves(), (X,))
    for reference in (torch_reference, double_reference):
        with pytest.raises(InputError, match="argument 'x': expected"):
            reference(program, (torch.ones(3),))


def test_buffers_are_as_they_were_in_the_memory_that_they_had() -> None:
    model = Counting()
    memory = model.count.data_ptr()

    def broken() -> None:
        with torch.no_grad(), _buffers_restored(model, ["count", "y"]) as buffers:
            assert set(buffers) == {"weight", "count"}
            buffers["count"].add_(5)
            buffers["weight"].add_(1)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken()
    assert (model.count.tolist(), model.count.data_ptr()) == ([0, 0], memory)
    assert model.weight[1].item() == 3, "nobody asked for it to be as it was"


@pytest.mark.parametrize(
    ("dtype", "array"),
    [
        (torch.bfloat16, np.float32),
        (torch.float8_e4m3fn, np.float32),
        (torch.float16, np.float16),
        (torch.float32, np.float32),
        (torch.float64, np.float64),
        (torch.int8, np.int8),
        (torch.bool, np.bool_),
    ],
)
def test_arrays_of_tensors(dtype: torch.dtype, array: Any) -> None:
    tensor = torch.tensor([1.0, 0.0]).to(dtype)
    for made in (to_numpy(tensor), shown_as_numpy(tensor)):
        assert made.dtype == array
        assert made.tolist() == [1, 0]


def test_an_array_of_its_own_or_one_that_shows_the_tensor() -> None:
    tensor = torch.ones(2, requires_grad=True)
    own, shown = to_numpy(tensor), shown_as_numpy(tensor)
    with torch.no_grad():
        tensor.add_(1)
    assert (own.tolist(), shown.tolist()) == ([1, 1], [2, 2])
    conjugate = torch.tensor([1 + 2j]).conj().imag
    assert to_numpy(conjugate).tolist() == [-2]


def test_a_normalisation_keeps_its_weights_in_single_precision() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3).half(), nn.BatchNorm2d(4)).eval()
    x = torch.randn(1, 3, 5, 5, generator=torch.Generator().manual_seed(0)).half()
    [found] = torch_reference(import_program(model, (x,)), (x,))
    with torch.no_grad():
        wanted = copy.deepcopy(model).double()(x.double())
    assert np.array_equal(found, wanted.numpy())
