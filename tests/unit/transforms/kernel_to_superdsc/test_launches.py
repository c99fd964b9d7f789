"""What a launch is handed: whole tensors, and tiles where the host says that they start."""

from __future__ import annotations

from xdsl.dialects import func

from spyre_mlir.dialects.spyre.kernel import KernelOp, LaunchOp, ToDeviceOp
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.transforms.kernel_to_superdsc.launches import launches_of
from tests.unit.transforms.levels import ops, passed

WHOLE = "!spyre.tensor<[4, 192] x SEN169_FP16, order [1, 0], stick 1, hbm>"
PART = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, extents [4, 192], hbm>"
TEXT = f"""func.func @main(%x: tensor<4x192xf32>, %at: tensor<1xi64>) -> tensor<4x192xf32> {{
  %d = spyre.kernel.to_device %x : tensor<4x192xf32> to {WHOLE}
  spyre.kernel.compute "abs" [m = 4, n = 192] ins(%d[m, n] : {WHOLE}) outs(%d[m, n] : {WHOLE})
  %b = spyre.kernel.block_number of %at, blocks of 64 in 192 : tensor<1xi64>
  %p = spyre.kernel.tile %d dim 1 at %b * 64 : {WHOLE} to {PART}
  spyre.kernel.compute "neg" [m = 4, n = 64] ins(%p[m, n] : {PART}) outs(%p[m, n] : {PART})
  %z = spyre.kernel.from_device %d : {WHOLE} to tensor<4x192xf32>
  func.return %z : tensor<4x192xf32>
}}"""


def test_a_block_is_an_argument_beside_its_tensor() -> None:
    module = passed(TEXT)
    (function,) = ops(module, func.FuncOp)
    (launch,) = launches_of(function.body.block, {})
    (tile,) = ops(module, TileOp)
    assert launch.arguments == [tile.source, tile.result]
    assert launch.body == ops(module, KernelOp)


def test_the_host_places_blocks_in_front_of_the_launch() -> None:
    module = passed(TEXT, "convert-spyre-kernel-to-superdsc")
    main = next(f for f in ops(module, func.FuncOp) if f.sym_name.data == "main")
    kinds = [type(op) for op in main.body.block.ops]
    assert kinds.index(BlockNumberOp) < kinds.index(TileOp) < kinds.index(LaunchOp)
    (launch,) = (op for op in main.body.block.ops if isinstance(op, LaunchOp))
    assert [type(v.owner).__name__ for v in launch.buffers] == ["ToDeviceOp", "TileOp"]


CALLS = f"""func.func @main(%x: tensor<4x192xf32>, %y: tensor<4x192xf32>, %at: tensor<1xi64>)
    -> (tensor<4x192xf32>, tensor<4x192xf32>) {{
  %d = spyre.kernel.to_device %x : tensor<4x192xf32> to {WHOLE}
  %e = spyre.kernel.to_device %y : tensor<4x192xf32> to {WHOLE}
  func.call @layers(%d, %at) : ({WHOLE}, tensor<1xi64>) -> ()
  func.call @layers(%e, %at) : ({WHOLE}, tensor<1xi64>) -> ()
  %z = spyre.kernel.from_device %d : {WHOLE} to tensor<4x192xf32>
  %v = spyre.kernel.from_device %e : {WHOLE} to tensor<4x192xf32>
  func.return %z, %v : tensor<4x192xf32>, tensor<4x192xf32>
}}
func.func private @layers(%d: {WHOLE}, %at: tensor<1xi64>) {{
  %b = spyre.kernel.block_number of %at, blocks of 64 in 192 : tensor<1xi64>
  %p = spyre.kernel.tile %d dim 1 at %b * 64 : {WHOLE} to {PART}
  spyre.kernel.compute "neg" [m = 4, n = 64] ins(%p[m, n] : {PART}) outs(%p[m, n] : {PART})
  func.return
}}"""


def test_each_call_of_a_region_is_handed_its_own_block() -> None:
    module = passed(CALLS, "convert-spyre-kernel-to-superdsc")
    (main,) = (f for f in ops(module, func.FuncOp) if f.sym_name.data == "main")
    launches = [op for op in main.body.block.ops if isinstance(op, LaunchOp)]
    assert len({op.bundle.root_reference.data for op in launches}) == 1
    # The kernels touch the block alone, so the tensor is no argument beside it.
    assert [len(op.buffers) for op in launches] == [1, 1]
    tiles = [v.owner for op in launches for v in op.buffers]
    wholes = [op.source.owner for op in tiles if isinstance(op, TileOp)]
    numbers = [op.index.owner for op in tiles if isinstance(op, TileOp)]
    assert [op.source for op in wholes if isinstance(op, ToDeviceOp)] == list(main.body.block.args[:2])
    assert [op.position for op in numbers if isinstance(op, BlockNumberOp)] == [main.body.block.args[2]] * 2
