"""A function that is called once stands where it is called; those that are called more often stay."""

from __future__ import annotations

from spyre_mlir.dialects.places import numbered, source_of
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.transforms.host_program.inline_loops import InlineLoopsPass
from spyre_mlir.universe import make_context

TYPE = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"


def text(calls: int) -> str:
    return f"""
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {{
  %0 = spyre.kernel.to_device %x : tensor<4x64xf32> to {TYPE}
  {f"func.call @steps(%0) : ({TYPE}) -> ()" * calls}
  %1 = spyre.kernel.from_device %0 : {TYPE} to tensor<4x64xf32>
  func.return %1 : tensor<4x64xf32>
}}
func.func private @steps(%t: {TYPE}) {{
  spyre.kernel.compute "exp" [m = 4, n = 64] ins(%t[m, n] : {TYPE}) outs(%t[m, n] : {TYPE})
  func.return
}}
"""


def names(calls: int) -> list[str]:
    module = parse_module(text(calls), make_context())
    InlineLoopsPass().apply(make_context(), module)
    verify_module(module)
    return [op.name for op in module.walk() if op.name.startswith(("func.func", "func.call", "spyre.kernel.compute"))]


def test_one_call_is_replaced() -> None:
    assert names(1) == ["func.func", "spyre.kernel.compute"]


def test_two_calls_stay() -> None:
    assert names(2) == ["func.func", "func.call", "func.call", "func.func", "spyre.kernel.compute"]


def test_kernels_keep_the_operation_that_they_are_for() -> None:
    module = parse_module(text(1), make_context())
    numbered(op for op in module.walk() if isinstance(op, ComputeOp))
    InlineLoopsPass().apply(make_context(), module)
    assert [source_of(op.location).number for op in module.walk() if isinstance(op, ComputeOp)] == [1]
