"""Host steps: operators run by the host because the device cannot, within a device program.

``spyre.loop.host "aten.topk" because "…" (%x) {self = #aten.operands<1>, k = 2} : (tensor…) -> (tensor…, tensor…)``.
The arguments are spelled as `aten.call` spells them. A step without a reason only follows others: it reads what is on
the host, and only host steps use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, TensorType, UnitAttr
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

from spyre_mlir.dialects.aten_arguments import as_arguments, bound_arguments, said_arguments, verify_arguments
from spyre_mlir.dialects.directives import Arguments, Quoted
from spyre_mlir.dialects.ir.call_effects import CallEffects

# The reason of a step that reads numbers which could stay on the device, because that is quicker.
SAYS_WHERE = "it says where the next launch reads"


class HostOp(IRDLOperation):
    """Base of the host steps of two levels: syntax and arguments.

    Attributes:
        callee: the operator with its namespace.
        reason: why the host runs it; none if it only follows other steps.
        given: the arguments, as `aten.call` spells them.
        wide: the float32 results are not rounded.
    """

    callee = prop_def(StringAttr)
    reason = opt_prop_def(StringAttr)
    given = opt_prop_def(DictionaryAttr, prop_name="arguments")
    wide = opt_prop_def(UnitAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    traits = traits_def(CallEffects())
    custom_directives = (Arguments, Quoted)
    assembly_format = (
        "custom<Quoted>($callee) (`because` custom<Quoted>($reason)^ ` `)? `(` $inputs `)` "
        "custom<Arguments>($arguments) (`wide` $wide^)? attr-dict-with-keyword `:` functional-type($inputs, $outputs)"
    )

    def __init__(
        self,
        callee: str,
        reason: str | None,
        operands: Sequence[SSAValue],
        attributes: Mapping[str, Attribute],
        results: Sequence[Attribute],
        *,
        is_wide: bool = False,
    ) -> None:
        """Makes the step.

        Args:
            callee: the operator with its namespace, e.g. ``aten.topk``.
            reason: why the host runs it; None if it only follows other steps.
            operands: host tensors.
            attributes: arguments as `aten.call` spells them.
            results: types of the results.
            is_wide: whether float32 results are not rounded.
        """
        said = {
            "callee": StringAttr(callee),
            "reason": None if reason is None else StringAttr(reason),
            "arguments": as_arguments(attributes),
            "wide": UnitAttr() if is_wide else None,
        }
        super().__init__(operands=[list(operands)], properties=said, result_types=[list(results)])

    @property
    def overload(self) -> str:
        """The overload called, with its namespace unless that is aten."""
        return self.callee.data.removeprefix("aten.")

    @property
    def is_wide(self) -> bool:
        """Return whether a float32 result keeps more digits than float32 has."""
        return self.wide is not None

    def verify_(self) -> None:
        """Check that the arguments are properties."""
        verify_arguments(self, said_arguments(self.given))

    def arguments(self) -> dict[str, object]:
        """Every argument by name: SSA values, lists of them, or Python values."""
        return bound_arguments(said_arguments(self.given), list(self.operands))


@irdl_op_definition
class LoopHostOp(HostOp):
    """An operator that the host runs, at the loop level."""

    name = "spyre.loop.host"


@irdl_op_definition
class KernelHostOp(HostOp):
    """An operator that the host runs, between launches: operands and results are host tensors."""

    name = "spyre.kernel.host"
