"""Kernels that write where copies had brought their results."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import AllocOp, ComputeOp, FromDeviceOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel


def turned(x: Tensor, w: Tensor) -> Tensor:
    """A product whose columns become rows: much arithmetic for what it writes."""
    return (x @ w).transpose(1, 2)


def operands() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(8, 128, 1024, generator=generator).half(), torch.randn(1024, 128, generator=generator).half()


def writers(levels: Lowered) -> list[ComputeOp]:
    """The kernels that write what the host reads."""
    ops = list(levels.modules["spyre.kernel"].walk())
    read = [op.source for op in ops if isinstance(op, FromDeviceOp)]
    return [op for op in ops if isinstance(op, ComputeOp) and op.output in read]


def test_a_product_writes_its_result_itself() -> None:
    """Where the result may lie as a product writes it, with what were its columns in the lanes."""
    program, options = import_program(FunctionModel(turned), operands()), CompileOptions(inputs="free")
    levels = lower(program.module, make_context(), options=options.passes())
    (writer,) = writers(levels)
    assert writer.is_product
    made = CompiledModel(program, levels, options)
    assert (outcome := made.verify(*operands())), str(outcome)


def test_a_copy_of_what_another_kernel_reads_stays() -> None:
    def both(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        product = x @ w
        return product.transpose(1, 2), product.exp()

    program = import_program(FunctionModel(both), operands())
    levels = lower(program.module, make_context())
    assert not any(op.is_product for op in writers(levels) if isinstance(op.output.owner, AllocOp))
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(*operands())), str(outcome)


def test_a_kernel_writes_between_the_zeros_around_an_image() -> None:
    """It has the channels in the lanes as the padded image has, which no pass before knows."""

    def convolved(x: Tensor, w: Tensor) -> Tensor:
        image = functional.silu(functional.conv2d(x, w[:, :, :1, :1].repeat(4, 1, 1, 1)))
        return functional.conv2d(image, w, padding=1)

    generator = torch.Generator().manual_seed(3)
    inputs = tuple(torch.randn(*s, generator=generator).half() for s in ((1, 64, 48, 46), (16, 64, 3, 3)))
    program = import_program(FunctionModel(convolved), inputs)
    levels = lower(program.module, make_context())
    ops = [op for op in levels.modules["spyre.kernel"].walk() if isinstance(op, ComputeOp)]
    (writer,) = [op for op in ops if op.function_name == "silu"]
    assert writer.tensors[-1].shape == (1, 50, 48, 64)
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(*inputs)), str(outcome)
