"""`spyre.kernel.gather`: rows of a table that a tensor of indices names, which are known at run time only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from types import MappingProxyType

from typing_extensions import override
from xdsl.dialects.builtin import I64, IntegerAttr
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel_facts import undivided_fact
from spyre_mlir.dialects.spyre.kernel_op import ATTRIBUTES, KERNEL_FORMAT, KernelOp
from spyre_mlir.hw.sticks import StickError
from spyre_mlir.ops.hardware_functions import COPY


@irdl_op_definition
class GatherOp(KernelOp):
    """Copies the rows of a table that index tensor `ins[0]` names; the table is `ins[1]`.

    Constraints:
        C1: two inputs; the indexed dimension is the outermost of the table's layout, but for those of which it reads
            one entry.
        C2: indices and table are in HBM.
        C3: loops that the table's map names are not divided: every core starts at the same address of the table.
    """

    name = "spyre.kernel.gather"

    axis = prop_def(IntegerAttr[I64])

    assembly_format = f"`axis` $axis {KERNEL_FORMAT} {ATTRIBUTES}"

    @property
    def function_name(self) -> str:
        """A gather is an `identity` with an index tensor."""
        return COPY

    @undivided_fact
    def lane_dims(self) -> Mapping[str, int]:
        """Return no dimension: the index tensor does not round up the loops that walk it."""
        (_, table, output), tensors = self.accesses(), self.tensors
        pairs = ((table, tensors[1]), (output, tensors[2]))
        return MappingProxyType({a.lane: t.block for a, t in pairs if a.lane is not None})

    @undivided_fact
    def divisible_pieces(self) -> Mapping[str, int]:
        """Return pieces of whole sticks of indices (torch-spyre work division; likely)."""
        pieces, walked = self.lane_dims(), self.accesses()[0].lane
        return pieces if walked is None else MappingProxyType({**pieces, walked: self.tensors[0].lanes})

    def undivided(self) -> Set[str]:
        """Return the loops along the rows: cores share one table start address (torch-spyre work division; certain)."""
        return self.maps.data[1].names

    @override
    def has_slices(self, number: int) -> bool:
        """Return whether it is the result: the rows that a core takes from the table are known at run time only."""
        return number == len(self.inputs)

    @override
    def core_view(self, number: int, tensor: DeviceTensor | None = None) -> CoreView:
        """Return the part of the result that each core writes.

        Raises:
            StickError: it is asked for an input.
        """
        if not self.has_slices(number):
            raise StickError("a gather takes rows that are known at run time only, its inputs stay in HBM")
        return super().core_view(number, tensor)

    @override
    def verify_(self) -> None:
        """Check that there are two inputs before any other check."""
        if len(self.inputs) != 2:
            raise VerifyException(f"a gather has indices and a table, got {len(self.inputs)} inputs")
        super().verify_()

    def verify_lanes(self, lanes: Sequence[str | None]) -> None:
        """Checks C1."""
        if lanes[1] != lanes[2]:
            raise VerifyException("a gather has indices, a table, and a result with the table's lanes")
        table, axis = self.tensors[1], self.axis.value.data
        read = self.maps.data[1].data
        entries = {d for d, e in enumerate(read) if d not in (axis, table.layout.stick) and not e.terms}
        several = (d for d in table.layout.order if d == axis or table.layout.count(d, table.lanes) > 1)
        outermost = next((d for d in several if d not in entries), None)
        if outermost != axis:
            raise VerifyException(
                f"the indexed dimension {axis} must be outermost in the table's layout, there it is {outermost}"
            )
