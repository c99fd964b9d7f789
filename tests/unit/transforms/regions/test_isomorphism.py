"""Equality of regions: signatures, wiring, parameters, results."""

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.transforms.regions.isomorphism import (
    clone_into,
    equal_regions,
    live_values,
    numbered_signatures,
    signature,
)
from tests.unit.transforms.regions.programs import T, parsed

TEXT = f"""
func.func @main(%x: {T}, %a: {T}, %b: {T}) -> ({T}, {T}) {{
  %0 = aten.add.Tensor(%x, %a) : ({T}, {T}) -> {T}
  %1 = aten.sub.Tensor(%0, %x) : ({T}, {T}) -> {T}
  %2 = aten.add.Tensor(%1, %b) : ({T}, {T}) -> {T}
  %3 = aten.sub.Tensor(%2, %x) : ({T}, {T}) -> {T}
  %4 = aten.add.Tensor(%3, %b) : ({T}, {T}) -> {T}
  %5 = aten.sub.Tensor(%x, %4) : ({T}, {T}) -> {T}
  func.return %5, %2 : {T}, {T}
}}"""


def ops_of(text: str) -> list[Operation]:
    main = next(op for op in parsed(text).ops if isinstance(op, FuncOp))
    return [op for op in main.body.block.ops if not isinstance(op, ReturnOp)]


def test_signatures_know_names_arguments_and_types_but_not_places_and_numbers() -> None:
    add, sub, other = ops_of(TEXT)[:3]
    assert signature(add) == signature(other) != signature(sub)
    other.attributes[ORIGIN] = IntegerAttr(7, i64)
    assert signature(add) == signature(other)
    other.attributes["alpha"] = IntegerAttr(2, i64)
    assert signature(add) != signature(other)
    assert numbered_signatures([add, sub, add]) == [0, 1, 0]


def test_parameters_and_results() -> None:
    """Operands that are the same at every place are one parameter; the value used behind any place is a result."""
    ops = ops_of(TEXT)
    region = equal_regions([ops[0:2], ops[2:4]], 2)
    assert region is not None
    x, a, b = ops[0].operands[0], ops[0].operands[1], ops[2].operands[1]
    assert region.parameters == ((x, ops[1].results[0]), (a, b), (x, x))
    assert region.places == (0, 1, 2)
    assert region.results == ((0, 0), (1, 0))


def test_other_wiring_is_another_region() -> None:
    ops = ops_of(TEXT)
    region = equal_regions([ops[0:2], ops[2:4], ops[4:6]], 2)
    assert region is not None
    assert [o.ops for o in region.occurrences] == [tuple(ops[0:2]), tuple(ops[2:4])]
    assert equal_regions([ops[0:2], ops[2:4], ops[4:6]], 3) is None


def test_integers_cross_the_border_only_as_arguments() -> None:
    kind = "tensor<4xi64>"
    text = f"""
func.func @main(%i: {kind}) -> {kind} {{
  %0 = aten.neg(%i) : ({kind}) -> {kind}
  %1 = aten.neg(%0) : ({kind}) -> {kind}
  func.return %1 : {kind}
}}"""
    ops = ops_of(text)
    assert equal_regions([[ops[0]], [ops[1]]], 2) is None


def test_counters_stay_outside() -> None:
    """What makes integers for the outside alone, from the outside, is no part of a layer."""
    kind = "tensor<4xi64>"
    text = f"""
func.func @main(%x: {T}, %i: {kind}) -> ({T}, {kind}, {kind}) {{
  %n1 = aten.neg(%i) : ({kind}) -> {kind}
  %m1 = aten.neg(%n1) : ({kind}) -> {kind}
  %x1 = aten.neg(%x) : ({T}) -> {T}
  %n2 = aten.neg(%i) : ({kind}) -> {kind}
  %m2 = aten.neg(%n2) : ({kind}) -> {kind}
  %x2 = aten.neg(%x1) : ({T}) -> {T}
  func.return %x2, %m1, %m2 : {T}, {kind}, {kind}
}}"""
    ops = ops_of(text)
    region = equal_regions([ops[:3], ops[3:]], 2)
    assert region is not None
    assert [o.ops for o in region.occurrences] == [(ops[2],), (ops[5],)]


def test_live_values() -> None:
    assert live_values(ops_of(TEXT)) == [0, 1, 1, 1, 2, 2]


def test_copies_read_what_they_are_told_to() -> None:
    ops = ops_of(TEXT)
    x, a = ops[0].operands
    first, second = clone_into(ops[0:2], {x: a})
    assert list(first.operands) == [a, a]
    assert list(second.operands) == [first.results[0], a]
