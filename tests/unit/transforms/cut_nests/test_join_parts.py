"""Parts of a tensor that are computed alike: how many nests there are, and that the results stay right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.loop import NestOp, body_function
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.native import pointwise
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.levels import ops

Function = Callable[[Tensor, Tensor], object]


def scaled(x: Tensor, y: Tensor) -> Tensor:
    """Both halves of the rows of a sum, scaled alike, through different functions."""
    q = x + y
    first, second = (part * 0.125 for part in q.chunk(2, -2))
    return torch.cat([first.exp(), second.tanh()], -2)


def middle(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Three parts of the first dimension, of which two go into a product."""
    a, b, c = (part.sigmoid() for part in (x * y).split([1, 2, 1], 0))
    return a.squeeze(0) @ c.squeeze(0).mT, b.mT @ y[:2]


JOINED: dict[str, tuple[Function, int]] = {"rows": (scaled, 4), "batches": (middle, 4)}

APART: dict[str, tuple[Function, int]] = {
    "parts of an input": (lambda x, y: (x[:, :32] * 0.5).exp() + (x[:, 32:] * 0.5).tanh() * y[:, :32], 6),
    "other factors": (lambda x, y: ((x + y)[:, :32] * 0.5).exp() + ((x + y)[:, 32:] * 0.25).tanh(), 6),
    "other functions": (lambda x, y: ((x + y)[:, :32].exp().mT, (x + y)[:, 32:].tanh()), 4),
    "columns": (lambda x, y: _halves((x + y).chunk(2, -1)), 6),
    "overlapping": (lambda x, y: _halves(((x + y)[:, :48], (x + y)[:, 16:])), 6),
    "some of it": (lambda x, y: _halves(((x + y)[:, :16], (x + y)[:, 16:32])), 6),
    "all of it, too": (lambda x, y: (_halves((x + y).chunk(2, -2)), x + y), 6),
}


def _halves(parts: tuple[Tensor, ...]) -> Tensor:
    first, second = (part * 0.5 for part in parts)
    return first.exp() + second.tanh()


def nests(levels: Lowered) -> int:
    return len(ops(levels.modules["spyre.loop"], NestOp))


def inputs(dtype: torch.dtype = torch.float16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    x, y = (torch.randn(4, 64, 128, generator=generator).to(dtype) for _ in range(2))
    return x, y


def lowered(function: Function, args: tuple[Tensor, ...]) -> tuple[CompiledModel, Lowered]:
    program = import_program(FunctionModel(function), args)
    levels = lower(program.module, make_context())
    return CompiledModel(program, levels, CompileOptions()), levels


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_parts_that_are_computed_alike_are_computed_together(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    function, count = JOINED[name]
    args = inputs(dtype)
    made, levels = lowered(function, args)
    assert nests(levels) == count
    assert (outcome := made.verify(*args)), str(outcome)
    made.save(tmp_path / "bundle")
    loaded, expected = spyre_mlir.load(tmp_path / "bundle")(*args), made(*args)
    pairs = zip(loaded, expected, strict=True) if isinstance(loaded, tuple) else [(loaded, expected)]
    assert all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("name", APART)
def test_parts_that_stay_apart(name: str) -> None:
    function, count = APART[name]
    args = inputs()
    made, levels = lowered(function, args)
    assert nests(levels) == count
    assert (outcome := made.verify(*args)), str(outcome)


def test_queries_of_causal_attention_are_scaled_once() -> None:
    """Four blocks of 512 queries: the program computes them, or the host sends them."""
    with torch.device("meta"):
        q, k = (torch.empty(1, 4, 2048, 64).half() for _ in range(2))
    assert scales(lambda q, k: functional.scaled_dot_product_attention(q + k, k, k, is_causal=True), q, k) == 1
    assert scales(lambda q, k: functional.scaled_dot_product_attention(q, k, k, is_causal=True), q, k) == 4


def scales(function: Function, *args: Tensor) -> int:
    """The nests that multiply something by a number."""
    levels = lower(import_program(FunctionModel(function), args).module, make_context(), until="spyre.loop")
    found = [nest for nest in ops(levels.modules["spyre.loop"], NestOp) if nest.combine is None]
    products = [nest for nest in found if body_function(nest.body.block) is pointwise.mul]
    return len([nest for nest in products if shape_of(nest.inputs[1]) == ()])
