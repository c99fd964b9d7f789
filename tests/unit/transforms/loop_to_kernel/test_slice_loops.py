"""Loops that are loops of the bundle, and those that stay with the host."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf

from spyre_mlir.dialects.ir.control import ForLoopOp
from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import buffer_behind
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.loop_to_kernel.slice_loops import fits_bundle
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import passed

H, W, E = "tensor<4x64xf32>", "tensor<9x4x64xf32>", "tensor<1x4x64xf32>"


def program(body: str, given: str, *, trips: int = 9, element: str = "f32") -> str:
    whole, entry = (text.replace("9x", f"{trips}x").replace("f32", element) for text in (W, E))
    types = f"({H}, {H}, {whole}) -> ({H}, {H}, {whole})"
    return f"""
func.func @main(%a: {H}, %b: {H}, %x: {whole}) -> ({H}, {H}, {whole}) {{
  %0, %1, %2 = control.for_loop @step trips {trips} carrying 2 slicing 1 (%a, %b, %x) : {types}
  func.return %0, %1, %2 : {H}, {H}, {whole}
}}
func.func private @step(%a: {H}, %b: {H}, %e: {entry}) -> ({H}, {H}, {entry}) {{
  {body}
  func.return {given} : {H}, {H}, {entry}
}}
"""


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (program("", "%b, %a, %e"), True),
        (program("", "%b, %a, %e", element="i64"), False),
        (program("", "%b, %a, %e", element="i1"), True),
        (program("", "%b, %a, %e", trips=65535), True),
        (program("", "%b, %a, %e", trips=65536), False),
    ],
)
def test_what_bodies_and_numbers_say(text: str, fits: bool) -> None:
    context, module = make_context(), parse_module(text, make_context())
    (op,) = (o for o in module.walk() if isinstance(o, ForLoopOp))
    assert fits_bundle(op, spec_of(context, module)) is fits


def test_tensors_that_change_places_are_read_before_they_are_written() -> None:
    module = passed(program("", "%b, %a, %e"), "convert-spyre-loop-to-spyre-kernel")
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    kernels = [op for op in loop.body.block.ops if isinstance(op, KernelOp)]
    function = loop.parent_op()
    assert function is not None
    homes = [a for a in function.regions[0].block.args if device_tensor(a).shape == (4, 64)]
    reads = [n for n, op in enumerate(kernels) if op.inputs[0] in homes]
    writes = [n for n, op in enumerate(kernels) if buffer_behind(op.output) in homes]
    assert len(reads) == len(writes) == 2
    assert max(reads) < min(writes)


def test_what_is_carried_unchanged_is_not_written() -> None:
    module = passed(program("", "%a, %a, %e"), "convert-spyre-loop-to-spyre-kernel")
    (loop,) = (op for op in module.walk() if isinstance(op, scf.ForOp))
    function = loop.parent_op()
    assert function is not None
    first = function.regions[0].block.args[0]
    assert not any(op.output is first for op in loop.body.block.ops if isinstance(op, KernelOp))
