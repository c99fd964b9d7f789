"""Ops of the loop level as planned kernels; `test_convert_spyre_loop_to_spyre_kernel.py` has what they compute."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.pipeline import lower
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.operators.nests import cleared_rows, lower_nest
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.unit.transforms.levels import ops
from tests.unit.transforms.loop_to_kernel.planning import names, nest, steps

T = "tensor<4x128xf32>"
A, B = LinearExpr.of("a"), LinearExpr.of("b")


def test_a_nest_is_a_kernel_with_a_loop_in_the_lanes_of_its_result() -> None:
    op = nest(f"""func.func @main(%x: {T}) -> {T} {{
      %0 = spyre.loop.nest [m = 4, n = 128] ins(%x[m, n] : {T}) -> [m, n] : {T} {{
      ^bb0(%e: f32):
        %r = spyre.loop.apply "relu"(%e) : (f32) -> f32
        spyre.loop.yield %r : f32
      }}
      func.return %0 : {T}
    }}""")
    p = LayoutPlanner()
    p.hosts[op.inputs[0]] = False
    lower_nest(p, op)
    assert names(p) == ["relufwd"]
    assert p.chosen.lanes == {op: "n"} and p.chosen.made[op] is steps(p)[0].output[0]
    assert p.chosen.made[op].layout.stick == 1


CLEARED: dict[str, tuple[Callable[[Tensor, Tensor], object], int]] = {
    "read by the product alone": (lambda s, x: s @ (x * 2)[:67], 0),
    "read by others, no further": (lambda s, x: (s @ (y := x * 2)[:67], y[:5].exp()), 0),
    "read twice": (lambda s, x: (s @ (y := x * 2)[:67], s[:5] @ y[:67]), 0),
    "read behind": (lambda s, x: (s @ (y := x * 2)[:67], y[66:].exp()), 1),
    "read up to other rows, of both": (lambda s, x: (s @ (y := x * 2)[:67], s[:, :66] @ y[:66]), 2),
    "a result, too": (lambda s, x: (s @ (y := x * 2)[:67], y), 1),
    "the numbers of a result": (lambda s, x: (s @ (y := (x * 2).float()).half()[:67], y), 1),
    "an input": (lambda s, x: s @ x[:67], 1),
    "filled in parts": (lambda s, x: s @ torch.cat((x[:40] * 2, x[40:].exp()))[:67], 1),
}


@pytest.mark.parametrize("name", CLEARED)
def test_rows_that_nothing_reads_become_0_in_place(name: str) -> None:
    """A product of 67 rows reads two sticks: zeros stand behind the rows, in a copy if others need what is there."""
    function, copies = CLEARED[name]
    torch.manual_seed(3)  # pyright: ignore[reportUnknownMemberType]
    inputs = torch.randn(67, 67).half(), torch.randn(72, 64).half()
    assert (outcome := spyre_mlir.compile(FunctionModel(function), inputs).verify(*inputs)), str(outcome)
    kernels = lower(import_program(FunctionModel(function), inputs).module, make_context()).modules["spyre.kernel"]
    moved = [op for op in ops(kernels, kernel.ComputeOp) if op.function_name == COPY and op.maps.data[0].names]
    assert len(moved) == copies


def test_rows_of_zeros_behind_the_elements() -> None:
    p = LayoutPlanner()
    buffer = p.fresh((70, 64), DL16.name, 1)
    use = cleared_rows(p, (buffer, (A, B)), 0, 70)
    assert use == (buffer, (A, B)) and buffer.layout.extents == (128, 64) and buffer.filled == {0: 0.0}
    (step,) = steps(p)
    assert step.function == "identity" and step.inputs[0][0] is p.number(0.0)
    assert step.output == (buffer, (LinearExpr(70, (("d0", 1),)), LinearExpr.of("d1")))
    assert [(d.name, d.extent) for d in step.space] == [("d0", 58), ("d1", 64)]
    assert cleared_rows(p, (buffer, (A, B)), 0, 70) == use
    whole = p.fresh((128, 64), DL16.name, 1), (A, B)
    assert cleared_rows(p, whole, 0, 128) == whole
    assert len(steps(p)) == 1


def test_rows_of_zeros_in_and_behind_a_tensor_are_written_apart() -> None:
    p = LayoutPlanner()
    buffer = p.fresh((72, 64), DL16.name, 1)
    cleared_rows(p, (buffer, (A, B)), 0, 67)
    assert [(s.space[0].extent, s.output[1][0]) for s in steps(p)] == [
        (5, LinearExpr(67, (("d0", 1),))),
        (56, LinearExpr(72, (("d0", 1),))),
    ]
