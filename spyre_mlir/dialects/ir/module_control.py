"""Control flow of a whole module: which functions it calls, what loops carry into them, and programs with none."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from spyre_mlir.dialects.ir.control import CondOp, ControlOp
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.places import source_of
from spyre_mlir.errors import UnsupportedError


def called_by_control(module: ModuleOp) -> set[str]:
    """Return the names of the functions of a module that its control flow calls."""
    return {callee.root_reference.data for op in _control_flow(module) for callee in op.callees}


def carried_arguments(function: FuncOp) -> dict[SSAValue, int | None]:
    """Return the arguments of a function that loops carry, with the numbers of their next values among its results.

    The condition of a loop gives no next values: the number is None.
    """
    module, found = function.parent_op(), dict[SSAValue, "int | None"]()
    for op in _control_flow(module) if isinstance(module, ModuleOp) else ():
        if not isinstance(op, CondOp) and function.sym_name.data in {c.root_reference.data for c in op.callees}:
            is_body = op.callees[-1].root_reference.data == function.sym_name.data
            found |= {function.body.block.args[n]: n if is_body else None for n in range(op.carried_inputs)}
    return found


def has_control_flow(module: ModuleOp) -> bool:
    """Return whether the host decides anything in a program."""
    return next(_control_flow(module), None) is not None


def refuse_control_flow(module: ModuleOp, feature: str) -> None:
    """Check that the host decides nothing in a program.

    Args:
        module: the program, at any level.
        feature: that needs one order of ops, for the message.

    Raises:
        UnsupportedError: it decides something.
    """
    for op in _control_flow(module):
        raise UnsupportedError(
            f"{op.name}: {feature} is for programs in which the host decides nothing",
            where=str(source_of(op.location)) or None,
            hint="compile the branches and bodies as models of their own",
        )


def _control_flow(module: ModuleOp) -> Iterator[ControlOp]:
    ops = (op for function in functions(module) for op in function.walk())
    return (op for op in ops if isinstance(op, ControlOp))


__all__ = ["called_by_control", "carried_arguments", "has_control_flow", "refuse_control_flow"]
