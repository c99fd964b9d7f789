"""Affine sets and maps of KTIR: sums of terms, text, and bounds worked out by hand."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineExpr,
    AffineMap,
    AffineSet,
)
from xdsl.parser import Parser

from spyre_mlir.dialects.ktdp.affine import (
    AffineError,
    BoxBounds,
    Linear,
    bounds_of,
    box_set,
    expr_text,
    linear,
    map_text,
    normal_map,
    normal_set,
    order_map,
    permutation,
    plain_name,
    set_text,
    simplified,
)
from spyre_mlir.universe import make_context

D0, D1, S0, S1 = (
    AffineExpr.dimension(0),
    AffineExpr.dimension(1),
    AffineExpr.symbol(0),
    AffineExpr.symbol(1),
)
ZERO, FOUR = AffineExpr.constant(0), AffineExpr.constant(4)


def binary(kind: AffineBinaryOpKind, lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    """As it is written: operators on expressions fold constants and turn them to the right."""
    return AffineBinaryOpExpr(kind, lhs, rhs)


def times(lhs: AffineExpr, rhs: AffineExpr) -> AffineExpr:
    return binary(AffineBinaryOpKind.Mul, lhs, rhs)


def set_of(text: str) -> AffineSet:
    attribute = Parser(make_context(), f"affine_set<{text}>").parse_attribute()
    assert isinstance(attribute, AffineSetAttr)
    return attribute.data


@pytest.mark.parametrize(
    ("expr", "sum_of"),
    [
        (FOUR, Linear((), (), 4)),
        (D1, Linear(((1, 1),), (), 0)),
        (S1, Linear((), ((1, 1),), 0)),
        (times(D0, FOUR), Linear(((0, 4),), (), 0)),
        (times(FOUR, D0), Linear(((0, 4),), (), 0)),
        (times(S0, FOUR), Linear((), ((0, 4),), 0)),
        (times(FOUR, S0), Linear((), ((0, 4),), 0)),
        (times(FOUR, AffineExpr.constant(3)), Linear((), (), 12)),
        (times(D1 + D0 * 2 + 3, FOUR), Linear(((0, 8), (1, 4)), (), 12)),
        (D1 * 3 + S0 + 5 + (D0 - D1 - S0 * 2 - 7), Linear(((0, 1), (1, 2)), ((0, -1),), -2)),
        (D0 - D0, Linear((), (), 0)),
        (times(D0, S0), None),
        (times(D0, D1), None),
        (D0 // 4, None),
        (D0 // 4 + D1, None),
        (D1 + D0 // 4, None),
        (times(D0 // 4, FOUR), None),
        (times(FOUR, D0 // 4), None),
    ],
)
def test_expressions_that_are_sums(expr: AffineExpr, sum_of: Linear | None) -> None:
    assert linear(expr) == sum_of


@pytest.mark.parametrize(
    ("sum_of", "expr"),
    [
        (Linear((), (), 0), ZERO),
        (Linear((), (), -3), AffineExpr.constant(-3)),
        (Linear(((1, 1),), (), 0), D1),
        (Linear((), ((0, 2),), 0), S0 * 2),
        (Linear(((0, 2), (1, 1)), ((0, -1),), 5), D0 * 2 + D1 + S0 * -1 + 5),
    ],
)
def test_sums_as_expressions(sum_of: Linear, expr: AffineExpr) -> None:
    assert sum_of.expr() == expr
    assert {sum_of} == {linear(expr)}


def test_order_inside_divisions() -> None:
    assert simplified((3 + D1 + D0) // 4) == binary(AffineBinaryOpKind.FloorDiv, D0 + D1 + 3, FOUR)
    assert simplified(binary(AffineBinaryOpKind.Mod, D0, D1 + D0)) == binary(AffineBinaryOpKind.Mod, D0, D0 + D1)


def test_sets_and_maps_that_say_the_same_become_equal() -> None:
    one, other = set_of("(d0)[s0] : (4 + d0 >= s0, s0 == d0)"), set_of("(d0)[s0] : (d0 - s0 + 4 >= 0, s0 - d0 == 0)")
    assert AffineSetAttr(one) != AffineSetAttr(other)
    assert normal_set(AffineSetAttr(one)) == normal_set(AffineSetAttr(other))
    assert set_text(normal_set(AffineSetAttr(one)).data) == "affine_set<(d0)[s0] : (d0 - s0 + 4 >= 0, -d0 + s0 == 0)>"
    given = AffineMap(2, 1, (1 + D1 + D0, S0))
    assert normal_map(AffineMapAttr(given)) == AffineMapAttr(AffineMap(2, 1, (D0 + D1 + 1, S0)))


# --- text ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (ZERO, "0"),
        (AffineExpr.constant(-5), "-5"),
        (D0 - 1, "d0 - 1"),
        (-D0 + 1, "-d0 + 1"),
        (D0 * -2 + S0 * 3 - D1 + 7, "-2 * d0 - d1 + 3 * s0 + 7"),
        (D0 % 8, "d0 mod 8"),
        ((D0 + 3) // 8, "(d0 + 3) floordiv 8"),
        (binary(AffineBinaryOpKind.CeilDiv, D0, S0 + 1), "d0 ceildiv (s0 + 1)"),
        (times(D0, S0), "d0 * s0"),
        (D1 // 4 + D0 * 2, "(d1 floordiv 4) + (2 * d0)"),
    ],
)
def test_text_of_expressions(expr: AffineExpr, text: str) -> None:
    assert expr_text(expr) == text


def test_text_with_other_names() -> None:
    names = {D0: "%i", S0: "%n"}
    assert expr_text(D0 * 2 + S0, lambda atom: names[atom]) == "2 * %i + %n"
    assert expr_text((D0 + 1) % 4 + S0, lambda atom: names[atom]) == "((%i + 1) mod 4) + %n"
    assert [plain_name(D1), plain_name(S0)] == ["d1", "s0"]
    with pytest.raises(TypeError, match="4 has no name"):
        plain_name(FOUR)


def test_text_of_sets_and_maps() -> None:
    rule = AffineConstraintExpr(AffineConstraintKind.le, D0, S1 + 3)
    assert set_text(AffineSet(1, 2, (rule,))) == "affine_set<(d0)[s0, s1] : (d0 - s1 - 3 <= 0)>"
    both = "affine_set<(d0, d1) : (d0 >= 0, d1 - 4 == 0)>"
    assert set_text(set_of("(d0, d1) : (d0 >= 0, d1 == 4)")) == both
    assert map_text(AffineMap(2, 0, (D1, D0))) == "affine_map<(d0, d1) -> (d1, d0)>"
    assert map_text(AffineMap(1, 1, (D0 + S0,))) == "affine_map<(d0)[s0] -> (d0 + s0)>"


# --- what a set holds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("(i, j) : (i >= 0, -i + 3 >= 0, j - 4 >= 0, 9 - j >= 0)", (0, 4), (3, 9)),
        ("(i) : (i <= 7, -i <= -2)", (2,), (7,)),
        ("(i) : (2 * i - 5 >= 0, -2 * i + 9 >= 0)", (3,), (4,)),  # 2.5 to 4.5
        ("(i) : (3 * i + 4 >= 0, -3 * i - 4 >= 0)", (-1,), (-2,)),  # -4/3 from both sides: empty
        ("(i) : (2 * i - 6 == 0)", (3,), (3,)),
        ("(i) : (-2 * i + 6 == 0)", (3,), (3,)),
        ("(i) : (2 * i - 5 == 0)", (3,), (2,)),  # no whole number
        ("(i) : (-2 * i + 5 == 0)", (3,), (2,)),
        ("(i) : (i >= 1, i >= 3, i >= 2, i <= 7, i <= 5, i <= 6)", (3,), (5,)),
    ],
)
def test_bounds(text: str, low: tuple[int, ...], high: tuple[int, ...]) -> None:
    assert bounds_of(set_of(text)) == BoxBounds(low, high)


def test_rules_of_several_dimensions_are_kept() -> None:
    text = "(i, j) : (i >= 0, i <= 3, j >= 0, j <= 3, i - j >= 0, i mod 2 == 0)"
    found = bounds_of(set_of(text))
    assert (found.low, found.high) == ((0, 0), (3, 3))
    assert [(rule.kind, expr_text(rule.lhs), rule.rhs) for rule in found.rules] == [
        (AffineConstraintKind.ge, "d0 - d1", ZERO),
        (AffineConstraintKind.eq, "d0 mod 2", ZERO),
    ]


def test_symbols_have_values() -> None:
    half_open = set_of("(i)[n, m] : (i - n >= 0, -i + 2 * m - 1 >= 0)")
    assert bounds_of(half_open, [4, 16]) == BoxBounds((4,), (31,))
    assert bounds_of(half_open, [4, 16, 99]) == BoxBounds((4,), (31,))
    with pytest.raises(AffineError, match="the set has 2 symbols and 1 values for them"):
        bounds_of(half_open, [4])


@pytest.mark.parametrize("rule", ["j >= 0", "j <= 7", "i + j == 0"])
def test_a_dimension_without_bounds_is_refused(rule: str) -> None:
    with pytest.raises(AffineError, match=r"d1 has no lower and upper bound of its own in affine_set<\(d0, d1\) : "):
        bounds_of(set_of(f"(i, j) : (i == 0, {rule})"))


def test_points_of_a_box() -> None:
    assert BoxBounds((0, 2, 5), (3, 2, 3)).extents == (4, 1, 0)


@pytest.mark.parametrize(
    ("low", "high", "meets"),
    [((0, 0), (3, 3), True), ((3, 3), (9, 9), True), ((4, 0), (9, 9), False), ((0, 4), (3, 9), False)],
)
def test_boxes_that_share_a_point(low: tuple[int, ...], high: tuple[int, ...], meets: bool) -> None:
    box, other = BoxBounds((0, 0), (3, 3)), BoxBounds(low, high)
    assert box.meets(other) is other.meets(box) is meets
    assert len({box, BoxBounds((0, 0), (3, 3))}) == 1


@pytest.mark.parametrize(
    ("given", "places"),
    [
        (AffineMap(2, 0, (D1, D0)), (1, 0)),
        (AffineMap(0, 0, ()), ()),
        (AffineMap(2, 0, (D0, D0)), None),
        (AffineMap(2, 0, (D0,)), None),
        (AffineMap(2, 0, (D0, D1, ZERO)), None),
        (AffineMap(2, 1, (D0, D1)), None),
    ],
)
def test_maps_that_list_each_dimension_once(given: AffineMap, places: tuple[int, ...] | None) -> None:
    assert permutation(given) == places


def test_boxes_and_orders() -> None:
    rules = "d0 >= 0, -d0 + 3 >= 0, d1 >= 0, -d1 + 1 >= 0"
    assert set_text(box_set([4, 2]).data) == f"affine_set<(d0, d1) : ({rules})>"
    assert set_text(box_set([4], [5]).data) == "affine_set<(d0) : (d0 - 5 >= 0, -d0 + 8 >= 0)>"
    assert bounds_of(box_set([4, 2], [5, 1]).data) == BoxBounds((5, 1), (8, 2))
    assert map_text(order_map([2, 0, 1]).data) == "affine_map<(d0, d1, d2) -> (d2, d0, d1)>"
