"""Expressions of symbolic sizes: what they may hold, their values, and the way back from a value to a symbol."""

import pytest

from spyre_mlir.dialects.size_expressions import evaluate, solved, symbols_in


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("s0", 7),
        ("2 * s0 + 1", 15),
        ("s0 // 2 - s1", 0),
        ("-s1", -3),
        ("(s0 + s1) % 4", 2),
        ("max(s0, s1, 9)", 9),
        ("min(s0, s1)", 3),
        ("abs(s1 - s0)", 4),
        ("float(s0) ** -1", 1 / 7),
        ("s0 / 2", 3.5),
        ("int(s0 / 2)", 3),
        ("s1 ** 2", 9),
        ("s0 % 2 == 0", False),
        ("s0 >= 7 and not s1 > 3", True),
        ("s0 < 7 or s1 <= 2", False),
        ("s0 != s1", True),
    ],
)
def test_values(text: str, value: float) -> None:
    found = evaluate(text, {"s0": 7, "s1": 3})
    assert found == value
    assert type(found) is type(value)


def test_symbols() -> None:
    assert symbols_in("max(s0, 2) + width // s0 - 1") == {"s0", "width"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s0 +",
        "open('file')",
        "s0.real",
        "[s0]",
        "s0[0]",
        "'s0'",
        "lambda: s0",
        "S0",
        "max(s0, key=s0)",
        "s0 ** s1",
        "2 ** 65",
        "s0 << 2",
        "1 < s0 < 3",
        "s0 if s1 else 2",
        "s0" + " + 1" * 2000,
        "(" * 500 + "s0" + ")" * 500,
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expression|part of"):
        symbols_in(text)


def test_a_division_by_nothing_names_the_expression() -> None:
    with pytest.raises(ValueError, match="'8 // s0'"):
        evaluate("8 // s0", {"s0": 0})


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("s0", 5, ("s0", 5)),
        ("2 * s0", 10, ("s0", 5)),
        ("2 * s0", 11, None),
        ("3 * s0 + 2", 11, ("s0", 3)),
        ("s0 - 4", 1, ("s0", 5)),
        ("s0 // 2", 3, None),
        ("s0 * s0", 9, None),
        ("s0 + s1", 9, None),
        ("s0 - s0 + 3", 3, None),
    ],
)
def test_linear_expressions_are_solved(text: str, value: int, found: tuple[str, int] | None) -> None:
    assert solved(text, value) == found
