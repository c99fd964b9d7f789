"""Operands that scratchpads may hold, of the five kernels of a softmax: the largest, less it, exp, sum, quotient."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from xdsl.dialects import scf

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.transforms.utils.kernels.held_operands import (
    buffers_of,
    copied_inputs,
    cores_of_rows,
    holds_rows,
    joins_rows,
    may_hold,
)
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.test_place_lx import softmax

KERNELS = ops(passed(softmax(512, 1024), "divide-work"), KernelOp)


def test_an_input_that_several_kernels_read_may_be_copied() -> None:
    x = KERNELS[0].operands[0]
    assert copied_inputs(KERNELS) == {x}
    assert copied_inputs(KERNELS[:1]) == set(), "one reads it"
    assert may_hold(x, written=False) and not may_hold(x, written=True)


def test_buffers_between_kernels_are_their_own() -> None:
    results = [op.output for op in KERNELS]
    assert buffers_of(KERNELS) == set(results[:-1]), "the last one leaves the program"
    assert buffers_of(KERNELS[:2]) == {results[0]}, "kernels behind read the second"
    assert all(may_hold(value, written=True) for value in results)


@pytest.mark.parametrize(
    ("parts", "readers", "held"),
    [(1, ["exp"], True), (2, ["exp"], False), (2, ["identity"], True), (2, ["identity", "exp"], False)],
)
def test_rows_in_parts_are_held_for_copies(parts: int, readers: list[str], held: bool) -> None:
    rows = "!spyre.tensor<[64, 256] x SEN169_FP16, order [1, 0], stick 1, hbm>"
    index, column = ("i", "n") if parts == 1 else ("p, i", "p * 128 + n")
    loops, width = ("i = 64", 256) if parts == 1 else ("p = 2, i = 64", 128)
    ids = f"!spyre.tensor<[{'' if parts == 1 else '2, '}64] x SENUINT32, order [{'0' if parts == 1 else '0, 1'}], "
    ids += f"stick {parts - 1}, hbm>"
    table = f"!spyre.tensor<[100, {width}] x SEN169_FP16, order [0, 1], stick 1, hbm>"
    body = f"""%r = spyre.kernel.alloc : {rows}
    spyre.kernel.gather axis 0 [{loops}, n = {width}] ins(%i[{index}] : {ids}, %t[0, n] : {table})
      outs(%r[i, {column}] : {rows})
    """
    for number, function in enumerate(readers):
        body += f"""%{number} = spyre.kernel.alloc : {rows}
        spyre.kernel.compute "{function}" [i = 64, n = 256] ins(%r[i, n] : {rows}) outs(%{number}[i, n] : {rows})
        """
    text = f"func.func @main(%i: {ids}, %t: {table}) {{\n{body}func.return\n}}"
    (gather,) = ops(passed(text, "divide-work"), GatherOp)
    assert holds_rows(gather) == held


def test_rows_of_pages_are_held_and_their_readers_may_have_as_few_cores() -> None:
    """Pages of four places that lie behind each other are no parts of rows; 64 indices are two sticks."""
    rows, ids = "[256, 64] x SEN169_FP16, order [1, 0], stick 1", "[64] x SENUINT32, order [0], stick 0"
    rows, ids = f"!spyre.tensor<{rows}, hbm>", f"!spyre.tensor<{ids}, hbm>"
    table = "!spyre.tensor<[9, 4, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>"
    text = f"""func.func @main(%i: {ids}, %t: {table}) {{
      %r = spyre.kernel.alloc : {rows}
      spyre.kernel.gather axis 0 [p = 64 over 2, m = 4, n = 64] ins(%i[p] : {ids}, %t[0, m, n] : {table})
        outs(%r[p * 4 + m, n] : {rows})
      %e = spyre.kernel.alloc : {rows}
      spyre.kernel.compute "exp" [m = 256, n = 64] ins(%r[m, n] : {rows}) outs(%e[m, n] : {rows})
      %f = spyre.kernel.alloc : {rows}
      spyre.kernel.compute "neg" [m = 256, n = 64] ins(%e[m, n] : {rows}) outs(%f[m, n] : {rows})
      func.return
    }}"""
    gather, first, second = ops(passed(text), KernelOp)
    assert isinstance(gather, GatherOp) and holds_rows(gather)
    assert [cores_of_rows(op) for op in (gather, first, second)] == [None, 2, 2]
    assert joins_rows(gather) and not joins_rows(first)
    assert cores_of_rows(KERNELS[1]) is None, "no gather"


def products_in_loops(model: nn.Module, x: torch.Tensor) -> tuple[CompiledModel, list[KernelOp]]:
    """The compiled model, and the products in loops over its steps."""
    compiled = spyre_mlir.compile(model, (x,), cache=False)
    assert isinstance(compiled, CompiledModel)
    module = compiled._module("spyre.kernel")  # pyright: ignore[reportPrivateUsage]
    loops = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    return compiled, [op for loop in loops for op in loop.walk() if isinstance(op, KernelOp) and op.is_product]


def test_a_weight_that_all_steps_multiply_is_copied_before_their_loop() -> None:
    torch.manual_seed(0)
    model, x = nn.GRU(256, 256, batch_first=True).half().eval(), torch.randn(8, 32, 256).half()
    compiled, found = products_in_loops(model, x)
    assert len(found) > 1
    assert {device_tensor(op.inputs[1]).space for op in found} == {"lx"}
    # A read of the weight in each of 32 steps would take 84 us at 150 GB/s.
    assert compiled.timeline().total_us < 768 * 256 * 2 * 32 / 150e3
    assert compiled.verify(x)
