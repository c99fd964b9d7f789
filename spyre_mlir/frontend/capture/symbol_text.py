"""Text of a symbolic size in a saved program, which torch passes to a Python evaluator."""

from __future__ import annotations

import ast
import re

_SYMBOL = re.compile(r"[a-z_]{1,16}\d{0,6}")
_NUMBERS = frozenset({"oo", "int_oo", "zoo", "nan", "true", "false", "True", "False", "S"})
_FUNCTIONS = frozenset(
    {
        *("Symbol", "Integer", "Float", "Rational", "Add", "Mul", "Max", "Min", "Mod", "floor", "ceiling", "Abs"),
        *("Eq", "Ne", "Gt", "Ge", "Lt", "Le", "And", "Or", "Not", "Equality", "Unequality"),
        *("GreaterThan", "LessThan", "StrictGreaterThan", "StrictLessThan", "Piecewise", "ExprCondPair", "Tuple"),
        *("FloorDiv", "ModularIndexing", "Where", "PythonMod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv"),
        *("RShift", "FloatTrueDiv", "IntTrueDiv", "IsNonOverlappingAndDenseIndicator", "TruncToFloat", "TruncToInt"),
        *("RoundToInt", "RoundDecimal", "ToFloat", "Identity"),
    }
)
# A power of two numbers is worked out at once, and can be of any length.
_POWERS = frozenset({"Pow", "PowByNatural", "FloatPow", "LShift"})
_LARGEST_POWER = 64
_LARGEST = 1 << 64
_LONGEST = 10_000
_PLAIN = (
    ast.Expression, ast.Load, ast.Call, ast.keyword, ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.USub, ast.UAdd, ast.Invert, ast.BitAnd, ast.BitOr,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE,
)  # fmt: skip


def is_size(text: str) -> bool:
    """Return whether a text is an expression of symbols and numbers that can be evaluated safely."""
    if len(text) > _LONGEST:
        return False
    try:
        nodes = list(ast.walk(ast.parse(text.strip(), mode="eval")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return all(isinstance(node, _PLAIN) and _is_plain(node, called) for node in nodes)


def _is_plain(node: ast.AST, called: set[int]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _POWERS:
            return len(node.args) == 2 and _is_small_power(*node.args)
        case ast.Call(func=function):
            return isinstance(function, ast.Name) and function.id in _FUNCTIONS
        case ast.Name(id=name):
            return id(node) in called or name in _NUMBERS or _SYMBOL.fullmatch(name) is not None
        case ast.Constant(value=str(symbol)):
            return _SYMBOL.fullmatch(symbol) is not None or re.fullmatch(r"-?\d{0,20}\.\d{0,20}", symbol) is not None
        case ast.Constant(value=int(number)):
            return abs(number) <= _LARGEST
        case _:
            return True


def _is_small_power(base: ast.expr, power: ast.expr) -> bool:
    """Return whether a power is of something that stays symbolic, by a number that is small."""
    symbolic = any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(base))
    symbolic = symbolic or any(isinstance(n, ast.Name) and n.id not in _FUNCTIONS for n in ast.walk(base))
    numbers = [n.value for n in ast.walk(power) if isinstance(n, ast.Constant)]
    return symbolic and all(isinstance(n, int) and abs(n) <= _LARGEST_POWER for n in numbers) and len(numbers) == 1
