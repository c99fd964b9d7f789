"""Access tiles and transfers through them: text, constructors, and what their verifiers refuse."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType, MemRefType, TensorType, f16, f32
from xdsl.dialects.test import TestOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap, AffineSet
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.affine import box_set, order_map
from spyre_mlir.dialects.ktdp.attributes import AccessTileType
from spyre_mlir.dialects.ktdp.tiles import (
    ConstructAccessTileOp,
    LoadOp,
    StoreOp,
    _verify_transfer,
    tile_type,
    verify_points,
    viewed_element,
)
from tests.unit.dialects.texts import function, lines_of, only, read

D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
BOX = "affine_set<(d0, d1) : (d0 >= 0, -d0 + 7 >= 0, d1 >= 0, -d1 + 3 >= 0)>"
TURNED = "affine_map<(d0, d1) -> (d1, d0)>"
ARGUMENTS = "%a: memref<64x64xf16>, %i: index, %j: index"


def made_tile(
    indices: str = "%i, %j", more: str = "", shape: str = "4x8", points: str = BOX, order: str = TURNED
) -> str:
    dictionary = f"access_tile_set = {points}, access_tile_order = {order}{more}"
    types = f"memref<64x64xf16> -> !ktdp.access_tile<{shape}xindex>"
    return f"%t = ktdp.construct_access_tile %a[{indices}] {{{dictionary}}} : {types}"


def of_type(*types: object) -> list[SSAValue]:
    return list(TestOp(result_types=types).results)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "line",
    [
        made_tile(),
        made_tile(more=", note"),
        made_tile("%i", ", base_map = affine_map<(d0) -> (d0, 2 * d0)>"),
        made_tile("", ", base_map = affine_map<() -> (0, 8)>"),
    ],
)
def test_text_of_tiles(line: str) -> None:
    module = read(function(ARGUMENTS, line))
    assert line in lines_of(module)
    assert ("base_map" in line) is (only(module, ConstructAccessTileOp).base_map is not None)


def test_a_tile_is_made_without_text() -> None:
    view, index = of_type(MemRefType(f16, [64, 64]), IndexType())
    start = order_map([1, 0])
    tile = ConstructAccessTileOp(view, [index, index], box_set([8, 4]), order_map([1, 0]), [4, 8], start)
    tile.verify()
    assert tile_type(tile.result) == AccessTileType([4, 8])
    assert tile.base_map == start
    assert (tile.access_tile_set, tile.access_tile_order) == (box_set([8, 4]), order_map([1, 0]))
    assert ConstructAccessTileOp(view, [index], box_set([8]), order_map([0]), [8]).base_map is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (made_tile("%i"), "the view has rank 2, the start has 1 indices and access_tile_set 2"),
        (
            made_tile("%i, %j", ", base_map = affine_map<(d0, d1) -> (d0)>"),
            "the view has rank 2, the start has 1 indices and access_tile_set 2",
        ),
        (
            made_tile(points="affine_set<(d0) : (d0 >= 0, -d0 + 7 >= 0)>", order="affine_map<(d0) -> (d0)>", shape="8"),
            "the view has rank 2, the start has 2 indices and access_tile_set 1",
        ),
        (made_tile("%i", f", base_map = {TURNED}"), r"base_map takes 1 indices, got \(d0, d1\) -> \(d1, d0\)"),
        (
            made_tile("%i", ", base_map = affine_map<(d0)[s0] -> (d0, s0)>"),
            r"base_map takes 1 indices, got \(d0\)\[s0\]",
        ),
        (made_tile(shape="8x4"), "access_tile_set gives a tile of 4x8, the result is 8x4"),
    ],
)
def test_tiles_that_do_not_fit_their_view(line: str, said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        read(function(ARGUMENTS, line))


EIGHT, BY_FOUR = box_set([8]).data, box_set([8, 4]).data


def test_points_that_fill_a_tile() -> None:
    verify_points(BY_FOUR, AffineMap(2, 0, (D1, D0)), AccessTileType([4, 8]), "it")
    verify_points(BY_FOUR, AffineMap(2, 0, (D0, D1)), AccessTileType([8, 4]), "it")


@pytest.mark.parametrize(
    ("points", "order", "shape", "said"),
    [
        (BY_FOUR, (D0, D0), [8, 8], "the order lists each of the 2 dimensions of it once, got"),
        (EIGHT, (D0, D1), [8], "the order lists each of the 1 dimensions of it once, got"),
        (AffineSet(1, 1, EIGHT.constraints), (D0,), [8], "it has no symbols, got 1; the extents of a tile are known"),
        (AffineSet(1, 0, EIGHT.constraints[:1]), (D0,), [8], "it: d0 has no lower and upper bound of its own"),
        (box_set([8], [3]).data, (D0,), [8], r"it starts at 0, got \[3\]; add the start to the indices"),
        (EIGHT, (D0,), [4], "it gives a tile of 8, the result is 4"),
    ],
)
def test_points_that_do_not(points: AffineSet, order: tuple[AffineExpr, ...], shape: list[int], said: str) -> None:
    with pytest.raises(VerifyException, match=said):
        verify_points(points, AffineMap(len(order), 0, order), AccessTileType(shape), "it")


def test_other_values_are_no_tiles() -> None:
    with pytest.raises(VerifyException, match="expected an access tile, got f32"):
        tile_type(of_type(f32)[0])


def transfers(element: str) -> list[str]:
    return [
        f"%d = ktdp.load %t {{note}} : !ktdp.access_tile<4x8xindex> -> tensor<4x8x{element}>",
        f"ktdp.store %d, %t {{note}} : tensor<4x8x{element}>, !ktdp.access_tile<4x8xindex>",
    ]


def test_text_of_transfers() -> None:
    load, store = transfers("f16")
    lines = lines_of(read(function(ARGUMENTS, made_tile(), load, store)))
    assert load in lines and store in lines


def test_short_types_of_tiles_are_read() -> None:
    short = [line.replace("!ktdp.access_tile<", "<") for line in (made_tile(), *transfers("f16"))]
    assert {made_tile(), *transfers("f16")} <= set(lines_of(read(function(ARGUMENTS, *short))))


def test_transfers_are_made_without_text() -> None:
    (tile,) = of_type(AccessTileType([4, 8]))
    load = LoadOp(tile, f16)
    assert load.result.type == TensorType(f16, [4, 8])
    store = StoreOp(load, tile)
    assert (store.value, store.tile) == (load.result, tile)
    load.verify()
    store.verify()


@pytest.mark.parametrize("at", [0, 1])
def test_a_transfer_has_the_elements_of_the_view(at: int) -> None:
    lines = [made_tile(), transfers("f32")[at]]
    with pytest.raises(VerifyException, match="the tensor has elements of f32, the view of f16"):
        read(function(f"{ARGUMENTS}, {'%d: tensor<4x8xf32>' if at else '%k: index'}", *lines))


@pytest.mark.parametrize("at", [0, 1])
def test_a_transfer_has_the_shape_of_its_tile(at: int) -> None:
    line = transfers("f32")[at].replace("tensor<4x8x", "tensor<8x4x")
    with pytest.raises(VerifyException, match="the tensor is 8x4, the access tile 4x8; they must be equal"):
        read(function(f"%t: !ktdp.access_tile<4x8xindex>{', %d: tensor<8x4xf32>' if at else ''}", line))


def test_a_transfer_moves_a_tensor() -> None:
    number, tile = of_type(f32, AccessTileType([4, 8]))
    with pytest.raises(VerifyException, match="expected a tensor, got f32"):
        _verify_transfer(number, tile)


def test_element_of_the_view_behind_a_tile() -> None:
    module = read(function(f"{ARGUMENTS}, %u: !ktdp.access_tile<4x8xindex>", made_tile()))
    tile = only(module, ConstructAccessTileOp)
    assert viewed_element(tile.result) == f16
    block = tile.parent_block()
    assert block is not None and viewed_element(block.args[3]) is None
    (other,) = TestOp(operands=[tile.view], result_types=[AccessTileType([4])]).results
    assert viewed_element(other) is None
