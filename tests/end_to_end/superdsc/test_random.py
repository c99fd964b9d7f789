"""Random JSON survives the text of an attribute; random descriptors survive the file."""

from __future__ import annotations

from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.printer import Printer

from spyre_mlir.dialects.superdsc import JsonAttr, Superdsc
from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand, Version, start_offsets
from tests.unit.dialects.superdsc.cases import DL16
from tests.unit.dialects.superdsc.codec.test_mirror import assert_lossless, parse, text_of

TEXT = st.text(st.characters(), max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))


@settings(max_examples=200)
@given(JSON)
def test_json_survives_the_text_of_an_attribute(value: object) -> None:
    attribute = JsonAttr.of(value)  # type: ignore[arg-type]
    stream = StringIO()
    Printer(stream).print_attribute(attribute)
    assert stream.getvalue().isascii()
    context = Context()
    context.load_dialect(Superdsc)
    assert Parser(context, stream.getvalue()).parse_attribute() == attribute


@st.composite
def descriptors(draw: st.DrawFn) -> Descriptor:
    """Pointwise ops over up to three dims: any order, gaps, dense, broadcast and sparse operands, HBM and LX."""
    labels = ["mb", "x", "out"][: draw(st.integers(1, 3))]
    stick = draw(st.sampled_from(labels))
    splits = {label: draw(st.sampled_from([1, 2])) for label in labels}
    dims = tuple(
        Dim(label, splits[label] * draw(st.integers(1, 3)) * (64 if label == stick else 1), splits[label])
        for label in labels
    )
    output = draw(operands(dims, tuple(draw(st.permutations(labels))), stick))
    inputs = [draw(operands(dims, draw(orders(labels)), stick)) for _ in range(draw(st.integers(1, 2)))]
    return Descriptor(0, "add", "sfp", OpClass.POINTWISE, dims, (*inputs, output), op_format=DL16)


@st.composite
def orders(draw: st.DrawFn, labels: list[str]) -> tuple[str, ...]:
    kept = [label for label in labels if draw(st.booleans())]
    return tuple(draw(st.permutations(kept)))


@st.composite
def operands(draw: st.DrawFn, dims: tuple[Dim, ...], order: tuple[str, ...], stick: str) -> Operand:
    component = draw(st.sampled_from(["hbm", "lx"]))
    by_label = {dim.label: dim for dim in dims}
    extents = tuple(
        (by_label[label].per_core if component == "lx" else by_label[label].extent)
        + draw(st.integers(0, 2)) * (64 if label == stick else 1)
        for label in order
    )
    symbolic = draw(st.booleans()) and component == "hbm"
    own = stick if stick in order else None
    operand = Operand(order, extents, own, DL16, (), symbolic, component)
    offsets = start_offsets(dims, operand, OpClass.POINTWISE)
    base = 128 * draw(st.integers(0, 1000))
    start = tuple(str(-1 - core) if symbolic else str(base + offset) for core, offset in enumerate(offsets))
    return Operand(order, extents, own, DL16, start, symbolic, component)


@settings(max_examples=60)
@given(descriptors(), st.sampled_from(Version))
def test_descriptor_survives_the_file_and_the_text(descriptor: Descriptor, version: Version) -> None:
    op = build(descriptor, version)
    assert describe(op) == descriptor
    assert describe(parse(text_of(op))) == descriptor


@settings(max_examples=60)
@given(st.dictionaries(TEXT, JSON, max_size=3))
def test_any_object_survives_as_a_file(fields: dict[str, object]) -> None:
    assert_lossless({"0_op": fields})
