"""Tiles whose coordinates come from memory: text, constructor, and what the verifier refuses."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, MemRefType, UnitAttr, f16, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.affine import box_set, map_text, order_map
from spyre_mlir.dialects.ktdp.attributes import AccessTileType
from spyre_mlir.dialects.ktdp.indirect import ConstructIndirectAccessTileOp
from tests.unit.dialects.texts import function, lines_of, only, read

D0, D1, S0, S1 = (
    AffineExpr.dimension(0),
    AffineExpr.dimension(1),
    AffineExpr.symbol(0),
    AffineExpr.symbol(1),
)
BOX = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 7 >= 0, d1 >= 0, -d1 + 3 >= 0)>"
ARGUMENTS = "%a: memref<64x64xf16>, %k: memref<8xi32>, %m: memref<8x4xindex>, %x: index, %y: index"


def gathered(subscripts: str, *memrefs: str, more: str = "", shape: str = "8x4") -> str:
    types = ", ".join(f"memref<{memref}>" for memref in ("64x64xf16", *memrefs))
    return (
        f"%t = ktdp.construct_indirect_access_tile intermediate_variables(%_iv0, %_iv1) %a[{subscripts}] "
        f"{{variables_space_set = {BOX}, variables_space_order = affine_map<(d0, d1) -> (d0, d1)>{more}}} "
        f": {types} -> !ktdp.access_tile<{shape}xindex>"
    )


@pytest.mark.parametrize(
    "line",
    [
        gathered("(%_iv0), (%_iv1)"),
        gathered("ind(%k[%_iv0]), (%_iv1)", "8xi32", more=", note"),
        gathered("(%_iv0 + 8), ind(%m[%_iv0, %_iv1])", "8x4xindex"),
        gathered("ind(%k[2 * %_iv0 + %x]), ind(%m[%y, %_iv1 - %x])", "8xi32", "8x4xindex"),
        gathered("(%_iv0), ((%_iv1 + %x) mod 8)"),
    ],
)
def test_text(line: str) -> None:
    assert line in lines_of(read(function(ARGUMENTS, line)))


def test_subscripts_are_maps_of_variables_and_captured_values() -> None:
    module = read(function(ARGUMENTS, gathered("ind(%k[%y + %_iv0]), (%x + %_iv1 + %y)", "8xi32")))
    tile = only(module, ConstructIndirectAccessTileOp)
    block = tile.parent_block()
    assert block is not None
    assert list(tile.captured_variables) == [block.args[4], block.args[3]]
    assert list(tile.indirect_memrefs) == [block.args[1]]
    assert [(view, map_text(subscript)) for view, subscript in tile.subscripts] == [
        (block.args[1], "affine_map<(d0, d1)[s0, s1] -> (d0 + s0)>"),
        (None, "affine_map<(d0, d1)[s0, s1] -> (d1 + s0 + s1)>"),
    ]


MEMREFS = (MemRefType(f16, [64, 64]), MemRefType(i32, [64]), MemRefType(f16, [64]))
VIEW, ROWS, FLOATS = TestOp(result_types=MEMREFS).results
CAPTURED = TestOp(result_types=[IndexType()]).results[0]


def made(
    *subscripts: AffineMap | tuple[SSAValue, AffineMap], shape: tuple[int, ...] = (8, 4)
) -> ConstructIndirectAccessTileOp:
    return ConstructIndirectAccessTileOp(VIEW, subscripts, [CAPTURED], box_set([8, 4]), order_map([0, 1]), shape)


def of(*results: AffineExpr, dims: int = 2, symbols: int = 1) -> AffineMap:
    return AffineMap(dims, symbols, results)


def test_a_tile_is_made_without_text() -> None:
    op = made((ROWS, of(D0 + S0)), of(D1))
    op.verify()
    assert op.subscripts == [(ROWS, of(D0 + S0)), (None, of(D1))]
    assert (op.variables_space_set, op.variables_space_order) == (box_set([8, 4]), order_map([0, 1]))
    assert list(op.captured_variables) == [CAPTURED]
    assert op.result.type == AccessTileType([8, 4])
    assert [bool(kind.value.data) for kind in op.per_dim_subscript_kinds] == [True, False]


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (made(of(D0)), "the view has rank 2 and 1 subscripts"),
        (made(of(D0), of(D1), of(D1)), "the view has rank 2 and 3 subscripts"),
        (made(of(D0), of(D1, D0)), "subscript 1 has 2 expressions, a direct one has 1"),
        (made((ROWS, of(D0, D1)), of(D1)), "subscript 0 has 2 expressions for a view of rank 1"),
        (made(of(D1), (FLOATS, of(D0))), "index views hold integers, got f16 in subscript 1"),
        (made(of(D0), of(D1, dims=3)), "subscript 1 is no map of the variables and the captured values"),
        (made(of(D0, symbols=2), of(D1)), "subscript 0 is no map of the variables and the captured values"),
        (made(of(D0), of(D1), shape=(4, 8)), "variables_space_set gives a tile of 8x4, the result is 4x8"),
    ],
)
def test_tiles_that_contradict_themselves(op: ConstructIndirectAccessTileOp, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        op.verify()


def test_an_index_view_for_each_indirect_subscript() -> None:
    op = made((ROWS, of(D0)), of(D1))
    op.properties["per_dim_subscript_kinds"] = ArrayAttr([IntegerAttr.from_bool(True)] * 2)
    with pytest.raises(VerifyException, match="2 indirect subscripts and 1 index views"):
        op.verify()
    op.properties["per_dim_subscript_kinds"] = ArrayAttr([IntegerAttr.from_bool(True)])
    with pytest.raises(VerifyException, match="the view has rank 2 and 2 subscripts"):
        op.verify()


def test_attributes_of_others_are_kept() -> None:
    module = read(function(ARGUMENTS, gathered("(%_iv0), (%_iv1)", more=", note")))
    assert only(module, ConstructIndirectAccessTileOp).attributes == {"note": UnitAttr()}
