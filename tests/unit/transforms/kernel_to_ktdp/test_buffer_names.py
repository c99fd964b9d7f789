"""Names and descriptions of buffers: those of the model where it has any."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.transforms.kernel_to_ktdp.buffer_names import (
    describe_buffers,
    device_shape,
    is_written,
    named_buffers,
)
from tests.unit.machine.modules import device
from tests.unit.transforms.kernel_to_ktdp.kernels import matrix
from tests.unit.transforms.levels import ops, passed

T = matrix(4, 128)
HOST = "tensor<4x128xf16>"
BUFFERS = f"%b = spyre.kernel.alloc : {T}\n%c = spyre.kernel.alloc : {T}\n"


def module(*arguments: str, results: str = HOST, body: str = "") -> ModuleOp:
    """Every argument is sent as %i0, %i1, …; %a is read back as the result."""
    listed = ", ".join(arguments)
    names = [a.partition(":")[0] for a in arguments]
    sent = "".join(f"%i{n} = spyre.kernel.to_device {a} : {HOST} to {T}\n" for n, a in enumerate(names))
    return passed(f"""func.func @main({listed}) -> ({results}) {{
      {sent} %a = spyre.kernel.alloc : {T}
      {body}
      %r = spyre.kernel.from_device %a : {T} to {HOST}
      func.return %r : {HOST}
    }}""")


def names(found: ModuleOp) -> list[str]:
    return list(named_buffers(functions(found)[0]).values())


def test_buffers_have_the_names_of_inputs_and_outputs() -> None:
    found = module(
        f'%x: {HOST} {{aten.name = "weight"}}',
        f"%y: {HOST}",
        results=f'{HOST} {{aten.name = "logits"}}',
        body=f"{BUFFERS}%k = spyre.kernel.constant 1.0 : f64 : {T}",
    )
    assert names(found) == ["weight", "y", "logits", "buffer0", "buffer1", "constant0"]


def test_without_names_kinds_are_numbered() -> None:
    found = module(f"%0: {HOST}", f"%1: {HOST}")
    assert names(found) == ["input0", "input1", "output0"]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ("layers.0.weight", "layers_0_weight"),
        ("weight_0", "weight0"),
        ("weight__1_2", "weight12"),
        ("_x_", "x"),
        ("3d", "v3d"),
        ("...", "buffer"),
    ],
)
def test_names_are_words_that_printers_keep(given: str, word: str) -> None:
    assert names(module(f'%x: {HOST} {{aten.name = "{given}"}}'))[0] == word


def test_names_that_are_taken_are_numbered() -> None:
    same = [f'%x{n}: {HOST} {{aten.name = "w"}}' for n in range(3)]
    assert names(module(*same)) == ["w", "wv0", "wv1", "output0"]
    # A number is not used twice either.
    assert names(module(f'%x: {HOST} {{aten.name = "buffer0"}}', body=f"%b = spyre.kernel.alloc : {T}")) == [
        "buffer0", "output0", "buffer1",
    ]  # fmt: skip


def test_what_an_argument_is() -> None:
    neg = 'spyre.kernel.compute "neg" [m = 4, n = 128]'
    body = f"""%b = spyre.kernel.alloc : {T}
    %z = spyre.kernel.to_device %x zero_padding : {HOST} to {T}
    %k = spyre.kernel.constant 2.5 : f64 : {T}
    {neg} ins(%i0[m, n] : {T}) outs(%b[m, n] : {T})
    {neg} ins(%b[m, n] : {T}) outs(%z[m, n] : {T})"""
    found = module(f"%x: {HOST}", body=body)
    buffers = named_buffers(functions(found)[0])
    shape = "on the device f16[2, 4, 64]"
    assert describe_buffers(list(buffers), buffers) == [
        f"%x: input [4, 128], {shape}",
        f"%output0: output [4, 128], {shape}",
        f"%buffer0: intermediate [4, 128], {shape}",
        f"%xv0: input [4, 128], padding 0, written by the program, {shape}",
        f"%constant0: constant 2.500000e+00 : f64 of shape [4, 128], padding 0, {shape}",
    ]
    first, _ = ops(found, KernelOp)
    assert [is_written(use) for use in first.output.uses if use.operation is first] == [True]
    assert [is_written(use) for use in first.inputs[0].uses] == [False]


def test_shapes_on_the_device() -> None:
    kinds = [device((5, 100), 0, (0, 1), "IEEE_FP32"), device((5, 100), None), device((3,), 0, (0,), "BFLOAT16")]
    text = "".join(f"%{n} = spyre.kernel.alloc : {k}\n" for n, k in enumerate(kinds))
    (main,) = functions(passed(f"func.func @main() {{\n{text} func.return\n}}"))
    found = [device_tensor(op.results[0]) for op in main.body.block.ops if op.results]
    assert [device_shape(t) for t in found] == [
        "on the device f32[1, 100, 32]",
        "on the device f16[5, 100, 1, 64]",
        "on the device BFLOAT16[1, 64]",
    ]
    assert device_shape(replace(found[0], arrangement="dl16_to_fp32")) == (
        "on the device f32[1, 100, 32], elements of sticks in the order dl16_to_fp32"
    )
