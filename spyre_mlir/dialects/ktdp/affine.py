"""Affine sets and maps of KTIR: their bounds, their text, and their points.

Other readers of KTIR take a smaller affine grammar than MLIR's, so our text keeps to sums of terms such as
``-d0 + 63`` and to ``floordiv`` and ``mod`` of a parenthesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)


class AffineError(ValueError):
    """A set or map without a meaning in KTIR."""


@dataclass(frozen=True)
class Linear:
    """A sum of terms.

    Args:
        dims: coefficient of each dimension that takes part, by number.
        syms: the same for symbols.
        const: what is added.
    """

    dims: tuple[tuple[int, int], ...]
    syms: tuple[tuple[int, int], ...]
    const: int

    def expr(self) -> AffineExpr:
        """The sum as an expression: dimensions, symbols, constant, in this order."""
        total: AffineExpr | None = None
        for make, terms in ((AffineExpr.dimension, self.dims), (AffineExpr.symbol, self.syms)):
            for place, factor in terms:
                term = make(place) if factor == 1 else make(place) * factor
                total = term if total is None else total + term
        if total is None:
            return AffineExpr.constant(self.const)
        return total + self.const if self.const else total


def linear(expr: AffineExpr) -> Linear | None:
    """Return the expression as a sum of terms, None when it has a division or a product of two unknowns."""
    match expr:
        case AffineConstantExpr(value):
            return Linear((), (), value)
        case AffineDimExpr(position):
            return Linear(((position, 1),), (), 0)
        case AffineSymExpr(position):
            return Linear((), ((position, 1),), 0)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            left, right = linear(lhs), linear(rhs)
            return None if left is None or right is None else _combined(left, 1, right, 1)
        case AffineBinaryOpExpr(AffineBinaryOpKind.Mul, lhs, rhs):
            left, right = linear(lhs), linear(rhs)
            if left is not None and right is not None and not left.dims and not left.syms:
                left, right = right, left
            if left is None or right is None or right.dims or right.syms:
                return None
            return _combined(left, right.const, Linear((), (), 0), 0)
        case _:
            return None


def _combined(one: Linear, factor: int, other: Linear, other_factor: int) -> Linear:
    def merged(left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        sums: dict[int, int] = {}
        for terms, times in ((left, factor), (right, other_factor)):
            for place, value in terms:
                sums[place] = sums.get(place, 0) + times * value
        return tuple((place, value) for place, value in sorted(sums.items()) if value)

    return Linear(
        merged(one.dims, other.dims),
        merged(one.syms, other.syms),
        factor * one.const + other_factor * other.const,
    )


def simplified(expr: AffineExpr) -> AffineExpr:
    """Return the same expression with its sums in canonical order."""
    flat = linear(expr)
    if flat is not None:
        return flat.expr()
    match expr:
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return AffineBinaryOpExpr(kind, simplified(lhs), simplified(rhs))
        case _:
            return expr


def normal_set(attribute: AffineSetAttr) -> AffineSetAttr:
    """Return the same set with the expressions in canonical order, so that equal texts are equal attributes."""
    given = attribute.data
    made = tuple(AffineConstraintExpr(c.kind, simplified(c.lhs - c.rhs), _ZERO) for c in given.constraints)
    return AffineSetAttr(AffineSet(given.num_dims, given.num_symbols, made))


def normal_map(attribute: AffineMapAttr) -> AffineMapAttr:
    """Return the same map with the expressions in canonical order."""
    given = attribute.data
    return AffineMapAttr(AffineMap(given.num_dims, given.num_symbols, tuple(map(simplified, given.results))))


_ZERO = AffineExpr.constant(0)


# --- text ---------------------------------------------------------------------------------------------------------

Namer = Callable[[AffineExpr], str]


def plain_name(expr: AffineExpr) -> str:
    """Name dimensions and symbols in sets and maps: `d0`, `s1`."""
    match expr:
        case AffineDimExpr(position):
            return f"d{position}"
        case AffineSymExpr(position):
            return f"s{position}"
        case _:
            raise TypeError(f"{expr} has no name")


def expr_text(expr: AffineExpr, name: Namer = plain_name) -> str:
    """Return the text of an expression."""
    flat = linear(expr)
    if flat is not None:
        return _sum_text(flat, name)
    match expr:
        case AffineBinaryOpExpr(AffineBinaryOpKind.Add, lhs, rhs):
            return f"{_atom_text(lhs, name)} + {_atom_text(rhs, name)}"
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return f"{_atom_text(lhs, name)} {_WORDS[kind]} {_atom_text(rhs, name)}"
        case _:
            return name(expr)


_WORDS = {
    AffineBinaryOpKind.Mul: "*",
    AffineBinaryOpKind.FloorDiv: "floordiv",
    AffineBinaryOpKind.CeilDiv: "ceildiv",
    AffineBinaryOpKind.Mod: "mod",
}


def _atom_text(expr: AffineExpr, name: Namer) -> str:
    text = expr_text(expr, name)
    return text if isinstance(expr, AffineDimExpr | AffineSymExpr | AffineConstantExpr) else f"({text})"


def _sum_text(flat: Linear, name: Namer) -> str:
    terms = [(factor, name(AffineExpr.dimension(place))) for place, factor in flat.dims]
    terms += [(factor, name(AffineExpr.symbol(place))) for place, factor in flat.syms]
    if flat.const or not terms:
        terms.append((flat.const, ""))
    parts: list[str] = []
    for factor, symbol in terms:
        size = abs(factor)
        body = str(size) if not symbol else symbol if size == 1 else f"{size} * {symbol}"
        minus = factor < 0
        parts.append(f" {'-' if minus else '+'} {body}" if parts else f"{'-' if minus else ''}{body}")
    return "".join(parts)


def set_text(given: AffineSet) -> str:
    """Return the text of a set, as `affine_set<(d0) : (d0 >= 0, -d0 + 63 >= 0)>`."""
    symbols = f"[{_names('s', given.num_symbols)}]" if given.num_symbols else ""
    rules = ", ".join(f"{expr_text(c.lhs - c.rhs)} {c.kind.value} 0" for c in given.constraints)
    return f"affine_set<({_names('d', given.num_dims)}){symbols} : ({rules})>"


def map_text(given: AffineMap) -> str:
    """Return the text of a map, as `affine_map<(d0, d1) -> (d1, d0)>`."""
    symbols = f"[{_names('s', given.num_symbols)}]" if given.num_symbols else ""
    results = ", ".join(expr_text(result) for result in given.results)
    return f"affine_map<({_names('d', given.num_dims)}){symbols} -> ({results})>"


def _names(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{number}" for number in range(count))


# --- what a set holds ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BoxBounds:
    """A box of points, some of which further constraints may exclude.

    Args:
        low: first point of each dimension.
        high: last point of each dimension.
        rules: what the points must also obey; symbols are bound.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    rules: tuple[AffineConstraintExpr, ...] = ()

    @property
    def extents(self) -> tuple[int, ...]:
        """Points of each dimension."""
        return tuple(max(0, high - low + 1) for low, high in zip(self.low, self.high, strict=True))

    def meets(self, other: BoxBounds) -> bool:
        """Return whether the two boxes share a point; the further constraints are ignored."""
        lows = [max(a, b) for a, b in zip(self.low, other.low, strict=True)]
        highs = [min(a, b) for a, b in zip(self.high, other.high, strict=True)]
        return all(low <= high for low, high in zip(lows, highs, strict=True))


