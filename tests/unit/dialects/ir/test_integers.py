"""Integers as attributes, each made once."""

from xdsl.dialects.builtin import IndexType, IntegerAttr, i64

from spyre_mlir.dialects.ir.integers import i64_attribute, index_attribute


def test_they_are_what_the_constructor_makes() -> None:
    assert index_attribute(7) == IntegerAttr(7, IndexType())
    assert i64_attribute(-7) == IntegerAttr(-7, i64)
    assert i64_attribute(1 << 40).value.data == 1 << 40


def test_each_is_made_once() -> None:
    assert index_attribute(12) is index_attribute(12)
    assert i64_attribute(12) is i64_attribute(12)
    assert str(index_attribute(12)) != str(i64_attribute(12))
