"""Copies that leave every element where a restickify wrote it, which become views."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import ComputeOp, RestickifyOp
from spyre_mlir.dialects.spyre.kernel_loop import buffer_behind
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower, lower_to_ktir
from spyre_mlir.text.ktir_program import program_text
from spyre_mlir.text.render import module_text
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.ktir_programs import program_of

PATCH, ACROSS, CHANNELS, OUT = 16, 4, 3, 64


def embed(image: Tensor, weight: Tensor) -> Tensor:
    """Patches of 16 by 16, each a vector."""
    return functional.conv2d(image, weight, stride=PATCH)


def inputs() -> tuple[Tensor, Tensor]:
    """An image of 4 by 4 patches, and the weights."""
    generator = torch.Generator().manual_seed(4)
    image = torch.randn(1, CHANNELS, PATCH * ACROSS, PATCH * ACROSS, generator=generator)
    return image.half(), (torch.randn(OUT, CHANNELS, PATCH, PATCH, generator=generator) / 16).half()


def kernels() -> ModuleOp:
    """The embedding at the kernel level."""
    module = import_program(FunctionModel(embed), inputs()).module
    return lower(module, make_context(), until="spyre.kernel").modules["spyre.kernel"]


def product_of(module: ModuleOp) -> ComputeOp:
    """Its one product."""
    (found,) = (op for op in module.walk() if isinstance(op, ComputeOp) and op.is_product)
    return found


def test_a_product_reads_what_a_restickify_wrote() -> None:
    module = kernels()
    left = product_of(module).inputs[0]
    assert isinstance(left.owner, ViewOp)
    assert buffer_behind(left) in [op.output for op in module.walk() if isinstance(op, RestickifyOp)]
    # Columns of patches lie outermost, then the columns of a patch, then its rows: the product's sum is in between.
    view = product_of(module).tensors[0]
    assert (view.shape, view.layout.order) == ((1, ACROSS, ACROSS, PATCH * 64), (2, 3, 1, 0))


def test_the_batch_of_the_product_is_what_lies_outermost() -> None:
    product = product_of(kernels())
    strides = product.accesses()[0].strides
    batch, rows = [d.name for d in product.space.data][:2]
    assert strides[batch] > strides[rows]


def test_every_level_and_ktir_agree_with_torch() -> None:
    program = import_program(FunctionModel(embed), inputs())
    levels = lower(program.module, make_context())
    text = module_text(levels.modules["spyre.kernel"])
    assert "spyre.kernel.view" in text
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(*inputs())), str(outcome)
    ktir = program_text(lower_to_ktir(levels.modules["spyre.kernel"], make_context()))
    (got,) = program_of(text, ktir).run([x.numpy() for x in inputs()])
    wanted = embed(*(x.double() for x in inputs())).numpy()
    assert np.abs(got - wanted).max() <= 3e-3 * np.abs(wanted).max()


@pytest.mark.parametrize("options", [{"addresses": "concrete"}, {"loops": "unroll"}])
def test_files_have_the_address_of_the_buffer(options: dict[str, str]) -> None:
    program = import_program(FunctionModel(embed), inputs())
    levels = lower(program.module, make_context(), options={"convert-spyre-kernel-to-superdsc": options})
    assert any(isinstance(op, ViewOp) for op in levels.modules["spyre.kernel"].walk())
    assert not any(isinstance(op, ViewOp) for op in levels.modules["superdsc"].walk())
    made = CompiledModel(program, levels, CompileOptions())
    assert (outcome := made.verify(*inputs())), str(outcome)
