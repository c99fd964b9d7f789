"""Host steps: operators run by the host because the device cannot, within a device program.

``spyre.loop.host "aten.topk" because "…" (%x) {self = #aten.operands<1>, k = 2} : (tensor…) -> (tensor…, tensor…)``.
The arguments are spelled as `aten.call` spells them. A step without a reason only follows others: it reads what is on
the host, and only host steps use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure

from spyre_mlir.dialects.aten_arguments import bound_arguments
from spyre_mlir.dialects.directives import Quoted


class HostOp(IRDLOperation):
    """Base of the host steps of two levels: syntax and arguments."""

    callee = prop_def(StringAttr)
    reason = opt_prop_def(StringAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    traits = traits_def(Pure())
    custom_directives = (Quoted,)
    assembly_format = (
        "custom<Quoted>($callee) (`because` custom<Quoted>($reason)^ ` `)? `(` $inputs `)` attr-dict "
        "`:` functional-type($inputs, $outputs)"
    )

    def __init__(
        self,
        callee: str,
        reason: str | None,
        operands: Sequence[SSAValue],
        attributes: Mapping[str, Attribute],
        results: Sequence[Attribute],
    ) -> None:
        """Makes the step.

        Args:
            callee: the operator with its namespace, e.g. ``aten.topk``.
            reason: why the host runs it; None if it only follows other steps.
            operands: host tensors.
            attributes: arguments as `aten.call` spells them.
            results: types of the results.
        """
        said: dict[str, Attribute] = {"callee": StringAttr(callee)}
        said |= {} if reason is None else {"reason": StringAttr(reason)}
        super().__init__(
            operands=[list(operands)], properties=said, attributes=dict(attributes), result_types=[list(results)]
        )

    @property
    def overload(self) -> str:
        """The overload called, with its namespace unless that is aten."""
        return self.callee.data.removeprefix("aten.")

    def arguments(self) -> dict[str, object]:
        """Every argument by name: SSA values, lists of them, or Python values."""
        return bound_arguments(self.attributes, list(self.operands))


@irdl_op_definition
class LoopHostOp(HostOp):
    """An operator that the host runs, at the loop level."""

    name = "spyre.loop.host"


@irdl_op_definition
class KernelHostOp(HostOp):
    """An operator that the host runs, between launches: operands and results are host tensors."""

    name = "spyre.kernel.host"
