"""Lowering of blocks: how their tensors lie, and which buffers kernels write."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp, RestickifyOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, origin_of
from spyre_mlir.errors import UnsupportedError
from tests.unit.transforms.levels import ops, passed

CACHE, BLOCK, AT = "tensor<256x128xf16>", "tensor<64x128xf16>", "tensor<1xi64>"


def neg(source: str, made: str) -> str:
    return f"""
      {made} = spyre.loop.nest [m = 64, n = 128] ins({source}[m, n] : {BLOCK}) -> [m, n] : {BLOCK} {{
      ^bb0(%e : f16):
        %r = arith.negf %e : f16
        spyre.loop.yield %r : f16
      }}"""


def product(index: str, columns: int, depth: int) -> str:
    """[8, columns] of %w [8, depth] and the tensor."""
    left, made = f"tensor<8x{depth}xf16>", f"tensor<8x{columns}xf16>"
    return f"""func.func @main(%x: {CACHE}, %at: {AT}, %w: {left}) -> ({made}, {CACHE}) {{
      %b = spyre.loop.block %x dim 0 at %at : {CACHE}, {AT} -> {BLOCK}
      {neg("%b", "%n")}
      %y = spyre.loop.put %n into %x dim 0 at %at : {BLOCK}, {CACHE}, {AT} -> {CACHE}
      %p = spyre.loop.nest [m = 8, n = {columns}, k = {depth}] ins(%w[m, k] : {left}, %y{index} : {CACHE})
          -> [m, n] : {made} reduce "arith.addf" {{
      ^bb0(%l : f16, %r : f16):
        %q = arith.mulf %l, %r : f16
        spyre.loop.yield %q : f16
      }}
      func.return %p, %y : {made}, {CACHE}
    }}"""


@pytest.mark.parametrize(("index", "columns", "depth", "stick"), [("[n, k]", 256, 128, 0), ("[k, n]", 128, 256, 1)])
def test_a_tensor_lies_as_its_readers_want(index: str, columns: int, depth: int, stick: int) -> None:
    module = passed(product(index, columns, depth), "convert-spyre-loop-to-spyre-kernel")
    (tile,) = ops(module, TileOp)
    assert device_tensor(tile.source).layout.stick == stick
    first, *others = ops(module, KernelOp)
    assert first.output is tile.result
    assert [origin_of(v).buffer for v in first.inputs] == [tile.source]
    assert not any(isinstance(op, RestickifyOp) for op in others)


def test_a_block_of_something_else() -> None:
    text = f"""func.func @main(%x: {CACHE}, %at: {AT}, %other: {BLOCK}) -> {CACHE} {{
      {neg("%other", "%n")}
      %y = spyre.loop.put %n into %x dim 0 at %at : {BLOCK}, {CACHE}, {AT} -> {CACHE}
      func.return %y : {CACHE}
    }}"""
    with pytest.raises(UnsupportedError, match="made of something else than the one it replaces"):
        passed(text, "convert-spyre-loop-to-spyre-kernel")
