"""Attributes of the spyre dialect: text to data and back, for anything the data can say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Attribute
from xdsl.parser import Parser

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
