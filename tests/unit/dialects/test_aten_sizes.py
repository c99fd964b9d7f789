"""Symbolic sizes in types, arguments, guards and notes on functions."""

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, StringAttr, TensorType, f32, i64
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.aten_sizes import (
    ExtentsAttr,
    GuardOp,
    SizeAttr,
    SymbolRange,
    declared_symbols,
    has_symbols,
    is_symbolic,
    symbolic_extents,
    symbols_attribute,
    type_with_extents,
)


def test_a_type_holds_its_extents_in_order() -> None:
    type_ = type_with_extents(f32, (4, "s0", 8, "2 * s1"))
    assert str(type_) == 'tensor<4x?x8x?xf32, #aten.extents<"s0", "2 * s1">>'
    assert is_symbolic(type_)
    assert symbolic_extents(type_) == (4, "s0", 8, "2 * s1")


def test_a_type_of_numbers_is_a_plain_one() -> None:
    type_ = type_with_extents(f32, (4, 8))
    assert type_ == TensorType(f32, [4, 8])
    assert not is_symbolic(type_)
    assert not is_symbolic(i64)
    assert symbolic_extents(type_) == (4, 8)


@pytest.mark.parametrize("texts", [[], ["s0", "s1"]])
def test_every_question_mark_has_one_expression(texts: list[str]) -> None:
    type_ = TensorType(f32, [DYNAMIC_INDEX, 4], ExtentsAttr.of(texts))
    with pytest.raises(VerifyException, match=f"1 open extents and {len(texts)} expressions"):
        symbolic_extents(type_)


def test_expressions_are_checked() -> None:
    for make in (lambda: SizeAttr("s0.real"), lambda: ExtentsAttr.of(["s0", "f(s0)"])):
        with pytest.raises(VerifyException, match="expression of sizes"):
            make()
    with pytest.raises(VerifyException, match="expression of sizes"):
        GuardOp("import os").verify()
    GuardOp("s0 % 2 == 0").verify()


def test_symbols_are_found_in_lists_and_dictionaries() -> None:
    size = SizeAttr("s0")
    assert has_symbols(DictionaryAttr({"size": ArrayAttr([to_attribute(1), ArrayAttr([size])])}))
    assert not has_symbols(DictionaryAttr({"size": to_attribute((1, 2)), "name": StringAttr("s0")}))


def test_ranges_are_kept_in_the_note() -> None:
    ranges = {"s0": SymbolRange(2, 512), "s1": SymbolRange(0)}
    assert declared_symbols(symbols_attribute(ranges)) == ranges
    assert declared_symbols(None) == {}


@pytest.mark.parametrize("range_", [SymbolRange(2, 5), SymbolRange(2)])
def test_ends_belong_to_a_range(range_: SymbolRange) -> None:
    assert [n for n in (1, 2, 5, 6) if n in range_] == ([2, 5] if range_.most else [2, 5, 6])


def test_ranges_in_errors() -> None:
    assert (str(SymbolRange(2, 5)), str(SymbolRange(3))) == ("2 to 5", "3 or more")


@pytest.mark.parametrize(
    "note",
    [
        StringAttr("s0"),
        DictionaryAttr({"s0": to_attribute(2)}),
        DictionaryAttr({"s0": to_attribute((1, 2, 3))}),
        DictionaryAttr({"S": to_attribute((1, 2))}),
    ],
)
def test_another_note_is_refused(note: StringAttr | DictionaryAttr) -> None:
    with pytest.raises(VerifyException, match="expected"):
        declared_symbols(note)