def bounds_of(given: AffineSet, symbols: Sequence[int] = ()) -> BoxBounds:
    """Return the bounding box of a set, and the constraints that do not bound one dimension.

    Raises:
        AffineError: a symbol has no value, or a dimension has no bound on both sides.
    """
    if given.num_symbols > len(symbols):
        raise AffineError(f"the set has {given.num_symbols} symbols and {len(symbols)} values for them")
    values = [AffineExpr.constant(value) for value in symbols]
    dims = [AffineExpr.dimension(number) for number in range(given.num_dims)]
    low: list[int | None] = [None] * given.num_dims
    high: list[int | None] = [None] * given.num_dims
    rules: list[AffineConstraintExpr] = []
    for constraint in given.constraints:
        expr = (constraint.lhs - constraint.rhs).replace_dims_and_symbols(dims, values)
        flat = linear(expr)
        if flat is None or len(flat.dims) != 1:
            rules.append(AffineConstraintExpr(constraint.kind, expr, _ZERO))
            continue
        _tighten(low, high, flat, constraint.kind)
    for number in range(given.num_dims):
        if low[number] is None or high[number] is None:
            raise AffineError(f"d{number} has no lower and upper bound of its own in {set_text(given)}")
    return BoxBounds(tuple(v for v in low if v is not None), tuple(v for v in high if v is not None), tuple(rules))


def _tighten(low: list[int | None], high: list[int | None], flat: Linear, kind: AffineConstraintKind) -> None:
    """Take over a rule `factor * d + const (>=|<=|==) 0`."""
    ((place, factor),) = flat.dims
    const = flat.const
    if kind is AffineConstraintKind.le:
        factor, const = -factor, -const
    is_low = factor > 0
    if is_low or kind is AffineConstraintKind.eq:
        bound = -(const // abs(factor)) if factor > 0 else -((-const) // abs(factor))
        known = low[place]
        low[place] = bound if known is None else max(known, bound)
    if not is_low or kind is AffineConstraintKind.eq:
        bound = const // abs(factor) if factor < 0 else (-const) // abs(factor)
        known = high[place]
        high[place] = bound if known is None else min(known, bound)


def permutation(given: AffineMap) -> tuple[int, ...] | None:
    """Return the dimensions a map lists, each once; None if it is anything else."""
    places = [result.position for result in given.results if isinstance(result, AffineDimExpr)]
    if given.num_symbols or len(places) != len(given.results) or sorted(places) != list(range(given.num_dims)):
        return None
    return tuple(places)


def box_set(extents: Sequence[int], start: Sequence[int] | None = None) -> AffineSetAttr:
    """Return the set of all points of a box; it starts at 0 by default."""
    rules: list[AffineConstraintExpr] = []
    for number, extent in enumerate(extents):
        first = 0 if start is None else start[number]
        dim = AffineExpr.dimension(number)
        rules.append(AffineConstraintExpr(AffineConstraintKind.ge, simplified(dim - first), _ZERO))
        rules.append(AffineConstraintExpr(AffineConstraintKind.ge, simplified(-dim + (first + extent - 1)), _ZERO))
    return AffineSetAttr(AffineSet(len(extents), 0, tuple(rules)))


def order_map(places: Sequence[int]) -> AffineMapAttr:
    """Return the map that lists dimensions in this order."""
    return AffineMapAttr(AffineMap(len(places), 0, tuple(AffineExpr.dimension(place) for place in places)))
