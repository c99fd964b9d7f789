"""`spyre.kernel.*`: one hardware function per op, on device tensors, with its work divided over cores.

``spyre.kernel.compute "add" [m = 128 over 32, n = 256] ins(%a[m, n] : …, %b[n] : …) outs(%c[m, n] : …)``.
Device tensors are buffers: an op writes into `outs`. Transfers between host and device are ops as well,
so the program is whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from typing_extensions import override
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.directives import Quoted
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel_facts import fact
from spyre_mlir.dialects.spyre.kernel_memory import (
    AllocOp,
    ArgumentOp,
    FreeOp,
    FromDeviceOp,
    KernelConstantOp,
    LaunchOp,
    ToDeviceOp,
    segment_of,
    shared_view,
)
from spyre_mlir.dialects.spyre.kernel_op import ATTRIBUTES, KERNEL_FORMAT, KernelOp, device_tensor
from spyre_mlir.hw.arrangement import PACKED, STANDARD, WIDENED
from spyre_mlir.hw.formats import DL16, FP8, FP32, INT32
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.hardware_functions import function_of
from spyre_mlir.ops.table import Family, OpEntry

# By formats: the hardware function, and the orders of elements it takes sticks from and to.
CONVERSIONS = {
    (DL16.name, FP32.name): ("dl16tofp32", (STANDARD, WIDENED)),
    (DL16.name, FP8.name): ("qfp8ch", (STANDARD, PACKED)),
    (FP8.name, DL16.name): ("fp8todl16", (PACKED, STANDARD)),
    (FP32.name, DL16.name): ("fp32todl16", (WIDENED, STANDARD)),
    (INT32.name, FP32.name): ("int32tofp32", (WIDENED, WIDENED)),
    (FP32.name, INT32.name): ("fp32toint32", (WIDENED, WIDENED)),
}
RESTICKIFY = {"hbm": "ReStickifyOpHBM", "lx": "ReStickifyOpLx"}


@irdl_op_definition
class ComputeOp(KernelOp):
    """A hardware function of the op table, on all cores.

    Constraints:
        C1: every operand is a walk through sticks: nested strides, nothing outside the buffer.
        C2: pointwise: operands and result share the dimension in the lanes, or are sparse; a reduction
            keeps it or, if it is reduced, has a sparse result; a product has the summed dimension in the
            lanes of the first operand and the generated one in those of the second and the result.
        C3: splits divide whole sticks, and their product is at most the number of cores.
        C4: operands with a dimension in the lanes have their elements in one order; a reduction of sticks in
            another order than `standard` runs over whole sticks, a product has none.
        C5: `op_info`, if there is one, holds numbers for constants of the function.

    Attributes:
        element: the element type that the result has in the model, where exact numerics must know it: they round
            float32 as eager does.
        integers: the result is integers in a format of floats; the machine watches their size.
        op_info: constants of the function, by their names in its file.
        narrowed: it computes in DL16 although the program keeps its float32; the function has no other form.
        rounded: it reads numbers made from integers, which may be large, in DL16; the function has no other form.
    """

    name = "spyre.kernel.compute"

    function = prop_def(StringAttr)
    element = opt_prop_def()
    integers = opt_prop_def(UnitAttr)
    op_info = opt_prop_def(DictionaryAttr)
    narrowed = opt_prop_def(UnitAttr)
    rounded = opt_prop_def(UnitAttr)

    custom_directives = (Quoted, *KernelOp.custom_directives)
    assembly_format = (
        f"custom<Quoted>($function) {KERNEL_FORMAT} (`element` $element^)? (`integers` $integers^)? "
        f"(`op_info` $op_info^)? (`narrowed` $narrowed^)? (`rounded` $rounded^)? {ATTRIBUTES}"
    )

    @property
    def function_name(self) -> str:
        """The hardware function."""
        return self.function.data

    @property
    def entry(self) -> OpEntry:
        """The op-table entry of the hardware function.

        Raises:
            VerifyException: the table has none.
        """
        entry = ATEN.by_opfunc(self.function.data)
        if entry is None:
            raise VerifyException(f"no op-table entry has the hardware function '{self.function.data}'")
        return entry

    @override
    def _identity(self, properties: Mapping[str, Attribute], operands: Sequence[Hashable]) -> Hashable:
        """Of every kernel, plus the family, which a plugin may have changed."""
        entry = ATEN.by_opfunc(self.function.data)
        return (super()._identity(properties, operands), None if entry is None else entry.family)

    @property
    def constants(self) -> dict[str, float]:
        """Constants of the function, in the order of its file.

        Raises:
            VerifyException: they are no numbers, or not those of the function.
        """
        said = DictionaryAttr({}) if self.op_info is None else self.op_info
        numbers = {name: a.value.data for name, a in said.data.items() if isinstance(a, FloatAttr)}
        function = function_of(self.function.data)
        order = list(said.data) if function is None else function.constants
        if set(numbers) != set(said.data) or not set(numbers) <= set(order):
            raise VerifyException(f"op_info of {self.function.data} is {said}, expected numbers {', '.join(order)}")
        return {name: numbers[name] for name in order if name in numbers}

    @property
    def rounds_to(self) -> Attribute | None:
        """The element type to which exact numerics round the result; None if they do not."""
        return self.element

    @property
    def is_watched(self) -> bool:
        """Return whether the machine watches the size of the integers in the result."""
        return self.integers is not None

    @property
    def numbers(self) -> dict[str, float]:
        """The non-tensor arguments of the function, by their names in the op table."""
        return self.entry.numbers(self.constants)

    @override
    def is_elementwise(self, number: int) -> bool:
        """Return whether the function is elementwise, in the format of input `number`."""
        elementwise = self.entry.family in (Family.POINTWISE, Family.MOVEMENT)
        return elementwise and self.tensors[number].format == self.tensors[-1].format

    @fact
    def may_take_over(self, number: int, tensor: DeviceTensor | None = None) -> bool:
        """Return whether the function is elementwise, and both operands place every element alike."""
        if not self.is_elementwise(number):
            return False
        out = len(self.inputs)
        same = self.local_walk(number, tensor) == self.local_walk(out)
        return same and self.core_view(number, tensor) == self.core_view(out)

    @property
    def is_product(self) -> bool:
        """Return whether the function is a contraction."""
        return self.entry.family is Family.CONTRACTION

    def verify_lanes(self, lanes: Sequence[str | None]) -> None:
        """Checks C2, C4 and C5."""
        self._verify_order(lanes)
        self.constants  # noqa: B018 # raises for constants that the function lacks
        match self.entry.family:
            case Family.CONTRACTION:
                self._verify_product(lanes)
            case Family.REDUCTION:
                kept = lanes[0] if lanes[0] in self.maps.data[-1].names else None
                if lanes[-1] != kept:
                    raise VerifyException(f"the result has {_lane_text(lanes[-1])}, expected {_lane_text(kept)}")
            case _:
                for number, lane in enumerate(lanes[:-1]):
                    if lane not in (lanes[-1], None):
                        raise VerifyException(
                            f"input {number} has {_lane_text(lane)}, the result {_lane_text(lanes[-1])}; "
                            "try a restickify of this input"
                        )
                    self._verify_broadcast(number, lane, lanes[-1])

    def _verify_order(self, lanes: Sequence[str | None]) -> None:
        orders = {t.arrangement for t, lane in zip(self.tensors, lanes, strict=True) if lane is not None}
        if orders <= {STANDARD}:
            return
        if len(orders) > 1 or self.is_product:
            raise VerifyException(
                f"{self.function_name} of sticks whose elements are in the orders {', '.join(sorted(orders))}; "
                "try a spyre.kernel.convert of one of them"
            )
        folded = lanes[0] if lanes[0] is not None and lanes[0] not in self.maps.data[-1].names else None
        if folded is not None and self.space.extents[folded] != self.padded_extents()[folded]:
            raise VerifyException(
                f"{self.function_name} folds {folded} over {self.space.extents[folded]} elements, which are not the "
                f"first of their sticks in the order {orders.pop()}; try whole sticks, with their padding filled"
            )

    def _verify_broadcast(self, number: int, lane: str | None, of_result: str | None) -> None:
        if lane is None and of_result is not None and of_result in self.maps.data[number].names:
            raise VerifyException(
                f"input {number} is sparse but walks {of_result}, which is in the lanes of the result"
            )

    def _verify_product(self, lanes: Sequence[str | None]) -> None:
        summed = [d.name for d in self.space.data if d.name not in self.maps.data[-1].names]
        if len(summed) != 1:
            raise VerifyException(f"a product sums over one dimension, here {', '.join(summed) or 'none'}")
        if lanes[0] != summed[0]:
            raise VerifyException(f"the first operand has {_lane_text(lanes[0])}, expected {summed[0]} in the lanes")
        if lanes[1] != lanes[2]:
            raise VerifyException(f"the second operand has {_lane_text(lanes[1])}, the result {_lane_text(lanes[2])}")
        first, second = (one.names for one in self.maps.data[:2])
        if summed[0] not in second:
            raise VerifyException(f"a product sums over {summed[0]}, which is not in the map of the second operand")
        if missing := [d.name for d in self.space.data if d.name not in first | second]:
            raise VerifyException(
                f"the result of a product has {', '.join(missing)}, which is in the map of neither operand; try a copy"
            )


def _lane_text(lane: str | None) -> str:
    return "no dimension in the lanes" if lane is None else f"{lane} in the lanes"


@irdl_op_definition
class RestickifyOp(KernelOp):
    """Copies a tensor to a layout with another stick dimension; both extents are whole sticks.

    Constraints:
        C1: one input; input and output have different dimensions in their lanes.
        C2: input and output are in the same memory.
    """

    name = "spyre.kernel.restickify"

    @property
    def function_name(self) -> str:
        """The hardware function: there is one per memory."""
        return RESTICKIFY[device_tensor(self.output).space]

    def verify_lanes(self, lanes: Sequence[str | None]) -> None:
        """Checks C1."""
        if len(lanes) != 2 or None in lanes or lanes[0] == lanes[1]:
            raise VerifyException(
                f"a restickify moves one dimension out of the lanes and another in, "
                f"got {' to '.join(_lane_text(lane) for lane in lanes)}"
            )
        spaces = [t.space for t in self.tensors]
        if len(set(spaces)) > 1:
            raise VerifyException(f"a restickify stays inside one memory, here {' to '.join(spaces)}; try hbm for both")


@irdl_op_definition
class ConvertOp(KernelOp):
    """Copies a tensor to another format; elements along the stick change their order with their width.

    Constraints:
        C1: one input; the hardware converts between the two formats.
        C2: input and output have the same dimension in their lanes, in the order that the change of width leaves;
            or both are sparse.

    Attributes:
        element: the element type to which the model converts integers here, where exact numerics must know it.
    """

    name = "spyre.kernel.convert"

    element = opt_prop_def()

    assembly_format = f"{KERNEL_FORMAT} (`element` $element^)? {ATTRIBUTES}"

    @property
    def rounds_to(self) -> Attribute | None:
        """The element type to which exact numerics round the result; None if they do not."""
        return self.element

    @property
    def function_name(self) -> str:
        """The hardware function: there is one per pair of formats.

        Raises:
            VerifyException: the hardware has no conversion between the formats.
        """
        source, result = self.tensors[0].format, self.tensors[-1].format
        if (source, result) not in CONVERSIONS:
            raise VerifyException(f"the hardware has no conversion from {source} to {result}")
        return CONVERSIONS[source, result][0]

    @override
    def may_take_over(self, number: int, tensor: DeviceTensor | None = None) -> bool:
        """Return False: the widths differ."""
        return False

    def verify_lanes(self, lanes: Sequence[str | None]) -> None:
        """Checks C1 and C2."""
        source, result = self.tensors if len(self.tensors) == 2 else (None, None)
        if source is None or result is None or lanes[0] != lanes[1]:
            raise VerifyException("a conversion has one input, with the result's dimension in its lanes")
        self.function_name  # noqa: B018 # raises for formats without a conversion
        if lanes[0] is None:
            return
        _, wanted = CONVERSIONS[source.format, result.format]
        if (source.arrangement, result.arrangement) != wanted:
            raise VerifyException(
                f"{self.function_name} takes sticks from the order {' to '.join(wanted)}, "
                f"here {source.arrangement} to {result.arrangement}"
            )


__all__ = [
    "CONVERSIONS",
    "RESTICKIFY",
    "AllocOp",
    "ArgumentOp",
    "ComputeOp",
    "ConvertOp",
    "FreeOp",
    "FromDeviceOp",
    "KernelConstantOp",
    "KernelOp",
    "LaunchOp",
    "RestickifyOp",
    "ToDeviceOp",
    "device_tensor",
    "segment_of",
    "shared_view",
]
