"""A call of an operator on the host, as the machine passes it to an executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import TensorType, bf16, f16
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre.host import HostOp


@dataclass(frozen=True)
class OperandSlot:
    """The place of an operand in the arguments of a call."""

    number: int


@dataclass(frozen=True)
class HostCall:
    """One call: the operator, its arguments, and the types of its tensors.

    Attributes:
        overload: the ATen overload, ``.default`` dropped, with its namespace unless that is aten.
        arguments: values by name; a `OperandSlot` or a list of them where operands stand.
        operands: types of the operands.
        results: types of the results that are tensors.
        where: the operator and its place in the model.
        is_wide: whether exact numerics round nothing of it: because of its mark, or of half precision.
    """

    overload: str
    arguments: Mapping[str, object]
    operands: tuple[TensorType[Attribute], ...]
    results: tuple[TensorType[Attribute], ...]
    where: str
    is_wide: bool = False

    @staticmethod
    def of(op: AtenOp | HostOp) -> HostCall:
        """Return the call of an op."""
        numbers: dict[SSAValue, int] = {value: number for number, value in enumerate(op.operands)}

        def slot(value: object) -> object:
            if isinstance(value, SSAValue):
                return OperandSlot(numbers[value])
            return [slot(v) for v in cast("list[object]", value)] if isinstance(value, list) else value

        arguments = {name: slot(value) for name, value in op.arguments().items()}
        inputs = tuple(cast("TensorType[Attribute]", v.type) for v in op.operands)
        outputs = tuple(cast("TensorType[Attribute]", v.type) for v in op.results)
        where = placed(op.overload, op.location)
        halves = any(t.get_element_type() in (bf16, f16) for t in (*inputs, *outputs))
        return HostCall(op.overload, arguments, inputs, outputs, where, halves or op.is_wide)
