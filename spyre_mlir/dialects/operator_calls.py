"""Calls of operators that the op table lacks: the names of their arguments and the types of their results.

Only torch knows them, and this room does not load torch: the front end provides the answer once it is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten import AtenOp, make_op
from spyre_mlir.dialects.aten_arguments import spell_arguments
from spyre_mlir.dialects.aten_value import AtenValue
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.value import Caller, Value


@dataclass(frozen=True)
class OperatorCall:
    """A call by the schema of its operator.

    Attributes:
        arguments: values by name.
        results: types of the results.
    """

    arguments: Mapping[str, object]
    results: Sequence[TensorType[Attribute]]


class Schemas(Protocol):
    """Source of the schemas of operators."""

    def __call__(self, overload: str, positional: Sequence[object], named: Mapping[str, object]) -> OperatorCall:
        """Return a call by its schema; SSA values stand for tensors.

        Raises:
            LookupError: there is no such operator.
            TypeError: it has no such arguments.
            UnsupportedError: it refuses their values.
        """
        ...


_PROVIDED: list[Schemas] = []


def provide(schemas: Schemas) -> None:
    """Let calls be bound by these schemas from now on."""
    _PROVIDED[:] = [schemas]


def op_by_schema(overload: str, positional: Sequence[object], named: Mapping[str, object]) -> AtenOp:
    """Return a call of an operator that the op table lacks.

    Args:
        overload: the operator.
        positional: arguments as the operator takes them; SSA values stand for tensors.
        named: the others.

    Raises:
        LookupError: there is no such operator.
        TypeError: it has no such arguments.
        UnsupportedError: it refuses their values, or torch is not loaded.
    """
    if not _PROVIDED:
        raise UnsupportedError(
            f"the op table lacks {overload}, and torch is not loaded to say what it gives",
            hint="compile from Python, where torch is",
        )
    call = _PROVIDED[0](overload, positional, named)
    operands, attributes = spell_arguments(call.arguments, SSAValue)
    return make_op(overload, operands, attributes, call.results)


def results_of(build: Caller, op: AtenOp) -> Value | tuple[Value, ...]:
    """Return the results of an op as values of a build: one value, or several."""
    values = tuple(AtenValue(build, result) for result in op.results)
    return values[0] if len(values) == 1 else values
