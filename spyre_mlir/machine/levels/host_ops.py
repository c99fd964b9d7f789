"""Rule for host steps: passes the call to an executor, because the machine has no operators of its own.

Decision: docs/decisions/0054-the-machine-borrows-operators.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.host_call import HostCall
from spyre_mlir.dialects.spyre.host import HostOp, KernelHostOp, LoopHostOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.arrays import Array, HostArray, as_numbers
from spyre_mlir.machine.faults import FaultKind, fault, place_of


class HostExecutor(Protocol):
    """Executor of operators on the host."""

    def __call__(self, call: HostCall, operands: Sequence[Array], *, wide: bool) -> list[Array]:
        """The results of a call that are tensors.

        Args:
            call: what to run.
            operands: floats as float64 or float32, integers as int64, truth values as bool.
            wide: compute in double precision whatever the types say; else in the types of the call.

        Raises:
            MachineFault: the operator refused these values.
            UnsupportedError: there is no such operator.
        """
        ...


@register_impls
@dataclass
class HostStepFunctions(InterpreterFunctions):
    """Rules of host steps.

    Attributes:
        executor: runs them; None if there is nobody.
        narrow: whether values are in the types of the program; else all numbers are wide.
    """

    executor: HostExecutor | None = None
    narrow: bool = False

    @impl(LoopHostOp)
    def run_loop(self, _interpreter: Interpreter, op: LoopHostOp, args: PythonValues) -> PythonValues:
        """Run a step of the loop level."""
        return run_on_host(op, args, self.executor, narrow=self.narrow)

    @impl(KernelHostOp)
    def run_kernel(self, _interpreter: Interpreter, op: KernelHostOp, args: PythonValues) -> PythonValues:
        """Run a step between launches."""
        return run_on_host(op, args, self.executor, narrow=self.narrow)


def run_on_host(
    op: AtenOp | HostOp, args: PythonValues, executor: HostExecutor | None, *, narrow: bool = False
) -> PythonValues:
    """Return the results of one op by the executor.

    Raises:
        UnsupportedError: there is no executor, or it does not know the operator.
        MachineFault: an operand has elements without a value, or the operator refused the values.
    """
    if executor is None:
        raise UnsupportedError(
            f"this interpreter has no host to run {op.overload} on", where=place_of(op), hint="run the whole program"
        )
    call = HostCall.of(op)
    operands = [  # device memory has integers, and float32, in types that torch lacks
        as_numbers(cast(HostArray, arg).known(op, f"operand {number}"), type_.get_element_type(), narrow=narrow)
        for number, (arg, type_) in enumerate(zip(args, call.operands, strict=True))
    ]
    found = executor(call, operands, wide=not narrow and call.is_wide)
    if len(found) != len(call.results):
        raise fault(FaultKind.HOST_STEP, f"{op.overload} gave {len(found)} tensors, expected {len(call.results)}", op)
    for value, type_ in zip(found, call.results, strict=True):
        if value.shape != type_.get_shape():
            raise fault(
                FaultKind.WRONG_SHAPE, f"a result of {op.overload} has shape {value.shape}, its type is {type_}", op
            )
    return tuple(
        HostArray(as_numbers(value, type_.get_element_type(), narrow=narrow))
        for value, type_ in zip(found, call.results, strict=True)
    )
