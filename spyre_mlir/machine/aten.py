"""The machine's rules for the aten level: every op means what its table entry says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn, cast

import numpy as np
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import OP_CLASSES, AtenOp, CallOp
from spyre_mlir.errors import ConstraintError, UnsupportedError
from spyre_mlir.machine.arrays import Array, HostArray, fault, place_of, rules, tensor_type
from spyre_mlir.ops.array_view import ArrayView
from spyre_mlir.ops.table import Family, OpEntry


def run_entry(entry: OpEntry, arguments: Mapping[str, object]) -> Array:
    """What an entry gives for arrays and Python values by the names of its schema."""
    positional = [arguments[p.name] for p in entry.params if p.is_tensor]
    keywords = {p.name: arguments[p.name] for p in entry.params if not p.is_tensor}
    if entry.family is Family.VIEW:
        (base,) = positional
        return cast(ArrayView, entry.meaning(ArrayView(cast(Array, base)), **keywords)).array
    with np.errstate(all="ignore"):
        return np.asarray(entry.meaning(*positional, **keywords))


def _run_op(functions: InterpreterFunctions, interpreter: Interpreter, op: AtenOp, args: PythonValues) -> PythonValues:
    if op.ENTRY is None:
        _run_call(functions, interpreter, op, args)
    given = {value: cast(HostArray, arg) for value, arg in zip(op.operands, args, strict=True)}

    def bind(name: str, value: object) -> object:
        if isinstance(value, SSAValue):
            return given[value].known(op, f"argument '{name}'")
        return [bind(name, v) for v in cast(list[object], value)] if isinstance(value, list) else value

    try:
        values = run_entry(op.ENTRY, {name: bind(name, value) for name, value in op.arguments().items()})
    except ConstraintError as error:
        raise fault("constraint", error.message, op) from error
    type_ = tensor_type(op.outputs[0].type)
    if values.shape != type_.get_shape():
        raise fault("wrong-shape", f"the result has shape {values.shape}, its type is {type_}", op)
    return (HostArray.of(values, type_.get_element_type()),)


def _run_call(functions: InterpreterFunctions, interpreter: Interpreter, op: AtenOp, args: PythonValues) -> NoReturn:
    raise UnsupportedError(
        f"the machine cannot run {op.overload}: the op table has no entry for it",
        where=place_of(op),
        hint="decompose it before export, or declare it in the op table",
    )


def aten_rules() -> InterpreterFunctions:
    """One rule for every op class of the table, and one that refuses `aten.call`."""
    made: dict[str, object] = {f"run_{cls.name}": impl(cls)(_run_op) for cls in OP_CLASSES.values()}
    return rules("AtenFunctions", {**made, "run_call": impl(CallOp)(_run_call)})
