"""Functions of a module: those that have a body, those of a name, and the one that a program begins with."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp


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


__all__ = ["first_function", "functions", "functions_by_name"]
