"""`spyre.kernel.*`: one hardware function per op, on device tensors, with its work divided over cores.

``spyre.kernel.compute "add" [m = 128 over 32, n = 256] ins(%a[m, n] : …, %b[n] : …) outs(%c[m, n] : …)``.
Device tensors are buffers: an op writes into `outs`. Transfers between host and device are ops as well,
so the program is whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryFreeEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, SpaceAttr
from spyre_mlir.dialects.spyre.core_view import CoreLoop, CoreView, core_view, hbm_bytes, local_walk
from spyre_mlir.dialects.spyre.syntax import (
    parse_reading,
    parse_readings,
    parse_space,
    print_extra,
    print_readings,
    print_space,
)
from spyre_mlir.dialects.superdsc.descriptor import Dim, OpClass, core_slices
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.hw.sticks import Access, StickError, Walk, access, round_up, walk
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family, OpEntry

RESTICKIFY = {"hbm": "ReStickifyOpHBM", "lx": "ReStickifyOpLx"}


def device_tensor(value: SSAValue) -> DeviceTensor:
    """What the type of a device tensor says.

    Raises:
        VerifyException: the value is no device tensor.
    """
    if not isinstance(value.type, DeviceTensorType):
        raise VerifyException(f"expected a device tensor, got {value.type}")
    return value.type.data


class KernelOp(IRDLOperation):
    """Base of the ops that become one SuperDSC each: syntax, accesses, verification."""

    space = prop_def(SpaceAttr)
    maps = prop_def(ArrayAttr[IndexMapAttr])
    inputs = var_operand_def(DeviceTensorType)
    output = operand_def(DeviceTensorType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        space: SpaceAttr,
        inputs: Sequence[SSAValue],
        output: SSAValue,
        maps: Sequence[IndexMapAttr],
        properties: dict[str, Attribute] | None = None,
    ) -> None:
        """Makes the op; `maps` lists the inputs' maps, then the output's."""
        super().__init__(
            operands=[list(inputs), output], properties={"space": space, "maps": ArrayAttr(maps), **(properties or {})}
        )

    @property
    def function_name(self) -> str:
        """The hardware function, without the suffix that depends on layouts."""
        raise VerifyException(f"{self.name} names no hardware function")

    @property
    def tensors(self) -> tuple[DeviceTensor, ...]:
        """Types of the inputs, then of the output."""
        return tuple(device_tensor(v) for v in (*self.inputs, self.output))

    def accesses(self) -> tuple[Access, ...]:
        """Walks of the inputs, then of the output.

        Raises:
            StickError: a map that sticks cannot express.
        """
        extents = self.space.extents
        return tuple(access(t.layout, t.lanes, m.data, extents) for t, m in zip(self.tensors, self.maps, strict=True))

    def lane_dims(self) -> dict[str, int]:
        """Dimensions that are rounded up to whole sticks, with the elements per stick."""
        rounding: dict[str, int] = {}
        for acc, tensor in zip(self.accesses(), self.tensors, strict=True):
            if acc.lane is not None:
                rounding[acc.lane] = max(rounding.get(acc.lane, 1), tensor.lanes)
        return rounding

    def divisible_pieces(self) -> dict[str, int]:
        """Elements that must stay on one core, by dimension: whole sticks of every operand."""
        return self.lane_dims()

    def padded_extents(self) -> dict[str, int]:
        """Extent of every dimension as the hardware runs it, whole sticks in the lanes."""
        lanes = self.lane_dims()
        return {d.name: round_up(d.extent, lanes.get(d.name, 1)) for d in self.space.data}

    @property
    def is_product(self) -> bool:
        """Whether the op sums products, so that its summed loop may be divided."""
        return False

    def core_slices(self) -> tuple[Mapping[str, int], ...]:
        """Per core, its slice of every loop: result loops first, as in the op's file."""
        padded, kept = self.padded_extents(), self.maps.data[-1].names
        ordered = sorted(self.space.data, key=lambda d: d.name not in kept)
        dims = [Dim(d.name, padded[d.name], d.split) for d in ordered]
        return core_slices(dims, OpClass.MATMUL if self.is_product else OpClass.POINTWISE)

    def core_view(self, number: int) -> CoreView:
        """Which part of operand `number` each core sees.

        Raises:
            StickError: the parts are no equal slices, each on one core.
        """
        return core_view(self.tensors[number], self.maps.data[number].data, self._core_loops(), self.core_slices())

    def local_walk(self, number: int) -> tuple[Access, Walk]:
        """How a core walks its slice of operand `number` in its scratchpad.

        Raises:
            StickError: there is no such slice, or it is no walk through sticks.
        """
        view = self.core_view(number)
        return local_walk(self.tensors[number], self.maps.data[number].data, self._core_loops(), view)

    def may_take_over(self, number: int) -> bool:
        """Whether the result may be written over input `number` in LX: each element is read before it is written."""
        return False

    def space_splits(self) -> dict[str, int]:
        """Over how many cores each loop is divided."""
        return {d.name: d.split for d in self.space.data}

    def _core_loops(self) -> dict[str, CoreLoop]:
        padded = self.padded_extents()
        return {d.name: CoreLoop(padded[d.name], d.extent, d.split) for d in self.space.data}

    def hbm_bytes(self) -> int:
        """Bytes of device memory the operands read and write, every stick of an operand once."""
        padded, pairs = self.padded_extents(), zip(self.accesses(), self.tensors, strict=True)
        return sum(hbm_bytes(acc, padded, t.lanes) for acc, t in pairs if t.space == "hbm")

    def verify_(self) -> None:
        """Checks the accesses, the lanes of the operands against one another, and the division of work."""
        if len(self.maps.data) != len(self.inputs) + 1:
            raise VerifyException(f"{len(self.maps.data)} maps for {len(self.inputs)} inputs and one output")
        if len(self.tensors) > SPYRE.operands_per_kernel:
            raise VerifyException(f"{len(self.tensors)} operands, the hardware takes {SPYRE.operands_per_kernel}")
        try:
            accesses, padded = self.accesses(), self.padded_extents()
            for acc, tensor in zip(accesses, self.tensors, strict=True):
                walk(acc, padded, tensor.lanes)
        except StickError as error:
            raise VerifyException(f"{self.function_name}: {error}; try a restickify of this operand") from error
        self._verify_inside(accesses, padded)
        self.verify_lanes([a.lane for a in accesses])
        self._verify_division(padded)
        for number, tensor in enumerate(self.tensors):
            if tensor.space == "lx":
                self.verify_local(number)

    def verify_local(self, number: int) -> None:
        """Checks that operand `number` can be in the scratchpads.

        Raises:
            VerifyException: a core would need what another core holds.
        """
        try:
            self.local_walk(number)
        except StickError as error:
            raise VerifyException(
                f"{self.function_name}: {self._operand_name(number)} is in LX: {error}; "
                "try another division of the work, or hbm for this tensor"
            ) from error

    def _operand_name(self, number: int) -> str:
        return "the output" if number == len(self.inputs) else f"input {number}"

    def _verify_inside(self, accesses: Sequence[Access], padded: dict[str, int]) -> None:
        for number, (acc, tensor) in enumerate(zip(accesses, self.tensors, strict=True)):
            steps = {n: padded[n] // tensor.lanes if n == acc.lane else padded[n] for n in acc.strides}
            last = acc.offset + sum(stride * (steps[n] - 1) for n, stride in acc.strides.items())
            if last >= tensor.sticks:
                raise VerifyException(
                    f"{self.function_name}: {self._operand_name(number)} is walked up to stick {last} "
                    f"and has {tensor.sticks}: loops run over whole sticks; try larger extents in its layout"
                )

    def verify_lanes(self, lanes: Sequence[str | None]) -> None:
        """Raises VerifyException unless the lane dimensions of the operands go together."""

    def _verify_division(self, padded: dict[str, int]) -> None:
        pieces, cores = self.divisible_pieces(), 1
        for dim in self.space.data:
            unit = pieces.get(dim.name, 1)
            cores *= dim.split
            if dim.split > 1 and padded[dim.name] % (dim.split * unit):
                raise VerifyException(
                    f"{dim.name} has {padded[dim.name]} elements, not divisible over {dim.split} cores "
                    f"in pieces of {unit}; try a divisor"
                )
        if cores > SPYRE.cores_per_card:
            raise VerifyException(f"work is divided over {cores} cores, the card has {SPYRE.cores_per_card}")

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        """Reads what stands between the op's name and its space."""
        return {}

    def print_head(self, printer: Printer) -> None:
        """Writes what stands between the op's name and its space."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads the custom form."""
        properties = cls.parse_head(parser)
        space = parse_space(parser)
        inputs = parse_readings(parser, "ins")
        parser.parse_keyword("outs")
        parser.parse_punctuation("(")
        output, out_map = parse_reading(parser)
        parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(space, [v for v, _ in inputs], output, [*(m for _, m in inputs), out_map], properties)
        op.attributes.update({} if attributes is None else attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        """Writes the custom form."""
        printer.print_string(" ")
        self.print_head(printer)
        print_space(printer, self.space)
        print_readings(printer, "ins", self.inputs, self.maps.data[:-1])
        print_readings(printer, "outs", [self.output], self.maps.data[-1:])
        print_extra(printer, self.attributes)


@irdl_op_definition
class ComputeOp(KernelOp):
    """A hardware function of the op table, on all cores.

    Constraints:
        C1: every operand is a walk through sticks: nested strides, nothing outside the buffer.
        C2: pointwise: operands and result share the dimension in the lanes, or are sparse; a reduction
            keeps it or, if it is reduced, has a sparse result; a product has the summed dimension in the
            lanes of the first operand and the generated one in those of the second and the result.
        C3: splits divide whole sticks, and their product is at most the number of cores.
    """

    name = "spyre.kernel.compute"

    function = prop_def(StringAttr)

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

    def may_take_over(self, number: int) -> bool:
        """Whether the function goes element by element, and both have every element at the same place."""
        if self.entry.family not in (Family.POINTWISE, Family.MOVEMENT):
            return False
        out = len(self.inputs)
        same = self.tensors[number].format == self.tensors[out].format
        return (
            same and self.local_walk(number) == self.local_walk(out) and self.core_view(number) == self.core_view(out)
        )

    @property
    def is_product(self) -> bool:
        """Whether the function is a contraction."""
        return self.entry.family is Family.CONTRACTION

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        """Reads the function's name."""
        return {"function": StringAttr(parser.parse_str_literal())}

    def print_head(self, printer: Printer) -> None:
        """Writes the function's name."""
        printer.print_string_literal(self.function.data)
        printer.print_string(" ")

    def verify_lanes(self, lanes: Sequence[str | None]) -> None:
        """Checks C2."""
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
class GatherOp(KernelOp):
    """Copies the rows of a table that index tensor `ins[0]` names; the table is `ins[1]`.

    Constraints:
        C1: two inputs; the indexed dimension is the outermost of the table's layout.
        C2: all operands are in HBM.
    """

    name = "spyre.kernel.gather"

    axis = prop_def(IntegerAttr)

    @property
    def function_name(self) -> str:
        """A gather is an `identity` with an index tensor."""
        return "identity"

    @classmethod
    def parse_head(cls, parser: Parser) -> dict[str, Attribute]:
        """Reads the indexed dimension."""
        parser.parse_keyword("axis")
        return {"axis": IntegerAttr(parser.parse_integer(allow_boolean=False, allow_negative=False), i64)}

    def print_head(self, printer: Printer) -> None:
        """Writes the indexed dimension."""
        printer.print_string(f"axis {self.axis.value.data} ")

    def lane_dims(self) -> dict[str, int]:
        """The index tensor does not round up the loops that walk it."""
        (_, table, output), tensors = self.accesses(), self.tensors
        pairs = ((table, tensors[1]), (output, tensors[2]))
        return {a.lane: t.lanes for a, t in pairs if a.lane is not None}

    def divisible_pieces(self) -> dict[str, int]:
        """A core takes whole sticks of indices (torch-spyre work division; likely)."""
        pieces, walked = self.lane_dims(), self.accesses()[0].lane
        return pieces if walked is None else {**pieces, walked: self.tensors[0].lanes}

    def core_view(self, number: int) -> CoreView:
        """None: the rows a core takes are known at run time only."""
        raise StickError("a gather takes rows that are known at run time only, its operands stay in HBM")

    def verify_lanes(self, lanes: Sequence[str | None]) -> None:
        """Checks C1."""
        if len(lanes) != 3 or lanes[1] != lanes[2]:
            raise VerifyException("a gather has indices, a table, and a result with the table's lanes")
        table, axis = self.tensors[1], self.axis.value.data
        outermost = next((d for d in table.layout.order if d == axis or table.layout.count(d, table.lanes) > 1), None)
        if outermost != axis:
            raise VerifyException(
                f"the indexed dimension {axis} must be outermost in the table's layout, there it is {outermost}"
            )


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A buffer in device memory; its contents are not defined. `offset` is its place in the pool, in bytes.

    A buffer in LX has one slice in the scratchpad of each core, all at byte `offset`.

    Constraints:
        C1: `offset` is a multiple of the stick size.
        C2: in LX: only kernel ops use it, they all give each core the same slice, and it ends inside what a
            scratchpad has for the program.
    """

    name = "spyre.kernel.alloc"

    offset = opt_prop_def(IntegerAttr)
    result = result_def(DeviceTensorType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "(`at` $offset^)? attr-dict `:` type($result)"

    def __init__(self, result: Attribute) -> None:
        """Makes a buffer of a device tensor type."""
        super().__init__(result_types=[result])

    @property
    def start(self) -> int:
        """First byte, in the pool or in every scratchpad; 0 if it has no place yet."""
        return 0 if self.offset is None else self.offset.value.data

    @property
    def end(self) -> int:
        """One past the last byte, in the pool or in every scratchpad.

        Raises:
            StickError: it is in LX, and its users do not agree on the slices.
        """
        tensor = device_tensor(self.result)
        if tensor.space == "hbm":
            return self.start + tensor.sticks * SPYRE.stick_bytes
        return self.start + shared_view(self.result).bytes_per_core(tensor)

    def verify_(self) -> None:
        """Checks the place of the buffer."""
        start = self.start
        if start < 0 or start % SPYRE.stick_bytes:
            raise VerifyException(f"byte {start} is not on a stick of {SPYRE.stick_bytes} bytes; try a multiple")
        if device_tensor(self.result).space != "lx":
            return
        try:
            end = self.end
        except StickError as error:
            raise VerifyException(f"the buffer cannot be in LX: {error}; try hbm") from error
        if end > SPYRE.lx_usable_bytes:
            raise VerifyException(
                f"bytes {start} to {end} of the scratchpad: a core has {SPYRE.lx_usable_bytes} for the "
                "program; try a lower address, more cores, or hbm for this buffer"
            )


def shared_view(buffer: SSAValue) -> CoreView:
    """The slices of a buffer on which all its users agree.

    Raises:
        StickError: they do not agree, or something else than a kernel op uses the buffer.
    """
    found: tuple[KernelOp, CoreView] | None = None
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, FreeOp):
            continue
        if not isinstance(op, KernelOp):
            raise StickError(f"{op.name} cannot reach the scratchpads")
        view = op.core_view(use.index)
        if found is not None and found[1] != view:
            raise StickError(
                f"{found[0].function_name} takes it in {found[1]}, {op.function_name} in {view}: no core can hold both"
            )
        found = found or (op, view)
    return CoreView((1,) * len(device_tensor(buffer).shape), ((),)) if found is None else found[1]


@irdl_op_definition
class FreeOp(IRDLOperation):
    """Ends the life of a buffer."""

    name = "spyre.kernel.free"

    buffer = operand_def(DeviceTensorType)

    traits = traits_def(MemoryFreeEffect())
    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue) -> None:
        """Frees `buffer`."""
        super().__init__(operands=[buffer])


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A device tensor of known numbers, which the host provides with the program; its padding is 0.

    The value is one number everywhere, `#spyre.iota` or `#spyre.first_ones`.
    """

    name = "spyre.kernel.constant"

    value = prop_def()
    result = result_def(DeviceTensorType)

    assembly_format = "$value attr-dict `:` type($result)"

    def __init__(self, value: Attribute, result: Attribute) -> None:
        """Makes a constant from its value attribute."""
        super().__init__(properties={"value": value}, result_types=[result])

    def verify_(self) -> None:
        """The host reaches the memory."""
        _host_reaches(self.result)


@irdl_op_definition
class ToDeviceOp(IRDLOperation):
    """Sends a host tensor to the device, in the layout of the result's type."""

    name = "spyre.kernel.to_device"

    source = operand_def(TensorType)
    result = result_def(DeviceTensorType)

    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, result: Attribute) -> None:
        """Sends `source` to the device."""
        super().__init__(operands=[source], result_types=[result])

    def verify_(self) -> None:
        """Shapes agree, and the host reaches the memory."""
        _same_shape(self.source, self.result)
        _host_reaches(self.result)


@irdl_op_definition
class FromDeviceOp(IRDLOperation):
    """Brings a device tensor back to the host."""

    name = "spyre.kernel.from_device"

    source = operand_def(DeviceTensorType)
    result = result_def(TensorType)

    traits = traits_def(MemoryReadEffect())
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, result: Attribute) -> None:
        """Brings `source` to the host as a tensor type."""
        super().__init__(operands=[source], result_types=[result])

    def verify_(self) -> None:
        """Shapes agree, and the host reaches the memory."""
        _same_shape(self.result, self.source)
        _host_reaches(self.source)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs a bundle on the device: its function's parameters are the addresses of these buffers."""

    name = "spyre.kernel.launch"

    bundle = prop_def(FlatSymbolRefAttrConstr)
    buffers = var_operand_def(DeviceTensorType)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$bundle `(` $buffers `)` attr-dict `:` type($buffers)"

    def __init__(self, bundle: str, buffers: Sequence[SSAValue]) -> None:
        """Launches the bundle function called `bundle`."""
        super().__init__(operands=[list(buffers)], properties={"bundle": SymbolRefAttr(bundle)})


def _host_reaches(buffer: SSAValue) -> None:
    if device_tensor(buffer).space != "hbm":
        raise VerifyException("the host cannot reach the scratchpads; try hbm and a copy")


def _same_shape(host: SSAValue, device: SSAValue) -> None:
    shape = shape_of(host)
    if shape != device_tensor(device).shape:
        raise VerifyException(f"the host tensor has shape {shape}, the device tensor {device_tensor(device).shape}")


__all__ = [
    "RESTICKIFY",
    "AllocOp",
    "ComputeOp",
    "ConstantOp",
    "FreeOp",
    "FromDeviceOp",
    "GatherOp",
    "KernelOp",
    "LaunchOp",
    "RestickifyOp",
    "ToDeviceOp",
    "device_tensor",
    "shared_view",
]
