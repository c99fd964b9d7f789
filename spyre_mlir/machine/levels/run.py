"""Execution of a module of the aten, loop or kernel level on numpy arrays, in exact numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter
from xdsl.ir import Attribute

from spyre_mlir.dialects.argument_notes import argument_name
from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.errors import InputError, SpyreError
from spyre_mlir.machine.arrays import Array, HostArray, as_numbers, numpy_type
from spyre_mlir.machine.faults import FaultKind
from spyre_mlir.machine.levels.aten import Settle, aten_rules
from spyre_mlir.machine.levels.calls import CallFunctions
from spyre_mlir.machine.levels.control_flow import ControlFunctions
from spyre_mlir.machine.levels.for_loops import ForFunctions, TileFunctions
from spyre_mlir.machine.levels.host_blocks import BlockFunctions
from spyre_mlir.machine.levels.host_ops import HostExecutor, HostStepFunctions
from spyre_mlir.machine.levels.kernel import KernelFunctions
from spyre_mlir.machine.levels.loop import LoopFunctions, scalar_rules
from spyre_mlir.machine.levels.named_places import check_places, check_zeros


def run_function(
    module: ModuleOp,
    inputs: Sequence[Array],
    function: str = "main",
    *,
    listeners: Sequence[Interpreter.Listener] = (),
    host: HostExecutor | None = None,
    settle: Settle | None = None,
) -> list[Array]:
    """Run one function; return float64, int64 and bool arrays, whatever the widths in the types.

    Args:
        module: a verified module; its levels may be mixed.
        inputs: one array per argument.
        function: which function.
        listeners: see every op before and after it runs.
        host: runs host steps.
        settle: may replace the results of an op of the aten level.

    Raises:
        InputError: no such function, or the arrays do not fit its arguments.
        MachineFault: the program misbehaves, for example reads an element that nothing wrote.
        UnsupportedError: an operation the machine has no rule for.
    """
    target = find_function(module, function)
    arguments = bind_inputs(target, inputs)
    interpreter = make_interpreter(module, listeners, host, settle)
    try:
        results = cast(tuple[HostArray, ...], interpreter.call_op(target, tuple(arguments)))
        return [r.known(target, f"result {n}", FaultKind.UNWRITTEN_OUTPUT) for n, r in enumerate(results)]
    except SpyreError as error:
        # xDSL notes the whole module on every error, once per region it was nested in; ours say where they are.
        error.__notes__ = []
        raise


def make_interpreter(
    module: ModuleOp,
    listeners: Sequence[Interpreter.Listener] = (),
    host: HostExecutor | None = None,
    settle: Settle | None = None,
) -> Interpreter:
    """Make an interpreter with the rules of the three upper levels."""
    interpreter = Interpreter(module, listeners=tuple(listeners))
    upper = (CallFunctions(), aten_rules(host, settle), LoopFunctions(), scalar_rules(), HostStepFunctions(host))
    for functions in (*upper, ControlFunctions(), KernelFunctions(), ForFunctions(), TileFunctions(), BlockFunctions()):
        interpreter.register_implementations(functions)
    return interpreter


def find_function(module: ModuleOp, name: str) -> FuncOp:
    """The function called `name`.

    Raises:
        InputError: the module has none.
    """
    known = functions_by_name(module)  # beside hundreds of files with symbols, too
    if name not in known:
        raise InputError(f"no function '{name}' in the module", hint=f"its functions are {', '.join(known) or 'none'}")
    return known[name]


def bind_inputs(function: FuncOp, inputs: Sequence[Array]) -> list[HostArray]:
    """Convert arrays to the function's arguments; floats become float64.

    Raises:
        InputError: their number, a shape or a kind of number is not what the function takes, or an index names nothing.
    """
    check_count(function, len(inputs))
    bound = [bind_input(function, number, x) for number, x in enumerate(inputs)]
    check_places(function, lambda number: bound[number].values)
    return bound


def check_count(function: FuncOp, given: int) -> None:
    """Raise InputError unless the number of values equals the number of arguments."""
    count = len(function.function_type.inputs.data)
    if given != count:
        names = ", ".join(argument_name(function, n) for n in range(count))
        raise InputError(
            f"{given} arrays for {count} arguments",
            where=f"@{function.sym_name.data}",
            hint=f"pass {names or 'none'}",
        )


def bind_input(function: FuncOp, number: int, array: Array, *, narrow: bool = False) -> HostArray:
    """Convert one array to an argument of the function; see `bind_inputs`."""
    kind, name = function.function_type.inputs.data[number], argument_name(function, number)
    bound = _bind(np.asarray(array), kind, name, f"@{function.sym_name.data}", narrow)
    check_zeros(function, number, name, bound.values)
    return bound


def _bind(array: Array, type_: Attribute, name: str, where: str, narrow: bool) -> HostArray:
    if not isinstance(type_, TensorType):
        raise InputError(f"{name} is {type_}, and only host tensors can be passed", where=where)
    tensor = cast(TensorType[Attribute], type_)
    if array.shape != tensor.get_shape():
        hint = f"give {name} an array of that shape: a program has the sizes that it was made for"
        raise InputError(f"{name} takes shape {tensor.get_shape()}, got {array.shape}", where=where, hint=hint)
    wanted = numpy_type(tensor.get_element_type())
    kinds = "b" if wanted is np.bool_ else "iub" if wanted is np.int64 else None
    if array.dtype.kind == "c" or (kinds is not None and array.dtype.kind not in kinds):
        raise InputError(f"{name} takes {tensor.get_element_type()} numbers, got {array.dtype}", where=where)
    return HostArray(as_numbers(array, tensor.get_element_type(), narrow=narrow))
