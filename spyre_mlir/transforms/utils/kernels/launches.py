"""The launch that a kernel runs in: host steps separate launches, and a call of a region is one of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel import KernelOp

Launches = Mapping[Operation, int]


def called_functions(module: ModuleOp) -> dict[str, func.FuncOp]:
    """Return the functions of a module that it calls, by name, in the order of their first calls."""
    known = functions_by_name(module)
    names = dict.fromkeys(op.callee.root_reference.data for op in ops_in(module) if isinstance(op, func.CallOp))
    return {name: known[name] for name in names if name in known}


def launch_ops(function: func.FuncOp) -> list[Operation]:
    """Return the ops of a function that run on the device: kernels and calls."""
    return [op for op in function.walk() if isinstance(op, KernelOp | func.CallOp)]


def launch_numbers(block: Block) -> dict[Operation, int]:
    """Return the launch of every kernel op of a block and its loops, and of every call.

    Kernels with neither a host step nor a call between share one.
    """
    numbers: dict[Operation, int] = {}
    number, used = 0, False
    for op in block.ops:
        if isinstance(op, KernelHostOp | ControlOp | func.CallOp):
            number, used = number + used, False
            if isinstance(op, func.CallOp):
                numbers[op] = number
                number += 1
            continue
        inside = [inner for inner in (op.walk() if op.regions else (op,)) if isinstance(inner, KernelOp)]
        numbers.update(dict.fromkeys(inside, number))
        used = used or bool(inside)
    return numbers


def one_launch(users: Iterable[Operation], numbers: Launches) -> bool:
    """Return whether all users of a buffer are kernels of one launch; only HBM survives between two launches."""
    found = [op for op in users if op in numbers]
    return len({numbers[op] for op in found}) <= 1 and not any(isinstance(op, func.CallOp) for op in found)
