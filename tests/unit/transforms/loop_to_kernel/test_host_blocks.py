"""Lowering of blocks: how their tensors lie, and which buffers kernels write."""

from __future__ import annotations

import pytest
from xdsl.dialects import func
from xdsl.ir import BlockArgument

from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, KernelOp, RestickifyOp, ToDeviceOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp, buffer_behind
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
    assert [buffer_behind(v) for v in first.inputs] == [tile.source]
    assert not any(isinstance(op, RestickifyOp) for op in others)


def test_a_block_of_something_else() -> None:
    text = f"""func.func @main(%x: {CACHE}, %at: {AT}, %other: {BLOCK}) -> {CACHE} {{
      {neg("%other", "%n")}
      %y = spyre.loop.put %n into %x dim 0 at %at : {BLOCK}, {CACHE}, {AT} -> {CACHE}
      func.return %y : {CACHE}
    }}"""
    module = passed(text, "convert-spyre-loop-to-spyre-kernel")
    (tile,), (kernel,) = ops(module, TileOp), ops(module, KernelOp)
    assert kernel.output is tile.result, "it is written without a read of what it replaces"


@pytest.mark.parametrize("twice", [False, True], ids=["given", "in two tensors"])
def test_a_block_that_nothing_writes_where_it_is_put(twice: bool) -> None:
    """A kernel writes one block: the other tensor would stay as it is."""
    made = neg("%other", "%n") if twice else ""
    source = "%n" if twice else "%other"
    text = f"""func.func @main(%x: {CACHE}, %z: {CACHE}, %at: {AT}, %other: {BLOCK}) -> ({CACHE}, {CACHE}) {{
      {made}
      %y = spyre.loop.put {source} into %x dim 0 at %at : {BLOCK}, {CACHE}, {AT} -> {CACHE}
      %w = spyre.loop.put {source} into %z dim 0 at %at : {BLOCK}, {CACHE}, {AT} -> {CACHE}
      func.return %y, %w : {CACHE}, {CACHE}
    }}"""
    with pytest.raises(UnsupportedError, match="a block that no kernel writes where it is put"):
        passed(text, "convert-spyre-loop-to-spyre-kernel")


def square(index: str) -> str:
    """A product of %w and the new value of a tensor of 128 by 128, read by `index`."""
    return f"""spyre.loop.nest [m = 8, n = 128, k = 128] ins(%w[m, k] : {LEFT}, %y{index} : {SQUARE})
          -> [m, n] : {LEFT} reduce "arith.addf" {{
      ^bb0(%l : f16, %r : f16):
        %q = arith.mulf %l, %r : f16
        spyre.loop.yield %q : f16
      }}"""


SQUARE, LEFT, ROWS = "tensor<128x128xf16>", "tensor<8x128xf16>", "tensor<64x128xf16>"
UPDATE = f"""
      %b = spyre.loop.block %x dim 0 at %at : {SQUARE}, {AT} -> {ROWS}
      {neg("%b", "%n")}
      %y = spyre.loop.put %n into %x dim 0 at %at : {ROWS}, {SQUARE}, {AT} -> {SQUARE}"""
BUFFER = '{aten.kind = "buffer"}'


def test_readers_get_what_was_written() -> None:
    """The host could send a buffer of the model in a second layout, but that is the old value."""
    text = f"""func.func @main(%x: {SQUARE} {BUFFER}, %at: {AT}, %w: {LEFT}) -> ({LEFT}, {LEFT}, {SQUARE}) {{{UPDATE}
      %p = {square("[n, k]")}
      %o = {square("[k, n]")}
      func.return %p, %o, %y : {LEFT}, {LEFT}, {SQUARE}
    }}"""
    module = passed(text, "convert-spyre-loop-to-spyre-kernel")
    sent = [op for op in ops(module, ToDeviceOp) if device_tensor(op.result).shape == (128, 128)]
    assert len(sent) == 1
    assert not sent[0].zero_padding
    assert len(ops(module, RestickifyOp)) == 1


def test_a_function_of_a_region_takes_the_position_last() -> None:
    text = f"""func.func @main(%x: {SQUARE}, %z: {SQUARE}, %at: {AT}, %w: {LEFT}) -> ({LEFT}, {SQUARE}, {SQUARE}) {{
      %p, %y = func.call @layers(%x, %at, %w) : ({SQUARE}, {AT}, {LEFT}) -> ({LEFT}, {SQUARE})
      %q, %v = func.call @layers(%z, %at, %p) : ({SQUARE}, {AT}, {LEFT}) -> ({LEFT}, {SQUARE})
      func.return %q, %y, %v : {LEFT}, {SQUARE}, {SQUARE}
    }}
    func.func private @layers(%x: {SQUARE} {BUFFER}, %at: {AT} {{aten.kind = "input"}}, %w: {LEFT})
        -> ({LEFT}, {SQUARE}) {{{UPDATE}
      %p = {square("[n, k]")}
      func.return %p, %y : {LEFT}, {SQUARE}
    }}"""
    module = passed(text, "convert-spyre-loop-to-spyre-kernel")
    main, layers = ops(module, func.FuncOp)
    *_, position = layers.body.block.args
    (number,) = ops(module, BlockNumberOp)
    assert number.position is position
    (tile,) = ops(module, TileOp)
    assert isinstance(tile.source, BlockArgument)
    place, given = tile.source.index, main.body.block.args
    calls = ops(module, func.CallOp)
    assert [call.arguments[-1] for call in calls] == [given[2], given[2]]
    # Each hands over its own tensor, which holds the new value behind the call: there is no copy to return.
    caches = [call.arguments[place].owner for call in calls]
    assert [op.source for op in caches if isinstance(op, ToDeviceOp)] == [given[0], given[1]]
    assert [op.source.owner for op in ops(module, FromDeviceOp)[-2:]] == caches
