"""Sticks that later nests move for each stick dimension of a tensor, counted by hand."""

from __future__ import annotations

import re

import pytest

from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopGatherOp, NestOp
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.transforms.loop_to_kernel.later_reads import LaterReads
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.loop_to_kernel.planning import lowered

COPY = "{ ^bb0(%e: f16): spyre.loop.yield %e : f16 }"
MADE = (
    f"%0 = spyre.loop.nest [a = 64, b = 128] ins(%x[a, b] : tensor<64x128xf16>) -> [a, b] : tensor<64x128xf16> {COPY}"
)

PRODUCT = """%r = spyre.loop.nest [m = 64, n = 256, k = 128] ins(%0[m, k] : tensor<64x128xf16>,
  %w[k, n] : tensor<128x256xf16>) -> [m, n] : tensor<64x256xf16> reduce "arith.addf" {
  ^bb0(%e: f16, %f: f16):
    %p = arith.mulf %e, %f : f16
    spyre.loop.yield %p : f16
  }"""


def costs_and_nest(*lines: str) -> tuple[LaterReads, NestOp]:
    """The costs in a function whose first nest makes %0 of %x, and that nest; %r, of the last line, is the result."""
    result = re.findall(r"tensor<[^>]*>", lines[-1])[-1] if lines else "tensor<64x128xf16>"
    body = "\n".join((MADE, *lines, f"func.return {'%r' if lines else '%0'} : {result}"))
    module = passed(f"func.func @main(%x: tensor<64x128xf16>, %w: tensor<128x256xf16>) -> {result} {{ {body} }}")
    first = ops(module, NestOp)[0]
    assert first.parent is not None
    return LaterReads(first.parent), first


def of_each_stick(*lines: str) -> list[float]:
    later, first = costs_and_nest(*lines)
    return [later.cost(first.result, stick) for stick in (0, 1)]


def test_a_result_costs_nothing_more() -> None:
    assert of_each_stick() == [0, 0]


def test_what_is_read_from_the_second_column_on_has_its_rows_in_the_lanes() -> None:
    """64 sticks to read and 64 to write; 128 read and 128 written before to lay out again, each counted 5.5 times."""
    read = "%r = spyre.loop.nest [a = 64, b = 64] ins(%0[a, b + 1] : tensor<64x128xf16>) -> [a, b] : tensor<64x64xf16>"
    assert of_each_stick(f"{read} {COPY}") == [64 + 64, 5.5 * 256 + 64 + 64]


def test_the_cost_goes_through_what_comes_between() -> None:
    """A nest that reads and writes either way, 128 sticks each, before one that cannot."""
    between = "%1 = spyre.loop.nest [a = 64, b = 128] ins(%0[a, b] : tensor<64x128xf16>) -> [a, b] : tensor<64x128xf16>"
    read = "%r = spyre.loop.nest [a = 64, b = 64] ins(%1[a, b + 1] : tensor<64x128xf16>) -> [a, b] : tensor<64x64xf16>"
    assert of_each_stick(f"{between} {COPY}", f"{read} {COPY}") == [256 + 128, 5.5 * 256 + 256 + 128]


def test_laid_out_again_once_for_all_readers() -> None:
    """Two readers of shifted columns: one restickify serves both."""
    lines = [
        f"%{name} = spyre.loop.nest [a = 64, b = 64] ins(%0[a, b + {by}] : tensor<64x128xf16>) -> [a, b] "
        f": tensor<64x64xf16> {COPY}"
        for name, by in (("1", 1), ("r", 2))
    ]
    assert of_each_stick(*lines) == [2 * 128, 2 * 128 + 5.5 * 256]


def test_a_product_wants_its_summed_dimension_in_the_lanes() -> None:
    """Of 64 x 128 by 128 x 256: 128 sticks read, 256 written."""
    assert of_each_stick(PRODUCT) == [5.5 * 256 + 128 + 256, 128 + 256]


def test_a_destination_lies_as_all_that_fill_it_can_write() -> None:
    """Halves along columns: 1 to 64 and 65 to 128 of 129, so only rows can be in the lanes."""
    part = "[a = 64, b = 64] ins(%0[a, b{}] : tensor<64x128xf16>) into %{} -> [a, b + {}] : tensor<64x129xf16>"
    lines = (
        "%d = spyre.loop.empty : tensor<64x129xf16>",
        f"%1 = spyre.loop.nest {part.format('', 'd', 1)} {COPY}",
        f"%r = spyre.loop.nest {part.format(' + 64', '1', 65)} {COPY}",
    )
    later, first = costs_and_nest(*lines)
    parent = first.parent
    assert parent is not None
    empty = next(op for op in parent.ops if isinstance(op, EmptyOp))
    assert later.cost(empty.result, 0) == 0
    assert later.cost(empty.result, 1) == float("inf")
    # Each half is read and written in 64 sticks; %0 laid out again is 256, counted 5.5 times.
    assert [later.cost(first.result, s) for s in (0, 1)] == [256, 5.5 * 256 + 256]


