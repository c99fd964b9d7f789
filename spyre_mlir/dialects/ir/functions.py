"""Functions of a module: those with a body, those of a name, the one that a program begins with, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue


def functions(module: ModuleOp) -> list[FuncOp]:
    """Return the functions of a module that have a body."""
    return [op for op in module.body.block.ops if isinstance(op, FuncOp) and op.body.blocks]


def functions_by_name(module: ModuleOp) -> dict[str, FuncOp]:
    """Return all functions of a module, in order, by name."""
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


def first_function(module: ModuleOp) -> FuncOp:
    """Return the function that a program begins with; branches and bodies, which it calls, stand behind it.

    Raises:
        ValueError: the module has no function with a body.
    """
    found = functions(module)
    if not found:
        raise ValueError("a module without a function is no program")
    return found[0]


def returned_by(function: FuncOp) -> Sequence[SSAValue]:
    """Return the values that a function of one block returns."""
    return cast(ReturnOp, function.body.block.last_op).arguments


__all__ = ["first_function", "functions", "functions_by_name", "returned_by"]
