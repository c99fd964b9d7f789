"""Ops that follow the layout of another."""

from __future__ import annotations

from spyre_mlir.dialects.spyre.layout_choices import LayoutChoice
from spyre_mlir.dialects.spyre.loop import EmptyOp, NestOp
from spyre_mlir.transforms.buffer_layouts.repair.followers import Followers, tensor_of
from tests.unit.transforms.buffer_layouts.repair.programs import columns_less_their_greatest, planned
from tests.unit.transforms.levels import ops, passed

HALF = """%{} = spyre.loop.nest [m = 64, n = 128] ins(%x[m, n] : tensor<64x128xf16>) into %{} -> [m + {}, n]
  : tensor<128x128xf16> {{
  ^bb0(%e: f16):
    spyre.loop.yield %e : f16
  }}"""
HALVES = f"""func.func @main(%x: tensor<64x128xf16>) -> tensor<128x128xf16> {{
  %d = spyre.loop.empty : tensor<128x128xf16>
  {HALF.format("0", "d", "0")}
  {HALF.format("1", "0", "64")}
  func.return %1 : tensor<128x128xf16>
}}"""


def test_makers_and_readers_of_a_tensor_have_its_rows_in_the_lanes_too() -> None:
    module, (layouts,) = planned(columns_less_their_greatest())
    nests = ops(module, NestOp)
    followers = Followers(nests, {n: layouts.open[op] for n, op in enumerate(nests)})
    found = followers.of(0, LayoutChoice("m", 0))
    assert {n: (choice.lanes, choice.stick) for n, choice in found.items()} == {0: ("m", 0), 1: ("r", -1), 2: ("m", 0)}


def test_what_cannot_follow_stays() -> None:
    module, (layouts,) = planned(columns_less_their_greatest())
    nests = ops(module, NestOp)
    open_ = {0: layouts.open[nests[0]], 2: [LayoutChoice("n", 1)]}
    assert Followers(nests, open_).of(0, LayoutChoice("m", 0)).keys() == {0}


def test_nests_that_fill_a_tensor_belong_to_it() -> None:
    module = passed(HALVES)
    (empty,) = ops(module, EmptyOp)
    assert {tensor_of(nest) for nest in ops(module, NestOp)} == {empty}
