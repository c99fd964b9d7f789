"""`spyre.kernel.view`: the sticks of a buffer as a tensor of another shape and layout.

Decision: docs/decisions/0131-a-copy-in-place-is-a-view.md
"""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.kernel_op import KernelOp, device_tensor


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The sticks of a buffer, from the first on, as a tensor of another shape and layout.

    ``%v = spyre.kernel.view %t : !t to !v``

    Constraints:
        C1: both are in HBM; what is in LX has a slice on each core.
        C2: both have one format, and one order of the elements in a stick.
        C3: the view has no more sticks than the buffer.
        C4: kernels read it, or tiles of it; none writes through it.
    """

    name = "spyre.kernel.view"

    source = operand_def(DeviceTensorType)
    result = result_def(DeviceTensorType)

    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, result: Attribute) -> None:
        """The sticks of `source` as a device tensor type."""
        super().__init__(operands=[source], result_types=[result])

    def verify_(self) -> None:
        """Checks C1 to C4."""
        whole, view = device_tensor(self.source), device_tensor(self.result)
        if (whole.space, view.space) != ("hbm", "hbm"):
            raise VerifyException(
                f"a view of {whole.space} in {view.space}: in LX each core has a slice of its own; try hbm for both"
            )
        if (whole.format, whole.arrangement) != (view.format, view.arrangement):
            raise VerifyException(
                f"sticks of {whole.format}, {whole.arrangement}, seen as {view.format}, {view.arrangement}; "
                "try a spyre.kernel.convert"
            )
        if view.sticks > whole.sticks:
            raise VerifyException(f"the view has {view.sticks} sticks, the buffer {whole.sticks}; try smaller extents")
        for use in self.result.uses:
            op = use.operation
            if isinstance(op, KernelOp) and use.index == len(op.inputs):
                raise VerifyException(f"{op.function_name} writes through a view; try to write the buffer itself")
            if not isinstance(op, KernelOp) and op.name != "spyre.kernel.tile":
                raise VerifyException(f"{op.name} cannot use a view; try the buffer behind it")


__all__ = ["ViewOp"]
