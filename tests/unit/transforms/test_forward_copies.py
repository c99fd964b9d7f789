"""Results that are only copied elsewhere: written there at once, with torch's values at every level."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel


def kernels(function: Any, inputs: tuple[Tensor, ...]) -> list[str]:
    """Names of the hardware functions of a program, in order."""
    lowered = lower(import_program(FunctionModel(function), inputs).module, make_context(), until="spyre.kernel")
    return [op.function_name for op in lowered.modules["spyre.kernel"].walk() if isinstance(op, ComputeOp)]


def beside(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """A product, and a function of one, beside each other, then the rows of all batches together."""
    return torch.cat([x @ w, torch.tanh(x @ v)], -1).permute(1, 0, 2).reshape(x.shape[1], -1)


def below(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Products below each other: of few columns, no product ends at the end of a stick."""
    return torch.cat([x @ w, x @ v], 0)


def turned(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Rows become columns, so that a copy remains."""
    return torch.stack([torch.exp(x @ w), torch.tanh(x @ v)], -1)


def sums(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Sums of rows beside products and their input, and a tensor that three of the parts read."""
    y = x @ w
    return torch.cat([y, y.sum(-1, keepdim=True), y * 2, x @ v, x], -1)


def framed(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    """Numbers around rows and batches, of which windows of two read all."""
    image = functional.pad(torch.tanh(x @ w).transpose(0, 1), (0, 0, 1, 2, 2, 1), value=0.5)
    return (image[1:, :-1] + image[:-1, 1:]) @ v[: image.shape[-1]]


def made(columns: int, dtype: torch.dtype) -> tuple[Tensor, ...]:
    """A batch of rows and two weights."""
    generator = torch.Generator().manual_seed(3)
    shapes = (3, 10, 64), (64, columns), (64, columns)
    return tuple(torch.randn(*shape, generator=generator).to(dtype) for shape in shapes)


def test_results_are_written_where_copies_would_take_them() -> None:
    """The one copy is of the input, which two products read from the scratchpads."""
    assert kernels(below, made(64, torch.float16)) == ["identity", "batchmatmul", "batchmatmul"]


def test_what_numbers_surround_is_written_once() -> None:
    """Four copies of a number are around what the function writes."""
    names = kernels(framed, made(64, torch.float16))
    assert names[names.index("tanh") :].count("identity") == 4


@pytest.mark.parametrize("function", [beside, below, turned, sums, framed])
@pytest.mark.parametrize("columns", [64, 40, 1])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_every_level_agrees_with_torch(function: Any, columns: int, dtype: torch.dtype) -> None:
    inputs = made(columns, dtype)
    assert (outcome := spyre_mlir.compile(FunctionModel(function), inputs).verify(*inputs)), str(outcome)


@pytest.mark.parametrize("function", [beside, below, sums])
@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.loop_to_kernel.precision_loss.NarrowedWarning")
def test_a_destination_that_keeps_float32(function: Any) -> None:
    """No product writes float32: it writes a tensor of its own, which is converted on its way."""
    inputs = made(64, torch.float32)
    compiled = spyre_mlir.compile(FunctionModel(function), inputs, keep_float32=True)
    assert (outcome := compiled.verify(*inputs)), str(outcome)


@pytest.mark.parametrize("shared", [4, 2])
def test_a_causal_block_has_its_scores_in_one_tensor(shared: int) -> None:
    """Of the two blocks of queries the second has two products of scores; each has one with the values."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    generator = torch.Generator().manual_seed(5)
    inputs = tuple(torch.randn(1, heads, 1024, 64, generator=generator) for heads in (4, shared, shared))
    names = kernels(attend, inputs)
    assert (names.count("batchmatmul"), names.count("max")) == (5, 2)
    assert (outcome := spyre_mlir.compile(FunctionModel(attend), inputs).verify(*inputs)), str(outcome)
