"""Arguments of functions whose memory their new values take."""

from __future__ import annotations

from collections.abc import Container, Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.argument_notes import overwritten
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.module_control import called_by_control
from spyre_mlir.transforms.utils.kernels.launches import called_functions

Pairs = set[tuple[int, int]]


def written_arguments(call: func.CallOp) -> Pairs:
    """Return which results of a region's function are the new values of which of its arguments."""
    function = call.parent_op()
    returned = function.get_return_op() if isinstance(function, func.FuncOp) else None
    if not isinstance(function, func.FuncOp) or returned is None:
        return set()
    pairs: Pairs = set()
    for argument, number in overwritten(function).items():
        new, old = returned.operands[number], function.body.block.args[argument]
        operands = [n for n, value in enumerate(call.arguments) if value is old]
        pairs |= {(operand, n) for n, result in enumerate(call.results) if result is new for operand in operands}
    return pairs


def overwritten_arguments(module: ModuleOp) -> Iterator[tuple[func.FuncOp, Pairs, bool]]:
    """Yield each function, the numbers of its arguments with those of the results that are their new values.

    Last comes whether the function is that of equal layers: its arguments are so if every call hands over one of the
    program that nothing else takes. Functions of control flow have none.
    """
    controlled, regions = called_by_control(module), called_functions(module)
    calls = [call for call in module.walk() if isinstance(call, func.CallOp)]
    for function in functions(module):
        name = function.sym_name.data
        if name in regions:
            own = [_renewed(call, controlled) for call in calls if call.callee.root_reference.data == name]
            yield function, own[0].intersection(*own[1:]), True
        else:
            yield function, set() if name in controlled else set(overwritten(function).items()), False


def _renewed(call: func.CallOp, controlled: Container[str]) -> Pairs:
    """Arguments of the program that only this call takes, with its results that are their new values."""
    caller = call.parent_op()
    if isinstance(caller, func.FuncOp) and caller.sym_name.data in controlled:
        return set()
    return {(old, new) for old, new in written_arguments(call) if call.arguments[old].uses.get_length() == 1}


__all__ = ["Pairs", "overwritten_arguments", "written_arguments"]
