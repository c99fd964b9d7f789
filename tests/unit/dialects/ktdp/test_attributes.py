"""Types and memory spaces of KTIR: their text, and what they refuse."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineSetAttr, IndexType, TensorType, f16
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineSet
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.ktdp.affine import box_set, set_text
from spyre_mlir.dialects.ktdp.attributes import (
    GLOBAL,
    LOCAL,
    AccessTileType,
    Df16Type,
    TileFutureType,
    memory_space,
)
from tests.unit.dialects.texts import parser_of

ONE_GROUP = AffineSetAttr(
    AffineSet(1, 0, (AffineConstraintExpr(AffineConstraintKind.eq, AffineExpr.dimension(0), AffineExpr.constant(0)),))
)
FUTURE = TileFutureType(TensorType(f16, [4]), ONE_GROUP)


def test_the_two_spaces_are_called_as_in_the_rfc() -> None:
    assert (GLOBAL, LOCAL) == ("global", "ct_local")


@pytest.mark.parametrize(
    ("attribute", "text"),
    [
        (AccessTileType([1, 64]), "!ktdp.access_tile<1x64xindex>"),
        (AccessTileType([]), "!ktdp.access_tile<index>"),
        (FUTURE, "!ktdp.tile_future<tensor<4xf16>, groups = affine_set<(d0) : (d0 == 0)>>"),
        (Df16Type(), "!spyreop.df16"),
        (memory_space(GLOBAL), "#ktdp.memory_space<global>"),
        (memory_space(LOCAL), "#ktdp.memory_space<ct_local>"),
        (memory_space(LOCAL, 0), "#ktdp.memory_space<ct_local, ct_id = 0>"),
        (memory_space(GLOBAL, older=True), "#ktdp.spyre_memory_space<HBM>"),
        (memory_space(LOCAL, 31, older=True), "#ktdp.spyre_memory_space<LX, core = 31>"),
    ],
)
def test_text(attribute: Attribute, text: str) -> None:
    assert str(attribute) == text
    parser = parser_of(text)
    assert (parser.parse_type() if text.startswith("!") else parser.parse_attribute()) == attribute


def test_an_access_tile_has_a_shape_of_indices() -> None:
    tile = AccessTileType([4, 64])
    assert (tile.shape, tile.element) == ((4, 64), IndexType())
    with pytest.raises(VerifyException, match="tile element type must be index, got f16"):
        AccessTileType([4], f16)


@pytest.mark.parametrize(("extent", "said"), [(0, "0"), (-3, "-3"), (DYNAMIC_INDEX, r"\?")])
def test_an_access_tile_has_known_extents(extent: int, said: str) -> None:
    with pytest.raises(VerifyException, match=f"an access tile has known extents of at least 1, got {said}$"):
        AccessTileType([4, extent])


def test_a_future_as_the_newest_front_end_writes_it() -> None:
    text = "!ktdp.tile_future<(tensor<4xf16>), groups = affine_set<(g) : (0 == g)>>"
    again = parser_of(text).parse_type()
    assert isinstance(again, TileFutureType) and again.partial == FUTURE.partial
    assert set_text(again.groups.data) == "affine_set<(d0) : (-d0 == 0)>"


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("tensor<4xf16>, groups = 3 : i64", "expected an affine_set for groups"),
        ("(tensor<4xf16>, groups = affine_set<(g) : (g == 0)>", r"Expected '\)'"),
        ("tensor<4xf16>, group = affine_set<(g) : (g == 0)>", "groups"),
    ],
)
def test_text_that_is_no_future(inside: str, said: str) -> None:
    with pytest.raises(ParseError, match=said):
        parser_of(f"!ktdp.tile_future<{inside}>").parse_type()


def test_a_future_carries_a_tensor_to_groups() -> None:
    with pytest.raises(VerifyException, match="a future carries a tensor, got f16"):
        TileFutureType(f16, ONE_GROUP)
    symbolic = AffineSetAttr(AffineSet(1, 1, ONE_GROUP.data.constraints))
    for groups, text in ((box_set([2, 2]), r"affine_set<\(d0, d1\)"), (symbolic, r"affine_set<\(d0\)\[s0\]")):
        with pytest.raises(VerifyException, match=rf"groups is a set of one dimension without symbols, got {text}"):
            TileFutureType(FUTURE.partial, groups)


@pytest.mark.parametrize("older", [False, True])
def test_a_scratchpad_may_be_that_of_one_core(older: bool) -> None:
    spaces = [memory_space(GLOBAL, older=older), *(memory_space(LOCAL, core, older=older) for core in (None, 0, 3))]
    assert [(space.is_local, space.core) for space in spaces] == [(False, None), (True, None), (True, 0), (True, 3)]
    assert len({*spaces, memory_space(LOCAL, 3, older=older)}) == 4
    assert memory_space(LOCAL, 3, older=older) != memory_space(LOCAL, 3, older=not older)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#ktdp.memory_space<lx>", "unknown memory space lx; try global or ct_local"),
        ("#ktdp.memory_space<HBM>", "unknown memory space HBM; try global or ct_local"),
        ("#ktdp.spyre_memory_space<global>", "unknown memory space global; try HBM or LX"),
        ("#ktdp.memory_space<global, ct_id = 3>", "ct_id is only valid for ct_local, got global"),
        ("#ktdp.spyre_memory_space<HBM, core = 0>", "core is only valid for LX, got HBM"),
        ("#ktdp.memory_space<ct_local, ct_id = -1>", "ct_id is the number of a core, got -1"),
        ("#ktdp.memory_space<ct_local, core = 1>", "ct_id"),
        ("#ktdp.memory_space<ct_local, ct_id = true>", "Expected integer literal"),
    ],
)
def test_memory_spaces_that_do_not_exist(text: str, said: str) -> None:
    with pytest.raises((VerifyException, ParseError), match=said):
        parser_of(text).parse_attribute()
