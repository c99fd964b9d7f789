"""Address arithmetic of bundle functions: index values, which are plain integers here.

xDSL's rules (0.74) give the same results, and have those of all other operations of `arith`. They take most of a small
program's time to find the widths of types, and a third of a second to load.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import Attribute


@register_impls
class AddressFunctions(InterpreterFunctions):
    """Rules of constants, sums and products."""

    @impl(arith.ConstantOp)
    def run_constant(self, _interpreter: Interpreter, op: arith.ConstantOp, _args: PythonValues) -> PythonValues:
        """The number."""
        return (cast("IntegerAttr | FloatAttr", op.properties["value"]).value.data,)

    @impl(arith.AddiOp)
    def run_addi(self, interpreter: Interpreter, op: arith.AddiOp, args: PythonValues) -> PythonValues:
        """The sum."""
        return (_wrapped(args[0] + args[1], op.results[0].type, interpreter),)

    @impl(arith.MuliOp)
    def run_muli(self, interpreter: Interpreter, op: arith.MuliOp, args: PythonValues) -> PythonValues:
        """The product."""
        return (_wrapped(args[0] * args[1], op.results[0].type, interpreter),)


def _wrapped(number: int, type_: Attribute, interpreter: Interpreter) -> int:
    """The number as a type holds it, signed."""
    width = interpreter.index_bitwidth if isinstance(type_, IndexType) else cast(IntegerType, type_).width.data
    half = 1 << (width - 1)
    return number if -half <= number < half else (number + half) % (2 * half) - half


_OURS = (arith.ConstantOp, arith.AddiOp, arith.MuliOp)


def address_rules(function: FuncOp) -> InterpreterFunctions:
    """Return rules for the arithmetic of a bundle function: those of xDSL if it has more than sums and products."""
    if all(isinstance(op, _OURS) for op in function.walk() if op.name.startswith("arith.")):
        return AddressFunctions()
    from xdsl.interpreters.arith import ArithFunctions

    return ArithFunctions()


__all__ = ["AddressFunctions", "address_rules"]
