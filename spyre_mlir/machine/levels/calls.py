"""Calls of regions: what goes wrong inside is told of the layer that the call stands for."""

from __future__ import annotations

from dataclasses import replace

from typing_extensions import override
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.interpreter import (
    Interpreter,
    InterpreterFunctions,
    PythonValues,
    ReturnedValues,
    TerminatorValue,
    impl,
    impl_callable,
    impl_terminator,
    register_impls,
)
from xdsl.traits import SymbolTable

from spyre_mlir.dialects.places import Rebase
from spyre_mlir.errors import MachineFault, SpyreError


def places_at(call: CallOp) -> Rebase:
    """Return the places of the called function's ops at a call."""
    callee = SymbolTable.lookup_symbol(call, call.callee)
    return Rebase.of(callee.body.block.ops, call) if isinstance(callee, FuncOp) and callee.body.blocks else Rebase()


@register_impls
class FunctionRules(InterpreterFunctions):
    """Rules of functions; those of xDSL come with every dialect that it interprets, which takes a third of a second."""

    @impl_callable(FuncOp)
    def call_func(self, interpreter: Interpreter, op: FuncOp, args: PythonValues) -> PythonValues:
        """Run the body of a function."""
        return interpreter.run_ssacfg_region(op.body, args, op.sym_name.data)

    @impl(CallOp)
    def run_call(self, interpreter: Interpreter, op: CallOp, args: PythonValues) -> PythonValues:
        """Run the called function."""
        return interpreter.call_op(op.callee, args)

    @impl_terminator(ReturnOp)
    def run_return(
        self, _interpreter: Interpreter, _op: ReturnOp, args: PythonValues
    ) -> tuple[TerminatorValue, PythonValues]:
        """Return the results."""
        return ReturnedValues(args), ()


@register_impls
class CallFunctions(FunctionRules):
    """Same rules, where calls stand for layers."""

    @impl(CallOp)
    @override
    def run_call(self, interpreter: Interpreter, op: CallOp, args: PythonValues) -> PythonValues:
        try:
            return interpreter.call_op(op.callee, args)
        except SpyreError as error:
            places = places_at(op)
            error.where = None if error.where is None else places.text(error.where)
            if isinstance(error, MachineFault) and error.place.line is not None:
                error.place = replace(error.place, line=places.text(error.place.line))
            raise


__all__ = ["CallFunctions", "FunctionRules", "places_at"]
