"""Address arithmetic of bundle functions: index values, which are plain integers here.

The stock rules (xDSL 0.74) give the same results; they take most of a small program's time to find types' widths.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.interpreter import Interpreter, PythonValues, impl, register_impls
from xdsl.interpreters.arith import ArithFunctions


@register_impls
class AddressFunctions(ArithFunctions):
    """Same as `ArithFunctions`, with shortcuts for index values below 2**63."""

    @impl(arith.ConstantOp)
    def run_constant(self, interpreter: Interpreter, op: arith.ConstantOp, args: PythonValues) -> PythonValues:
        """The number."""
        value = op.properties["value"]
        if isinstance(value, IntegerAttr):
            return (value.value.data,)
        return super().run_constant(interpreter, op, args).values

    @impl(arith.AddiOp)
    def run_addi(self, interpreter: Interpreter, op: arith.AddiOp, args: PythonValues) -> PythonValues:
        """The sum."""
        if isinstance(op.results[0].type, IndexType) and args[0] + args[1] < 1 << 63:
            return (args[0] + args[1],)
        return super().run_addi(interpreter, op, args).values

    @impl(arith.MuliOp)
    def run_muli(self, interpreter: Interpreter, op: arith.MuliOp, args: PythonValues) -> PythonValues:
        """The product."""
        if isinstance(op.results[0].type, IndexType) and abs(args[0] * args[1]) < 1 << 63:
            return (args[0] * args[1],)
        return super().run_muli(interpreter, op, args).values
