"""Sizes that depend on symbols: their text, the symbols in it, and their value once the symbols have values.

A text is an expression of Python on whole numbers and symbols: ``s0``, ``2 * s0 + 1``, ``s0 // 2``, ``max(s0, s1)``;
guards compare them: ``s0 % 2 == 0``. It is read as a tree and never given to an evaluator.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

Number = int | float | bool

SYMBOL = re.compile(r"[a-z]\w*")
_LONGEST = 4_000
_LARGEST_POWER = 64
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a / b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {function.__name__: function for function in (max, min, float, int, abs)}


@lru_cache(maxsize=4096)
def _tree(text: str) -> ast.expr:
    """The tree of an expression.

    Raises:
        ValueError: it is none, or has something else in it.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"an expression of {len(text)} characters")
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"'{text}' is no expression of sizes") from error
    called = {id(node.func) for node in ast.walk(body) if isinstance(node, ast.Call)}
    for node in ast.walk(body):
        if not _is_plain(node, called):
            raise ValueError(f"'{text}' has {type(node).__name__} in it, which is no part of an expression of sizes")
    return body


def _is_plain(node: ast.AST, called: set[int]) -> bool:
    match node:
        case ast.Name(id=name):
            return (name in _FUNCTIONS) if id(node) in called else SYMBOL.fullmatch(name) is not None
        case ast.Constant(value=value):
            return isinstance(value, int | float)
        case ast.BinOp(op=ast.Pow(), right=power):
            return _small(power)
        case ast.Call(keywords=keywords):
            return not keywords
        case ast.BinOp(op=op):
            return type(op) in _BINARY
        case ast.Compare(ops=ops):
            return len(ops) == 1 and type(ops[0]) in _COMPARED
        case _:
            return isinstance(
                node, (ast.UnaryOp, ast.BoolOp, ast.Load, ast.operator, ast.cmpop, ast.boolop, ast.USub, ast.Not)
            )


def _small(power: ast.expr) -> bool:
    """Return whether a power is a number small enough for the result to stay one."""
    number = power.operand if isinstance(power, ast.UnaryOp) else power
    value = number.value if isinstance(number, ast.Constant) else None
    return isinstance(value, int | float) and abs(value) <= _LARGEST_POWER


@lru_cache(maxsize=4096)
def symbols_in(text: str) -> frozenset[str]:
    """Return the symbols of an expression.

    Raises:
        ValueError: it is no expression of sizes.
    """
    names = {node.id for node in ast.walk(_tree(text)) if isinstance(node, ast.Name)}
    return frozenset(names - _FUNCTIONS.keys())


def evaluate(text: str, values: Mapping[str, int]) -> Number:
    """Return the value of an expression.

    Raises:
        ValueError: it is no expression of sizes, or divides by zero for these values.
        KeyError: a symbol has no value.
    """
    try:
        return _value(_tree(text), values)
    except (ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"'{text}': {error}") from error


def _value(node: ast.expr, values: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, values), _value(right, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, values)
        case ast.UnaryOp(operand=operand):
            return -_value(operand, values)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARED[type(op)](_value(left, values), _value(right, values))
        case ast.BoolOp(op=op, values=parts):
            truths = [_value(part, values) for part in parts]
            return all(truths) if isinstance(op, ast.And) else any(truths)
        case ast.Call(func=function, args=arguments):
            return _FUNCTIONS[cast(ast.Name, function).id](*(_value(a, values) for a in arguments))
        case _:
            raise ValueError(f"{type(node).__name__} has no value")


def solved(text: str, value: int) -> tuple[str, int] | None:
    """Return the symbol of an expression and the value that gives the expression this one.

    None if there is no such value, or more than one symbol, or the expression is not linear.
    """
    names = symbols_in(text)
    if len(names) != 1:
        return None
    (name,) = names
    base = cast(int, evaluate(text, {name: 0}))
    slope = cast(int, evaluate(text, {name: 1})) - base
    if not slope or (value - base) % slope:
        return None
    found = (value - base) // slope
    return (name, found) if evaluate(text, {name: found}) == value else None