def test_what_is_sparse_costs_an_element_a_stick() -> None:
    """64 x 64 elements, a stick each, read in place and written so."""
    read = "%r = spyre.loop.nest [a = 64, b = 64] ins(%0[a, b + 1] : tensor<64x128xf16>) -> [a, b] : tensor<64x64xf16>"
    later, first = costs_and_nest(f"{read} {COPY}")
    assert later.cost(first.result, UNIT) == 2 * 64 * 64


def test_a_restickify_of_a_sparse_tensor_counts_all_lanes_of_it() -> None:
    """64 x 128 elements for a product, which then reads 128 sticks and writes 256: no scratchpad holds either side."""
    later, first = costs_and_nest(PRODUCT)
    assert later.cost(first.result, UNIT) == (64 + 1) * 64 * 128 + 128 + 256


def test_a_copy_is_read_in_the_lanes_where_reading_in_place_has_to_be_sparse() -> None:
    """Every second row goes to columns 32 to 159: the 32 rows have to be in the lanes, in 128 sticks.

    They are written once, and a copy of them that is laid out again counts as eight times as many sticks. Read in
    place, each of the 32 x 128 elements would have to be in a stick of its own, and written so.
    """
    part = "[a = 32, b = 128] ins(%0[a * 2, b] : tensor<64x128xf16>) into %d -> [a, b + 32] : tensor<32x160xf16>"
    later, first = costs_and_nest("%d = spyre.loop.empty : tensor<32x160xf16>", f"%r = spyre.loop.nest {part} {COPY}")
    assert later.cost(first.result, 1) == 8 * 128 + 128
    assert later.cost(first.result, UNIT) == 2 * 32 * 128


@pytest.mark.parametrize("channels", [144, 200])
def test_a_convolution_by_channel_keeps_the_channels_in_the_lanes(channels: int) -> None:
    """The rows of an image of 28 x 28 are fewer sticks, but no window can slide along lanes."""
    image, weight = f"tensor<1x{channels}x28x28xf16>", f"tensor<{channels}x1x3x3xf16>"
    call = f"conv2d(%x, %w) {{padding = array<i64: 1, 1>, groups = {channels} : i64}} : ({image}, {weight}) -> {image}"
    text = str(lowered(f"%x: {image}, %w: {weight}", [call], image))
    assert "batchmatmul" not in text
    assert "restickify" not in text


@pytest.mark.parametrize("blocks", [False, True])
def test_a_table_costs_as_its_rows_do(blocks: bool) -> None:
    """Rows that a product reads by columns are asked of the table, also if it is a cache with entries put in."""
    put = """%b = spyre.loop.block %0 dim 0 at %at : tensor<64x128xf16>, tensor<1xi64> -> tensor<1x128xf16>
      %c = spyre.loop.put %b into %0 dim 0 at %at : tensor<1x128xf16>, tensor<64x128xf16>, tensor<1xi64>
        -> tensor<64x128xf16>
    """
    read = "%c" if blocks else "%0"
    body = f"""{MADE} {put if blocks else ""}
      %t = spyre.loop.gather [i = 64, a = 2, b = 64] rows(%i[i] : tensor<64xi64>) of axis 0
        in {read}[0, a * 64 + b] : tensor<64x128xf16> -> [i, a * 64 + b] : tensor<64x128xf16>
      %r = spyre.loop.nest [m = 64, n = 256, k = 128] ins(%t[m, k] : tensor<64x128xf16>,
        %w[k, n] : tensor<128x256xf16>) -> [m, n] : tensor<64x256xf16> reduce "arith.addf" {{
        ^bb0(%e: f16, %f: f16):
          %p = arith.mulf %e, %f : f16
          spyre.loop.yield %p : f16
        }}
      func.return %r : tensor<64x256xf16>"""
    arguments = "%x: tensor<64x128xf16>, %w: tensor<128x256xf16>, %i: tensor<64xi64>, %at: tensor<1xi64>"
    module = passed(f"func.func @main({arguments}) -> tensor<64x256xf16> {{ {body} }}")
    first, (gather,) = ops(module, NestOp)[0], ops(module, LoopGatherOp)
    assert first.parent is not None
    later = LaterReads(first.parent)
    assert later.cost(first.result, 1) == later.cost(gather.result, 1)
    assert later.cost(first.result, 0) > later.cost(first.result, 1), "a gather has columns in the lanes"
