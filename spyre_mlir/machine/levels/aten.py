"""Rules for the aten level: the semantics of an op are those of its table entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import numpy as np
from typing_extensions import override
from xdsl.dialects.builtin import TensorType, f32, i1, i64
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten import OP_CLASSES, AtenOp, CallOp
from spyre_mlir.dialects.aten_build import AtenBuild
from spyre_mlir.dialects.aten_value import AtenValue, typed
from spyre_mlir.dialects.tensors import TypedValue
from spyre_mlir.errors import ConstraintError, UnsupportedError
from spyre_mlir.machine.arrays import Array, HostArray, as_numbers, tensor_type, with_rules
from spyre_mlir.machine.eager_rounding import as_eager
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.levels.host_ops import HostExecutor, run_on_host
from spyre_mlir.ops.array_views import ArrayView
from spyre_mlir.ops.table import Family, OpEntry
from spyre_mlir.ops.value import Made, Value


def run_entry(entry: OpEntry, arguments: Mapping[str, object]) -> Array:
    """Return an entry's result for arrays and Python values by the names of its schema."""
    positional = [arguments[p.name] for p in entry.params if p.is_tensor]
    keywords = {p.name: arguments[p.name] for p in entry.params if not p.is_tensor}
    if entry.family is Family.VIEW:
        (base,) = positional
        return cast(ArrayView, entry.meaning(ArrayView(cast(Array, base)), **keywords)).array
    with np.errstate(all="ignore"):
        return np.asarray(entry.meaning(*positional, **keywords))


@dataclass(frozen=True)
class _Computed(TypedValue):
    """A value with its numbers."""

    values: Array


class _ArrayBuild(AtenBuild):
    """Computes what the parts of a composed operation give."""

    inside = True

    def __init__(self, *, is_wide: bool = False) -> None:
        """Starts a build; `is_wide` if nothing is rounded to float32, not even where eager does so inside."""
        self._is_wide = is_wide

    def rounded(self, value: Value) -> Value:
        """The numbers as float32 has them, if they are float32."""
        raw = typed(value)
        if self._is_wide or not isinstance(raw, _Computed):
            return value
        return AtenValue(self, _Computed(raw.type, as_eager(raw.values, str(raw.type.get_element_type()))))

    @override
    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> _Computed:
        """The numbers of one op."""
        values = run_entry(entry, {name: _numbers(value) for name, value in bound.items()})
        return _Computed(result, as_numbers(values, result.get_element_type()))

    def rewrite(self, entry: OpEntry, bound: Mapping[str, Any]) -> Made:
        """Takes apart only what has no meaning of its own."""
        return super().rewrite(entry, bound) if entry.composed else None


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(v) for v in cast(list[Any], value)]
    return value.values if isinstance(value, _Computed) else value


def run_composed(entry: OpEntry, arguments: Mapping[str, Any], *, is_wide: bool = False) -> list[Array]:
    """Return a composed entry's results, one array each; tensor arguments are `_Computed`."""
    made = _ArrayBuild(is_wide=is_wide).results(entry, arguments)
    return [cast(_Computed, v).values for v in made or ()]


def evaluate(entry: OpEntry, arguments: Mapping[str, Any]) -> list[Array]:
    """Return a composed entry's results for arrays: floats count as f32, integers as i64."""
    return run_composed(entry, {name: _with_type(value) for name, value in arguments.items()})


def _with_type(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_type(v) for v in cast(list[Any], value)]
    if not isinstance(value, np.ndarray):
        return value
    array = cast(Array, value)
    element = {"b": i1, "i": i64}.get(array.dtype.kind, f32)
    return _Computed(TensorType(element, array.shape), as_numbers(array, element))


# Sees the results of an op, and gives those that the run goes on with.
Settle = Callable[[AtenOp, "list[Array]"], "list[Array]"]


def _run_op(op: AtenOp, args: PythonValues, host: HostExecutor | None) -> PythonValues:
    entry = op.entry
    if entry is None or op.on_host or entry.family is Family.COLLECTIVE:
        return run_on_host(op, args, host)
    given = {value: cast(HostArray, arg) for value, arg in zip(op.operands, args, strict=True)}

    def bind(name: str, value: object) -> object:
        if isinstance(value, SSAValue):
            known = given[value].known(op, f"argument '{name}'")
            return _Computed(tensor_type(cast("SSAValue[Attribute]", value).type), known) if entry.composed else known
        return [bind(name, v) for v in cast(list[object], value)] if isinstance(value, list) else value

    arguments = {name: bind(name, value) for name, value in op.arguments().items()}
    try:
        composed = entry.composed
        values = run_composed(entry, arguments, is_wide=op.is_wide) if composed else [run_entry(entry, arguments)]
    except UnsupportedError:
        return run_on_host(op, args, host)  # made of no others, with these arguments
    except ConstraintError as error:
        raise fault(FaultKind.CONSTRAINT, error.message, op) from error
    types = [tensor_type(r.type) for r in op.outputs]
    for found, type_ in zip(values, types, strict=True):
        if found.shape != type_.get_shape():
            raise fault(FaultKind.WRONG_SHAPE, f"the result has shape {found.shape}, its type is {type_}", op)
    kinds = [t.get_element_type() for t in types]
    if not op.is_wide:
        values = [as_eager(v, str(kind)) for v, kind in zip(values, kinds, strict=True)]
    return tuple(HostArray.of(v, kind) for v, kind in zip(values, kinds, strict=True))


class _AtenFunctions(InterpreterFunctions):
    """One rule for every op class, with what a run has beside them."""

    def __init__(self, host: HostExecutor | None, settle: Settle | None) -> None:
        self._host, self._settle = host, settle

    def run(self, _interpreter: Interpreter, op: AtenOp, args: PythonValues) -> PythonValues:
        results = _run_op(op, args, self._host)
        if self._settle is None:
            return results
        values = self._settle(op, [cast(HostArray, r).values for r in results])
        kinds = [tensor_type(r.type).get_element_type() for r in op.outputs]
        return tuple(HostArray.of(v, kind) for v, kind in zip(values, kinds, strict=True))


@cache
def _with_rules() -> type[_AtenFunctions]:
    """The class with its rules; made once, as there are a thousand of them."""
    made = {f"run_{cls.name}": impl(cls)(_AtenFunctions.run) for cls in [*OP_CLASSES.values(), CallOp]}
    return with_rules(_AtenFunctions, made)


def aten_rules(host: HostExecutor | None = None, settle: Settle | None = None) -> InterpreterFunctions:
    """Return one rule for every op class.

    Args:
        host: runs what the table does not know.
        settle: may replace the results of any op.
    """
    return _with_rules()(host, settle)
