"""The text of a bundle function: every affine map gets an alias in front of the module, as in the published form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import StringIO
from typing import IO

from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from spyre_mlir.text.printer import SpyrePrinter


class AliasPrinter(SpyrePrinter):
    """A printer that writes an alias in place of some attributes.

    Args:
        stream: where the text goes.
        names: attribute to its name, `#` included.
    """

    def __init__(self, stream: IO[str], names: Mapping[Attribute, str]) -> None:
        super().__init__(stream)
        self._names = names

    def print_attribute(self, attribute: Attribute) -> None:
        """Print an attribute, or its alias."""
        name = self._names.get(attribute)
        if name is None:
            super().print_attribute(attribute)
        else:
            self.print_string(name)


def text_with_map_names(op: Operation) -> str:
    """Return a module's text; equal affine maps share an alias ``#map_0 = affine_map<(d0)[s0] -> (s0 + 65536*d0)>``."""
    names: dict[Attribute, str] = {}
    for inner in op.walk():
        if isinstance(inner, ApplyOp):
            names.setdefault(inner.map, f"#map_{len(names)}")
    stream = StringIO()
    for attribute, name in names.items():
        stream.write(f"{name} = {_map_text(attribute)}\n")
    AliasPrinter(stream, names).print_op(op)
    # xDSL leaves a blank between a map and its operands, the published form does not.
    return re.sub(r"(= affine\.apply #map_\d+) \(", r"\1(", stream.getvalue())


def _map_text(attribute: Attribute) -> str:
    """A map as bundles write it: factors in front, no parentheses around sums."""
    if not isinstance(attribute, AffineMapAttr) or not _is_sum(attribute.data.results[0]):
        return str(attribute)
    dims = ", ".join(f"d{n}" for n in range(attribute.data.num_dims))
    symbols = ", ".join(f"s{n}" for n in range(attribute.data.num_symbols))
    return f"affine_map<({dims})[{symbols}] -> ({_sum_text(attribute.data.results[0])})>"


def _is_sum(expr: AffineExpr) -> bool:
    """Return whether an expression is a sum of symbols, dimensions and multiples of dimensions."""
    if not isinstance(expr, AffineBinaryOpExpr):
        return True
    if expr.kind is AffineBinaryOpKind.Mul:
        return isinstance(expr.lhs, AffineDimExpr) and isinstance(expr.rhs, AffineConstantExpr)
    return expr.kind is AffineBinaryOpKind.Add and _is_sum(expr.lhs) and _is_sum(expr.rhs)


def _sum_text(expr: AffineExpr) -> str:
    if not isinstance(expr, AffineBinaryOpExpr):
        return str(expr)
    if expr.kind is AffineBinaryOpKind.Mul:
        return f"{expr.rhs}*{expr.lhs}"
    return f"{_sum_text(expr.lhs)} + {_sum_text(expr.rhs)}"


__all__ = ["text_with_map_names"]
