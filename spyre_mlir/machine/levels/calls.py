"""Calls of regions: what goes wrong inside is told of the layer that the call stands for."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.func import CallOp, FuncOp
from xdsl.interpreter import Interpreter, PythonValues, impl, register_impls
from xdsl.interpreters.func import FuncFunctions
from xdsl.traits import SymbolTable

from spyre_mlir.dialects.places import Rebase
from spyre_mlir.errors import MachineFault, SpyreError


def places_at(call: CallOp) -> Rebase:
    """Return the places of the called function's ops at a call."""
    callee = SymbolTable.lookup_symbol(call, call.callee)
    return Rebase.of(callee.body.block.ops, call) if isinstance(callee, FuncOp) and callee.body.blocks else Rebase()


@register_impls
class CallFunctions(FuncFunctions):
    """Rules of functions and their calls."""

    @impl(CallOp)
    def run_call(self, interpreter: Interpreter, op: CallOp, args: PythonValues) -> PythonValues:
        """Run the called function."""
        try:
            return interpreter.call_op(op.callee, args)
        except SpyreError as error:
            places = places_at(op)
            error.where = None if error.where is None else places.text(error.where)
            if isinstance(error, MachineFault) and error.place.line is not None:
                error.place = replace(error.place, line=places.text(error.place.line))
            raise


__all__ = ["CallFunctions", "places_at"]
