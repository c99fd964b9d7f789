"""Attributes of the spyre dialect: text to data and back, for anything the data can say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.spyre.attributes import (
    ARRANGEMENTS,
    SPACES,
    DeviceTensor,
    DeviceTensorType,
    IndexMapAttr,
    IterDim,
    SpaceAttr,
)
from spyre_mlir.hw.arrangement import block
from spyre_mlir.hw.formats import FORMATS
from spyre_mlir.hw.sticks import UNIT, LinearExpr, StickLayout
from spyre_mlir.universe import make_context

NAMES = ("m", "n", "k", "d0", "head_dim")


def reread(attribute: Attribute) -> Attribute:
    return Parser(make_context(), str(attribute)).parse_attribute()


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.integers(1, 9999), st.integers(1, 32)), unique_by=lambda d: d[0]))
def test_space_round_trip(dims: list[tuple[str, int, int]]) -> None:
    attribute = SpaceAttr(tuple(IterDim(*d) for d in dims))
    assert reread(attribute) == attribute
    assert attribute.extents == {name: extent for name, extent, _ in dims}


coefficients = st.integers(-999, 999).filter(lambda c: c != 0)
expressions = st.builds(
    LinearExpr,
    st.integers(-999, 999),
    st.dictionaries(st.sampled_from(NAMES), coefficients, max_size=3).map(lambda d: tuple(d.items())),
)


@given(st.lists(expressions, max_size=4))
def test_index_map_round_trip(exprs: list[LinearExpr]) -> None:
    attribute = IndexMapAttr(tuple(exprs))
    assert reread(attribute) == attribute
    assert attribute.names == {name for e in exprs for name, _ in e.terms}


@given(expressions, st.data())
def test_range_of_an_expression(expr: LinearExpr, data: st.DataObject) -> None:
    extents = {name: data.draw(st.integers(1, 3)) for name, _ in expr.terms}
    values = [expr.const]
    for name, coefficient in expr.terms:
        values = [v + coefficient * i for v in values for i in range(extents[name])]
    assert (expr.first(extents), expr.last(extents)) == (min(values), max(values))


@st.composite
def device_tensors(draw: st.DrawFn) -> DeviceTensor:
    form = draw(st.sampled_from(sorted(FORMATS)))
    arrangement = draw(st.sampled_from(ARRANGEMENTS))
    lanes = FORMATS[form].elements_per_stick()
    whole = block(lanes, arrangement)
    shape = tuple(draw(st.lists(st.integers(1, 300), max_size=4)))
    stick = draw(st.integers(-1, len(shape) - 1))
    extra = draw(st.integers(0, 2))
    extents = tuple(-(-e // whole) * whole + extra * whole if d == stick else e + extra for d, e in enumerate(shape))
    unit = 1 if stick == UNIT else draw(st.sampled_from([1, 1, lanes]))
    dims = [*range(len(shape)), *([UNIT] if stick == UNIT or unit > 1 else [])]
    layout = StickLayout(tuple(draw(st.permutations(dims))), stick, extents, unit)
    return DeviceTensor(shape, form, layout, draw(st.sampled_from(SPACES)), arrangement)


@given(device_tensors())
def test_device_tensor_round_trip(tensor: DeviceTensor) -> None:
    attribute = DeviceTensorType(tensor)
    assert reread(attribute) == attribute


@pytest.mark.parametrize(
    ("arrangement", "dim", "extent", "extents"),
    [
        ("standard", 0, 3, (3, 128)),
        ("standard", 1, 70, (8, 96)),
        ("dl16_to_fp32", 1, 32, (8, 64)),
    ],
)
def test_a_shorter_tensor_has_room_for_whole_blocks(
    arrangement: str, dim: int, extent: int, extents: tuple[int, ...]
) -> None:
    """A stick has 32 floats; those in the order of a widening stay together in two."""
    layout = StickLayout.published((8, 128), 1, 64)
    small = DeviceTensor((8, 128), "IEEE_FP32", layout, "lx", arrangement).shorter(dim, extent)
    assert (small.shape[dim], small.shape[1 - dim], small.layout.extents) == (extent, (8, 128)[1 - dim], extents)
    assert (small.space, small.arrangement, small.layout.order) == ("lx", arrangement, layout.order)


TENSOR = "!spyre.tensor<[2, 100] x SEN169_FP16, order [1, 0], stick 1, hbm>"
SPARSE = "!spyre.tensor<[7] x IEEE_FP32, order [0, unit], stick unit, lx>"


def parsed(text: str) -> Attribute:
    return Parser(make_context(), text).parse_attribute()


@pytest.mark.parametrize(
    "text",
    [
        "#spyre.space<m = 128 over 32, n = 1>",
        "#spyre.space<>",
        "#spyre.map<b, h * 64 + d + 3, 0, m * 2 + n * -1 - 5>",
        TENSOR,
        SPARSE,
        "!spyre.tensor<[2, 100] x SEN169_FP16, order [1, 0], stick 1, extents [2, 192], hbm>",
        "!spyre.tensor<[2, 64] x SEN169_FP16, order [unit, 1, 0], stick 1, unit 64, hbm>",
        "!spyre.tensor<[64] x IEEE_FP32, order [0], stick 0, hbm, dl16_to_fp32>",
    ],
)
def test_the_shortest_text_of_an_attribute(text: str) -> None:
    assert str(parsed(text)) == text


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("#spyre.space<m = 4 over 1>", "#spyre.space<m = 4>"),
        ("#spyre.map<-m + 2 * 1 >", None),
        ("#spyre.map<3 + m + m * 2 - 1>", "#spyre.map<m * 3 + 2>"),
        ("#spyre.map<-4 - m>", "#spyre.map<m * -1 - 4>"),
        (TENSOR.replace("hbm", "extents [2, 128], unit 1, hbm, standard"), TENSOR),
    ],
)
def test_what_need_not_be_said_is_left_out(long: str, short: str | None) -> None:
    if short is None:
        with pytest.raises(ParseError):
            parsed(long)
    else:
        assert str(parsed(long)) == short


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("#spyre.space<m = 0>", "extent of m is 0, expected at least 1"),
        ("#spyre.space<m = 4 over 0>", "m is divided over 0 cores, expected at least 1"),
        (TENSOR.replace("SEN169_FP16", "FP17"), "unknown format 'FP17', expected one of "),
        (TENSOR.replace("hbm", "ddr"), "unknown memory space 'ddr', expected one of hbm, lx"),
        (TENSOR.replace("hbm", "hbm, odd"), "unknown element arrangement 'odd', expected one of standard, "),
        (TENSOR.replace("hbm", "extents [1, 128], hbm"), "dimension 0 reserves 1 elements, needs 2"),
        (TENSOR.replace("hbm", "extents [2, 160], hbm"), "reserves 160 elements, no whole sticks of 64"),
        (TENSOR.replace("hbm", "extents [2], hbm"), "order .1, 0. does not list each dimension of a tensor of rank 1"),
        (TENSOR.replace("[2, 100]", "[2]").replace("hbm", "extents [2, 64], hbm"), "2 extents for a tensor of rank 1"),
        (TENSOR.replace("stick 1", "stick 2"), "the stick dimension is 2, the tensor has rank 2"),
    ],
)
def test_a_wrong_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parsed(text)


def test_loops_have_names_of_their_own() -> None:
    with pytest.raises(VerifyException, match="an iteration dimension is named twice in m, n, m"):
        SpaceAttr((IterDim("m", 1), IterDim("n", 2), IterDim("m", 3)))


def test_a_type_that_is_built_is_checked() -> None:
    with pytest.raises(VerifyException, match="unknown memory space 'ddr'"):
        DeviceTensorType(DeviceTensor((64,), "SEN169_FP16", StickLayout((0,), 0, (64,)), "ddr"))


def test_sticks_of_a_tensor() -> None:
    """A stick has 128 bytes: 64 halves; two rows of 100 take two sticks each, and seven lone numbers one each."""
    dense, sparse = parsed(TENSOR), parsed(SPARSE)
    assert isinstance(dense, DeviceTensorType) and isinstance(sparse, DeviceTensorType)
    assert (dense.data.lanes, dense.data.block, dense.data.sticks) == (64, 64, 4)
    assert (sparse.data.lanes, sparse.data.sticks) == (32, 7)
