"""Kernels whose reads and writes of device memory would alternate, in two steps."""

from __future__ import annotations

import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import OFF, lower
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

SHAPE = 32, 256, 64


def put(cache: Tensor, new: Tensor, at: Tensor) -> Tensor:
    """A row of each batch of a cache becomes another."""
    here = torch.arange(SHAPE[1]).view(1, -1, 1) == at
    return torch.where(here, new, cache)


def both(x: Tensor, y: Tensor) -> Tensor:
    """A sum of two tensors, each of which is read once."""
    return x + y


def made(*shapes: tuple[int, ...]) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(7)
    return tuple(torch.randn(*shape, generator=generator).half() for shape in shapes)


def compiled(function: object, inputs: tuple[Tensor, ...], options: PassOptions) -> tuple[list[str], float]:
    """The kernels of a program, and its predicted us."""
    modules = lower(import_program(FunctionModel(function), inputs).module, make_context(), options=options).modules
    names = [op.function_name for op in modules["spyre.kernel"].walk() if isinstance(op, ComputeOp)]
    return names, module_timeline(modules["superdsc"], "calibrated").total_us


def test_two_kernels_are_predicted_to_be_quicker() -> None:
    inputs = made(SHAPE, SHAPE)
    once, once_us = compiled(both, inputs, {"stage-transfers": OFF})
    names, us = compiled(both, inputs, {})
    assert (once, names) == (["add"], ["add", "identity"])
    assert us < 0.85 * once_us


def test_a_short_kernel_stays_one() -> None:
    assert compiled(both, made((32, 64, 64), (32, 64, 64)), {})[0] == ["add"]


def test_every_level_agrees_with_torch() -> None:
    for function, inputs in ((both, made(SHAPE, SHAPE)), (put, (*made(SHAPE, (32, 1, 64)), torch.tensor([5])))):
        assert (outcome := spyre_mlir.compile(FunctionModel(function), inputs).verify(*inputs)), str(outcome)
