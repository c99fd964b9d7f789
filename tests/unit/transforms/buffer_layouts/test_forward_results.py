"""Products that write results of the program, where copies had brought them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import AllocOp, ComputeOp, FromDeviceOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import Lowered, lower
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel


class Convolved(nn.Module):
    """A convolution of 128 channels in 32 groups: much arithmetic for what it writes."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(2)
        self.weight = nn.Parameter((torch.randn(128, 4, 3, 3, generator=generator) / 6).half())

    def forward(self, image: Tensor) -> Tensor:
        return functional.conv2d(image, self.weight, padding=1, groups=32)


def image() -> Tensor:
    """An image of 128 channels, 56 by 56."""
    return torch.randn(1, 128, 56, 56, generator=torch.Generator().manual_seed(3)).half()


def writers(levels: Lowered) -> list[ComputeOp]:
    """The kernels that write what the host reads."""
    ops = list(levels.modules["spyre.kernel"].walk())
    read = [op.source for op in ops if isinstance(op, FromDeviceOp)]
    return [op for op in ops if isinstance(op, ComputeOp) and op.output in read]


def test_a_convolution_writes_its_result_itself() -> None:
    program = import_program(Convolved().eval(), (image(),))
    levels = lower(program.module, make_context())
    (writer,) = writers(levels)
    assert writer.is_product
    # The result lies as the host takes it: rows, columns, channels in the lanes.
    assert (writer.tensors[-1].shape, writer.tensors[-1].layout.order) == ((1, 128, 56, 56), (2, 3, 1, 0))
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(image())), str(outcome)


def test_a_copy_of_what_another_kernel_reads_stays() -> None:
    def both(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        product = x @ w
        return product.transpose(1, 2), product.exp()

    generator = torch.Generator().manual_seed(5)
    inputs = torch.randn(8, 128, 1024, generator=generator).half(), torch.randn(1024, 128, generator=generator).half()
    program = import_program(FunctionModel(both), inputs)
    levels = lower(program.module, make_context())
    assert not any(op.is_product for op in writers(levels) if isinstance(op.output.owner, AllocOp))
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(*inputs)), str(outcome)
