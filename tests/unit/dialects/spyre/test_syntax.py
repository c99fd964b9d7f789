"""Directives that loop and kernel ops share: spaces, maps, and operands that are read at a map."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.spyre.kernel import ComputeOp
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.unit.dialects.texts import function, lines_of, only, read
from tests.unit.machine.modules import device

BODY = "{ ^bb0(%x: f32): spyre.loop.yield %x : f32 }"
NEST = "%r = spyre.loop.nest [h = 2, d = 64] ins(%a[h * 64 + d + 3] : tensor<131xf32>) -> [h, d] : tensor<2x64xf32> "


def nest(text: str = NEST) -> NestOp:
    return only(read(function("%a: tensor<131xf32>", text + BODY)), NestOp)


def test_a_space_an_operand_at_a_map_and_the_map_of_the_result() -> None:
    op = nest()
    assert op.space.data == (IterDim("h", 2), IterDim("d", 64))
    assert op.input_maps[0].data == (LinearExpr(3, (("h", 64), ("d", 1))),)
    assert op.output_map.data == (LinearExpr.of("h"), LinearExpr.of("d"))


def test_the_text_comes_back() -> None:
    module = read(function("%a: tensor<131xf32>", NEST + BODY))
    (line,) = (line for line in lines_of(module) if "spyre.loop.nest" in line)
    assert "[h = 2, d = 64] ins(%a[h * 64 + d + 3] : tensor<131xf32>) -> [h, d] : tensor<2x64xf32>" in line


def test_several_operands_keep_their_maps_in_order() -> None:
    text = (
        "%r = spyre.loop.nest [m = 4, n = 8] ins(%a[m] : tensor<4xf32>, %b[m, n] : tensor<4x8xf32>) "
        "-> [m, n] : tensor<4x8xf32> { ^bb0(%x: f32, %y: f32): %s = arith.addf %x, %y : f32 spyre.loop.yield %s : f32 }"
    )
    op = only(read(function("%a: tensor<4xf32>, %b: tensor<4x8xf32>", text)), NestOp)
    assert [len(index.data) for index in op.input_maps] == [1, 2]
    assert [str(operand.type) for operand in op.operands] == ["tensor<4xf32>", "tensor<4x8xf32>"]


def test_a_division_is_said_after_its_loop() -> None:
    kind = device((4, 64), 1, (0, 1))
    text = f'spyre.kernel.compute "neg" [m = 4 over 2, n = 64] ins(%a[m, n] : {kind}) outs(%b[m, n] : {kind})'
    allocs = [f"%{name} = spyre.kernel.alloc : {kind}" for name in "ab"]
    op = only(parse_module(function("", *allocs, text), make_context()), ComputeOp)
    assert [dim.split for dim in op.space.data] == [2, 1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[h = 2, d = 64]", "[h = 0, d = 64]"),
        ("ins(%a[h * 64 + d + 3] : ", "ins(%a[h * 64 + d + 3] "),
        ("tensor<131xf32>", "tensor<9xf32>"),
        ("-> [h, d] :", "-> h, d :"),
    ],
)
def test_pieces_that_are_wrong_are_refused(old: str, new: str) -> None:
    text = function("%a: tensor<131xf32>", NEST.replace(old, new) + BODY)
    with pytest.raises(ParseError):
        parse_module(text, make_context())
