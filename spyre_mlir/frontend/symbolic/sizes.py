"""Symbols of an exported program: torch's symbolic sizes in the spelling of the aten level.

Symbols are named ``s0``, ``s1``, … in the order in which the inputs have them, because torch's own names are hashes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_arguments import to_attribute
from spyre_mlir.dialects.aten_sizes import SYMBOLS, SizeAttr, SymbolRange, symbols_attribute, type_with_extents
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.element_types import ELEMENT_TYPES
from spyre_mlir.frontend.torch_private import expression_of

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)
STATIC = "export with a static size there"

# torch traces as if no symbolic extent were 0 or 1; these have programs of their own.
LEAST_EXTENT = 2

_JOINED = {"Add": "+", "Mul": "*", "And": "and", "Or": "or"}
_BETWEEN = {
    "FloorDiv": "//",
    "CleanDiv": "//",
    "Mod": "%",
    "PythonMod": "%",
    "IntTrueDiv": "/",
    "FloatTrueDiv": "/",
    "Pow": "**",
    "PowByNatural": "**",
    "FloatPow": "**",
    "Equality": "==",
    "Unequality": "!=",
    "LessThan": "<=",
    "StrictLessThan": "<",
    "GreaterThan": ">=",
    "StrictGreaterThan": ">",
}
_CALLED = {"Max": "max", "Min": "min", "ToFloat": "float", "TruncToInt": "int", "Abs": "abs"}


def spell_expression(expression: Any, names: Mapping[str, str]) -> str:
    """Return torch's expression of a size as text.

    Args:
        expression: of sympy.
        names: of the symbols, by torch's names.

    Raises:
        UnsupportedError: it has a function in it that sizes of the aten level lack.
    """
    return ast.unparse(ast.parse(_spelled(expression, names), mode="eval"))


def _spelled(expression: Any, names: Mapping[str, str]) -> str:
    if expression.is_Symbol:
        return names[str(expression)]
    if expression.is_Integer or expression.is_Float:
        return f"({int(expression) if expression.is_Integer else float(expression)!r})"
    kind = type(expression).__name__
    args = sorted(expression.args, key=lambda part: kind == "Add" and bool(part.is_Number))  # s0 + 1, not 1 + s0
    parts = [_spelled(part, names) for part in args]
    if kind in _JOINED:
        return f"({f' {_JOINED[kind]} '.join(parts)})"
    if kind in _BETWEEN:
        return f"({parts[0]} {_BETWEEN[kind]} {parts[1]})"
    if kind in _CALLED:
        return f"{_CALLED[kind]}({', '.join(parts)})"
    if kind == "ModularIndexing":
        return f"({parts[0]} // {parts[1]} % {parts[2]})"
    raise UnsupportedError(f"a size is {expression}, and {kind} has no form in sizes", hint=STATIC)


@dataclass(frozen=True)
class Sizes:
    """The symbols of a program, with their names and ranges.

    Attributes:
        names: of the symbols, by torch's names.
        ranges: values that they may have, by our names.
    """

    names: Mapping[str, str] = field(default_factory=dict[str, str])
    ranges: Mapping[str, SymbolRange] = field(default_factory=dict[str, SymbolRange])

    @classmethod
    def of(cls, exported: ExportedProgram) -> Sizes:
        """Find the symbols of the inputs of a program."""
        found: dict[str, tuple[Any, bool]] = {}
        for node in exported.graph.find_nodes(op="placeholder"):
            for size, is_extent in _sizes_of(node.meta.get("val")):
                for symbol in sorted(expression_of(size).free_symbols, key=str):
                    _, before = found.get(str(symbol), (symbol, False))
                    found[str(symbol)] = symbol, before or is_extent
        names = {name: f"s{number}" for number, name in enumerate(found)}
        ranges = {names[name]: _range(exported, *about) for name, about in found.items()}
        return cls(names, ranges)

    def text(self, size: Any) -> str:
        """Return the expression of a symbolic number."""
        return spell_expression(expression_of(size), self.names)

    def extents(self, tensor: torch.Tensor) -> tuple[int | str, ...]:
        """Return the extents of a tensor: numbers, and expressions where they are symbolic."""
        return tuple(self._extent(extent) for extent in tensor.shape)

    def _extent(self, extent: object) -> int | str:
        known = known_extent(extent)
        return self.text(extent) if known is None else known

    def type_of(self, tensor: torch.Tensor) -> TensorType[Attribute]:
        """Return the MLIR type of a tensor."""
        return type_with_extents(ELEMENT_TYPES[tensor.dtype], self.extents(tensor))

    def spelled(self, value: object) -> object:
        """Return an argument of a call with attributes for symbolic numbers, and for the nodes that give them."""
        if isinstance(value, Node):
            known = value.meta.get("val")
            return value if isinstance(known, torch.Tensor | list | tuple) else self.spelled(known)
        if isinstance(value, (list, tuple)):
            return [self.spelled(item) for item in cast("Sequence[object]", value)]
        if not isinstance(value, SYMBOLIC):
            return value
        expression: Any = expression_of(value)
        return int(expression) if expression.is_Integer else SizeAttr(self.text(value))

    def declare(self, function: FuncOp) -> None:
        """Note the symbols on a function, if there are any."""
        if self.ranges:
            function.attributes[SYMBOLS] = symbols_attribute(self.ranges)

    def leaf(self, value: object) -> object:
        """Return the value of an input or output that is no tensor, an attribute if it is symbolic.

        Torch gives some sizes that an export made static as symbolic numbers, whose expression is an integer.
        """
        spelled = self.spelled(value)
        return to_attribute(spelled) if isinstance(spelled, SizeAttr) else spelled


def known_extent(extent: object) -> int | None:
    """Return a size that is a number, also a symbolic one that an export made static; None for others."""
    if not isinstance(extent, torch.SymInt):
        return cast(int, extent)
    expression: Any = expression_of(extent)
    return int(expression) if expression.is_Integer else None


def open_shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor with MLIR's number for an open extent where it is symbolic."""
    return tuple(DYNAMIC_INDEX if (known := known_extent(e)) is None else known for e in tensor.shape)


