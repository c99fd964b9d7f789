"""The plan of a function as ops."""

from xdsl.dialects.func import ReturnOp

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.regions.programs import functions, parsed

T = "tensor<2x64xf32>"
PROGRAM = f"""
func.func @main(%x: {T} {{aten.kind = "input"}}, %w: {T} {{aten.kind = "parameter"}}) -> ({T}, {T}) {{
  %0 = spyre.loop.nest [m = 2, n = 64] ins(%x[m, n] : {T}, %w[m, n] : {T}) -> [m, n] : {T} {{
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    spyre.loop.yield %c : f32
  }}
  func.return %0, %x : {T}, {T}
}}"""


def test_transfers_kernels_and_results_in_order() -> None:
    module = parsed(PROGRAM)
    ConvertSpyreLoopToSpyreKernelPass().apply(make_context(), module)
    main = functions(module)["main"]
    ops = list(main.body.block.ops)
    kinds = [type(op) for op in ops]
    assert kinds.index(kernel.ComputeOp) > kinds.index(kernel.AllocOp)
    assert kinds[-2:] == [kernel.FromDeviceOp, ReturnOp]
    sent = [op for op in ops if isinstance(op, kernel.ToDeviceOp)]
    # Weights are laid out ahead of time, with zeros behind them; inputs are not.
    assert [op.zero_padding is not None for op in sent] == [op.source is main.body.block.args[1] for op in sent]
    # A host tensor that is returned as it is never goes to the device and back.
    assert ops[-1].operands[1] is main.body.block.args[0]
