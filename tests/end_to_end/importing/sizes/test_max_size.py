"""Sizes that data decides, with a bound: one program for all of them, padded and masked, in `torch.compile`, too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.parted.model import PartedModel
from spyre_mlir.torch_compile import history
from tests.end_to_end.importing.against_eager import close, results
from tests.end_to_end.importing.sizes.bounded_programs import (
    PROGRAMS,
    attention_to_rows,
    call,
    counted_to,
    means,
    overwritten,
    positive,
    repeated,
    rows_by_a_weight,
    softmax_over_rows,
    sorted_rows,
)
from tests.functions import FunctionModel

pytestmark = [
    pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning"),
    pytest.mark.filterwarnings("ignore:index_reduce:UserWarning"),
]


def bounded(program: Callable[..., Any], **options: Any) -> PartedModel:
    made = spyre_mlir.compile(FunctionModel(program), call(3), **{"max_size": 24, "numerics": "exact", **options})
    assert isinstance(made, PartedModel)
    return made


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_one_program_is_eager_for_every_size(program: Callable[..., Any]) -> None:
    """Nothing is compiled at a call, for a size of 1 either, for which torch traces another program."""
    compiled = bounded(program)
    before = compiled.programs
    for count in (3, 4, 2, 1):
        close(results(compiled, call(count)), results(program, call(count)))
    assert compiled.programs == before
    assert compiled.verify(*call(2))


def first_of_rows(x: Tensor, _i: Tensor) -> Any:
    rows = positive(x)
    return (rows * (torch.arange(rows.shape[0]) == 0)[:, None]).sum(0), (torch.arange(rows.shape[0]) == 0).sum()


def test_no_element_is_a_size_too() -> None:
    for program in (attention_to_rows, first_of_rows, sorted_rows):
        compiled = bounded(program)
        for count in (0, 1):
            close(results(compiled, call(count)), results(program, call(count)))


def three(x: Tensor, _i: Tensor) -> Any:
    numbers = x[x > 0.55]
    torch._check(numbers.shape[0] >= 3)
    return numbers.topk(3)


def test_a_least_size_is_that_of_the_program() -> None:
    compiled = bounded(three)
    before = compiled.programs
    for count in (4, 3):
        close(results(compiled, call(count)), results(three, call(count)))
    assert compiled.programs == before
    with pytest.raises(InputError):
        compiled(*call(2))


def test_what_eager_refuses_is_refused() -> None:
    with pytest.raises(InputError, match=r"aten\.index\.Tensor gives a size of 0 in this call, expected 1 at least"):
        bounded(means)(*call(0))


@pytest.mark.parametrize("program", [softmax_over_rows, counted_to], ids=lambda p: p.__name__)
def test_device_numerics(program: Callable[..., Any]) -> None:
    compiled = bounded(program, numerics="device")
    for count in (3, 1):
        torch.testing.assert_close(compiled(*call(count)), program(*call(count)), rtol=0.01, atol=0.01)


def test_a_larger_size_is_an_error_of_the_call() -> None:
    compiled = bounded(rows_by_a_weight, max_size=3)
    close(results(compiled, call(3)), results(rows_by_a_weight, call(3)))
    with pytest.raises(InputError, match=r"aten\.index\.Tensor gives a size of 4 .*, expected 3 at most") as no:
        compiled(*call(4))
    assert no.value.where is not None
    assert "functions.py:" in no.value.where


def test_bounds_are_those_that_the_program_says() -> None:
    """A mask of four rows selects four at most, and the model checks a number itself."""
    assert "// FunctionModel_1 is compiled once for u0 <= 4" in bounded(rows_by_a_weight, max_size="known").mlir()
    assert "u0 <= 8" in bounded(counted_to, max_size="known").mlir()
    with pytest.raises(InputError, match=r"not say how large the size is that aten\.repeat_interleave\.Tensor makes"):
        bounded(repeated, max_size="known")


def in_bins(x: Tensor, _i: Tensor) -> Any:
    """Between the least and the largest number."""
    return torch.histc(x[x > 0], 5)


def pairs_in_a_line(x: Tensor, _i: Tensor) -> Any:
    """Three dimensions in one."""
    rows = positive(x)
    return (rows[:, None] * rows[None]).flatten() * 2


def divided_by_a_number(x: Tensor, i: Tensor) -> Any:
    return x / i.max().float().item()


@pytest.mark.parametrize(
    ("program", "because"),
    [
        (in_bins, r"aten\.histc: arith\.minimumf takes in padding"),
        (pairs_in_a_line, "for another length"),
        (divided_by_a_number, "is a number of the data that is no size"),
    ],
    ids=["bins", "pairs", "number"],
)
def test_what_padding_would_reach_is_refused(program: Callable[..., Any], because: str) -> None:
    with pytest.raises(UnsupportedError, match=because) as no:
        bounded(program)
    assert " has no program for all sizes: " in str(no.value)
    assert no.value.hint == "leave out max_size: each size then has a program of its own"


def test_a_bound_needs_a_size_of_data() -> None:
    with pytest.raises(InputError, match="max_size is of sizes that data decides, and the model has none"):
        spyre_mlir.compile(nn.ReLU(), (torch.ones(3),), max_size=3)
    with pytest.raises(InputError, match="max_size must be a number above 0, 'known' or None, got 0"):
        spyre_mlir.compile(nn.ReLU(), (torch.ones(3),), max_size=0)


def test_infinite_padding_shows() -> None:
    """The logarithm of padding, 0, times 0, is no number: the call has a program of its own, and eager's result.

    That the padding is 0 again behind the sum, the proof does not know.
    """

    def logarithms(x: Tensor, _i: Tensor) -> Any:
        rows = positive(x)
        return rows.t() @ (rows + torch.relu(-x.abs()).sum(0)).log()

    close(results(bounded(logarithms), call(2)), results(logarithms, call(2)))


def test_a_saved_bound_is_read_again(tmp_path: Path) -> None:
    compiled = bounded(attention_to_rows)
    loaded = spyre_mlir.load(compiled.save(tmp_path / "saved"), numerics="exact")
    assert isinstance(loaded, PartedModel)
    before = loaded.programs
    for count in (3, 1, 4):
        close(results(loaded, call(count)), results(attention_to_rows, call(count)))
    assert loaded.programs == before


@pytest.mark.parametrize(
    "program", [rows_by_a_weight, means, counted_to, sorted_rows, overwritten], ids=lambda p: p.__name__
)
def test_torch_compile_in_one_graph(program: Callable[..., Any]) -> None:
    options = {"numerics": "exact", "max_size": "known"}
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        torch._dynamo.reset()
        compiled = torch.compile(FunctionModel(program), backend="spyre", fullgraph=True, options=options)
        programs = list[Any]()
        for count in (3, 2, 1):
            close(results(compiled, call(count)), results(program, call(count)))
            programs.append(history.programs(compiled))
        torch._dynamo.reset()
    assert programs[0]
    assert programs == [programs[0]] * 3


def test_other_graphs_of_the_function_need_no_size() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(nn.ReLU(), backend="spyre", options={"max_size": 3})
    assert compiled(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    torch._dynamo.reset()