def is_symbolic_node(node: Node) -> bool:
    """Return whether a call reads or gives tensors or numbers that depend on symbols."""
    return any(_has_symbols(n.meta.get("val")) for n in (node, *node.all_input_nodes))


def torch_symbols(value: object) -> set[str]:
    """Return torch's names of the symbols that a value of a node depends on, a tensor or number or several."""
    if isinstance(value, (list, tuple)):
        return set[str]().union(*map(torch_symbols, cast("Sequence[object]", value)))
    if isinstance(value, torch.Tensor):
        return torch_symbols(list(value.shape))
    return {str(s) for s in expression_of(value).free_symbols} if isinstance(value, SYMBOLIC) else set()


def gives_number(node: Node) -> bool:
    """Return whether the value of a call is a number, which is spelled where it is read."""
    return isinstance(node.meta.get("val"), (*SYMBOLIC, int, float))


def same_shape(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors have one shape for all values of symbols; torch's ``==`` would take it for granted."""
    return len(a.shape) == len(b.shape) and all(same_extent(x, y) for x, y in zip(a.shape, b.shape, strict=True))


def same_extent(a: object, b: object) -> bool:
    """Return whether two sizes are one number for all values of symbols."""
    if isinstance(a, torch.SymInt) and isinstance(b, torch.SymInt):
        return bool(expression_of(a) == expression_of(b))
    return not isinstance(a, torch.SymInt) and not isinstance(b, torch.SymInt) and a == b


def _has_symbols(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_has_symbols, cast("Sequence[object]", value)))
    if isinstance(value, torch.Tensor):
        return any(known_extent(extent) is None for extent in value.shape)
    return isinstance(value, SYMBOLIC)


def _sizes_of(value: object) -> Iterator[tuple[Any, bool]]:
    """The symbolic numbers of an input, and whether they are extents."""
    if isinstance(value, torch.SymInt):
        yield value, False
    elif isinstance(value, torch.Tensor):
        for extent in value.shape:
            if isinstance(extent, torch.SymInt):
                yield extent, True


def _range(exported: ExportedProgram, symbol: Any, is_extent: bool) -> SymbolRange:
    found: Any = cast(Any, exported).range_constraints.get(symbol)
    least, most = (None, None) if found is None else (_bound(found.lower), _bound(found.upper))
    least = least or 0
    return SymbolRange(max(least, LEAST_EXTENT) if is_extent else least, most)


def _bound(number: Any) -> int | None:
    return int(number) if number.is_Integer else None
