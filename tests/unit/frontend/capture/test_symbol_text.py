"""Texts of symbolic sizes: what may go to an evaluator of Python, and what may not."""

from __future__ import annotations

import pytest

from spyre_mlir.frontend.capture.symbol_text import is_size


@pytest.mark.parametrize(
    "text",
    [
        "s0",
        "u12",
        " s0 + 2*s1 ",
        "s0 - 1",
        "-s0",
        "+s0",
        "~s0",
        "s0 / 2",
        "s0 // 2",
        "s0 % 2",
        "(s0 < 2) & (s0 >= 1) | (s0 != 4)",
        "(s0 == 2) | (s0 > 3) | (s0 <= 3)",
        "Max(1, s0)",
        "Symbol('s77', positive=True, integer=True)",
        "Integer(3)",
        "Float('0.5', precision=53)",
        "Float('-.25', precision=53)",
        "Eq(s0, int_oo)",
        "Piecewise(ExprCondPair(s0, True))",
        "FloorDiv(s0, 2)",
        "s0 + 18446744073709551616",
        "s0 - 18446744073709551616",
        "Pow(s0, 64)",
        "Pow(s0, -64)",
        "PowByNatural(Symbol('s0'), 3)",
        "FloatPow(s0, 2)",
        "LShift(s0, 2)",
        "Pow(Add(s0, 1), 2)",
        "abcdefghijklmnop123456",
        "a" + " " * 9_999,
    ],
)
def test_expressions_of_symbols_and_numbers_are_sizes(text: str) -> None:
    assert is_size(text)


@pytest.mark.parametrize(
    "functions",
    [
        "Symbol Integer Float Rational Add Mul Max Min Mod floor ceiling Abs",
        "Eq Ne Gt Ge Lt Le And Or Not Equality Unequality",
        "GreaterThan LessThan StrictGreaterThan StrictLessThan Piecewise ExprCondPair Tuple",
        "FloorDiv ModularIndexing Where PythonMod CleanDiv CeilToInt FloorToInt CeilDiv RShift FloatTrueDiv IntTrueDiv",
        "IsNonOverlappingAndDenseIndicator TruncToFloat TruncToInt RoundToInt RoundDecimal ToFloat Identity",
    ],
)
def test_functions_of_sympy_and_of_torchs_sizes_may_be_called(functions: str) -> None:
    assert [name for name in functions.split() if not is_size(f"{name}(s0, 2)")] == []


@pytest.mark.parametrize("name", ["oo", "int_oo", "zoo", "nan", "true", "false", "True", "False", "S"])
def test_names_of_numbers_are_sizes(name: str) -> None:
    assert is_size(f"Max(s0, {name})")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s0 +",
        "s0\0",
        "import os",
        "__import__('os')",
        "S0",
        "os.system",
        "f(s0)",
        "eval('s0')",
        "Max.mro()",
        "Max",
        "Symbol('S')",
        "Symbol('s0; x')",
        "Float('1e999')",
        "Float('123456789012345678901.0')",
        "lambda: s0",
        "[s0]",
        "(s0, s1)",
        "s0[0]",
        "{s0}",
        "f'{s0}'",
        "s0 if s1 else s2",
        "s0 ** 2",
        "s0 << 2",
        "s0 and s1",
        "s0 + 18446744073709551617",
        "s0 - 18446744073709551617",
        "Pow(s0, 65)",
        "Pow(s0, -65)",
        "Pow(2, 3)",
        "Pow(Integer(9), 9)",
        "Pow(Integer(9), s0)",
        "Pow(s0, s0)",
        "Pow(s0, Mul(8, 8))",
        "Pow(s0, 0.5)",
        "Pow(s0)",
        "Pow(s0, 1, 2)",
        "Pow",
        "LShift(1, 60)",
        "PowByNatural(10, 60)",
        "FloatPow(10, 60)",
        "abcdefghijklmnopq",
        "s1234567",
        "a" + " " * 10_000,
        "(" * 5_000 + "s0" + ")" * 4_000,
    ],
)
def test_anything_else_is_not(text: str) -> None:
    assert not is_size(text)
