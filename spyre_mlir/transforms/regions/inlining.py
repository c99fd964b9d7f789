"""Inlining: calls of regions become the ops of their functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.places import Rebase
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.utils.rebuild import describe_location


def inline_all(module: ModuleOp) -> None:
    """Replace every call by the ops of the function it calls, and drop the private functions that no call is left of.

    Raises:
        LoweringError: functions call each other in a circle.
    """
    called: set[str] = set()
    for function in functions(module):
        _inline(function, called, ())
    for function in functions(module):
        if function.sym_name.data in called and _is_private(function):
            Rewriter.erase_op(function)


def inline_single_calls(module: ModuleOp) -> None:
    """Replace calls of private functions that are called once by their ops, and drop these functions.

    Such ops keep their places in the model: no other call has them.
    """
    calls = [op for op in module.walk() if isinstance(op, func.CallOp)]
    names = Counter(call.callee.root_reference.data for call in calls)
    for call in calls:
        name = call.callee.root_reference.data
        callee = SymbolTable.lookup_symbol(call, name)
        if names[name] == 1 and isinstance(callee, func.FuncOp) and callee.body.blocks and _is_private(callee):
            _replace(call, callee, lambda location: location)
            Rewriter.erase_op(callee)


def _is_private(function: func.FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def _inline(function: func.FuncOp, called: set[str], open_: tuple[str, ...]) -> None:
    block = function.body.block
    for op in list(block.ops):
        if not isinstance(op, func.CallOp):
            continue
        name = op.callee.root_reference.data
        callee = SymbolTable.lookup_symbol(op, name)
        if not isinstance(callee, func.FuncOp) or not callee.body.blocks:
            continue
        if name in open_:
            raise LoweringError(
                f"@{name} calls itself", where=describe_location(op), hint="write the repetition out, call by call"
            )
        _inline(callee, called, (*open_, name))
        called.add(name)
        _replace(op, callee, Rebase.of(callee.body.block.ops, op, callee).location)


def _replace(call: func.CallOp, callee: func.FuncOp, place: Callable[[LocationAttr], LocationAttr]) -> None:
    values: dict[SSAValue, SSAValue] = dict(zip(callee.body.block.args, call.arguments, strict=True))
    home = call.parent_block()
    for op in callee.body.block.ops:
        if isinstance(op, func.ReturnOp):
            for old, new in zip(call.results, op.operands, strict=True):
                old.replace_all_uses_with(values.get(new, new))
        elif home is not None:
            copy = op.clone(value_mapper=values)
            for inner in copy.walk():
                inner.location = place(inner.location)
            home.insert_op_before(copy, call)
    Rewriter.erase_op(call)
