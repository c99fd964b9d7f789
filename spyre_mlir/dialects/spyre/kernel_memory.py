"""Buffers of the kernel level and their traffic with the host: the ops around the hardware functions.

Decision: docs/decisions/0117-properties-and-notes.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    I64,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
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
from xdsl.traits import MemoryAllocEffect, MemoryFreeEffect, MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.directives import Number
from spyre_mlir.dialects.ir.canonicalization import CanonicalPatterns
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel_op import KernelOp, device_tensor
from spyre_mlir.dialects.spyre.moves import StepAttr
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.moves import HostStep
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import StickError


class ArgumentOp(IRDLOperation):
    """Base of the ops whose result can be an argument of a launch.

    Attributes:
        segment: where a bundle with addresses in its files expects the argument.
    """

    segment = opt_prop_def(IntegerAttr[I64])

    @property
    def segment_number(self) -> int | None:
        """The segment; None if the argument may be anywhere."""
        return None if self.segment is None else self.segment.value.data


def segment_of(buffer: SSAValue) -> int | None:
    """Return the segment that a bundle expects a buffer in; None if it may be anywhere."""
    return buffer.owner.segment_number if isinstance(buffer.owner, ArgumentOp) else None


_CANONICAL = CanonicalPatterns("spyre_mlir.dialects.spyre.canonicalization.kernel")


@irdl_op_definition
class AllocOp(ArgumentOp):
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

    traits = traits_def(MemoryAllocEffect(), _CANONICAL)
    custom_directives = (Number,)
    assembly_format = "(`at` custom<Number>($offset)^)? (`segment` $segment^)? attr-dict `:` type($result)"

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
            return self.start + tensor.sticks * STICK_BYTES
        return self.start + shared_view(self.result).bytes_per_core(tensor)

    def verify_(self) -> None:
        """Checks the place of the buffer."""
        start = self.start
        if start < 0 or start % STICK_BYTES:
            raise VerifyException(f"byte {start} is not on a stick of {STICK_BYTES} bytes; try a multiple")
        if device_tensor(self.result).space != "lx":
            return
        try:
            end = self.end
        except StickError as error:
            raise VerifyException(f"the buffer cannot be in LX: {error}; try hbm") from error
        except VerifyException:
            return  # a kernel with a function that the table lacks is named itself
        if end > (usable := spec_at(self).lx_usable_bytes):
            raise VerifyException(
                f"bytes {start} to {end} of the scratchpad: a core has {usable} for the "
                "program; try a lower address, more cores, or hbm for this buffer"
            )


def shared_view(buffer: SSAValue) -> CoreView:
    """Return the slices of a buffer on which all its users agree.

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
class KernelConstantOp(ArgumentOp):
    """A device tensor of known numbers, which the host provides with the program; its padding is 0.

    The value is one number everywhere, `#spyre.iota` or `#spyre.first_ones`.
    """

    name = "spyre.kernel.constant"

    value = prop_def()
    result = result_def(DeviceTensorType)

    traits = traits_def(_CANONICAL)
    assembly_format = "$value (`segment` $segment^)? attr-dict `:` type($result)"

    def __init__(self, value: Attribute, result: Attribute) -> None:
        """Makes a constant from its value attribute."""
        super().__init__(properties={"value": value}, result_types=[result])

    def verify_(self) -> None:
        """The host reaches the memory."""
        _host_reaches(self.result)


@irdl_op_definition
class ToDeviceOp(ArgumentOp):
    """Sends a host tensor to the device, in the layout of the result's type.

    `saturate`, of integers for comparisons with small ones only: those beyond DL16's integers are sent as the next
    number beyond these. `zero_padding` fills what the layout reserves beyond the tensor with zeros. `from_end`, of
    the indices of a gather: negative ones count from the end of a table of so many rows. `moved`: the host rearranges
    the tensor first, by these moves one after the other. `elements`, of integers that may be beyond those of the
    device: the types that the model converts them to, one after the other, where exact numerics must know it.

    Constraints:
        C1: every move stays inside what the one before it made, and the last one makes what the device has.
    """

    name = "spyre.kernel.to_device"

    source = operand_def(TensorType)
    saturate = opt_prop_def(UnitAttr)
    zero_padding = opt_prop_def(UnitAttr)
    from_end = opt_prop_def(IntegerAttr[I64])
    moved = opt_prop_def(ArrayAttr[StepAttr])
    elements = opt_prop_def(ArrayAttr)
    result = result_def(DeviceTensorType)

    traits = traits_def(_CANONICAL)
    assembly_format = (
        "$source (`saturate` $saturate^)? (`zero_padding` $zero_padding^)? (`from_end` $from_end^)? "
        "(`moved` $moved^)? (`elements` $elements^)? (`segment` $segment^)? "
        "attr-dict `:` type($source) `to` type($result)"
    )

    def __init__(self, source: SSAValue, result: Attribute) -> None:
        """Sends `source` to the device."""
        super().__init__(operands=[source], result_types=[result])

    @property
    def rows(self) -> int | None:
        """Rows of the table from whose end negative indices count; None if they do not."""
        return None if self.from_end is None else self.from_end.value.data

    @property
    def converts_to(self) -> tuple[Attribute, ...]:
        """The element types that the model converts the numbers to before the device has them."""
        return () if self.elements is None else self.elements.data

    @property
    def moves(self) -> tuple[HostStep, ...]:
        """Steps that the host takes before it lays the tensor out."""
        return () if self.moved is None else tuple(m.data for m in self.moved)

    def verify_(self) -> None:
        """Shapes agree (C1), and the host reaches the memory."""
        shape = shape_of(self.source)
        for move in self.moved or ():
            shape = move.shape_from(shape)
        _same_shape(shape, self.result)
        _host_reaches(self.result)


@irdl_op_definition
class FromDeviceOp(IRDLOperation):
    """Brings a device tensor back to the host."""

    name = "spyre.kernel.from_device"

    source = operand_def(DeviceTensorType)
    result = result_def(TensorType)

    traits = traits_def(MemoryReadEffect(), _CANONICAL)
    assembly_format = "$source attr-dict `:` type($source) `to` type($result)"

    def __init__(self, source: SSAValue, result: Attribute) -> None:
        """Brings `source` to the host as a tensor type."""
        super().__init__(operands=[source], result_types=[result])

    def verify_(self) -> None:
        """Shapes agree, and the host reaches the memory."""
        _same_shape(shape_of(self.result), self.source)
        _host_reaches(self.source)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs a bundle on the device: its function's parameters are the addresses of these buffers.

    `integer_kernels` are pairs: the number of a SuperDSC whose result is integers in a format of floats, and its
    elements in the lanes that are no padding; a result beyond what the format holds exactly is a fault of the machine.
    `elements` lists the numbers of SuperDSCs by the element type their result has in the model, to which exact numerics
    round it. `pool_bytes` is the size of the pool where addresses are in the files; it is in segment 0.

    Constraints:
        C1: `integer_kernels` holds whole pairs, `elements` lists of numbers.
    """

    name = "spyre.kernel.launch"

    bundle = prop_def(FlatSymbolRefAttrConstr)
    buffers = var_operand_def(DeviceTensorType)
    integer_kernels = opt_prop_def(DenseArrayBase.constr(i64))
    elements = opt_prop_def(DictionaryAttr)
    pool_bytes = opt_prop_def(IntegerAttr[I64])

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$bundle `(` $buffers `)` (`integer_kernels` $integer_kernels^)? (`elements` $elements^)? "
        "(`pool_bytes` $pool_bytes^)? attr-dict `:` type($buffers)"
    )

    def __init__(self, bundle: str, buffers: Sequence[SSAValue]) -> None:
        """Launches the bundle function called `bundle`."""
        super().__init__(operands=[list(buffers)], properties={"bundle": SymbolRefAttr(bundle)})

    @property
    def watched(self) -> dict[int, int]:
        """The numbers of SuperDSCs whose results are integers, with their elements that are no padding."""
        numbers = () if self.integer_kernels is None else tuple(int(n) for n in self.integer_kernels.get_values())
        return dict(zip(numbers[::2], numbers[1::2], strict=True))

    @property
    def element_names(self) -> dict[int, str]:
        """The element types of results, by the numbers of SuperDSCs."""
        lists = self._element_lists.items()
        return {int(n): name for name, of in lists if isinstance(of, DenseArrayBase) for n in of.get_values()}

    @property
    def _element_lists(self) -> Mapping[str, Attribute]:
        return {} if self.elements is None else self.elements.data

    @property
    def fixed_pool_bytes(self) -> int | None:
        """The size of the pool where addresses are in the files; None if there is none, or they are not."""
        return None if self.pool_bytes is None else self.pool_bytes.value.data

    def verify_(self) -> None:
        """Checks C1."""
        if self.integer_kernels is not None and len(self.integer_kernels) % 2:
            raise VerifyException(f"integer_kernels has {len(self.integer_kernels)} numbers, expected pairs")
        for name, numbers in self._element_lists.items():
            if not isinstance(numbers, DenseArrayBase):
                raise VerifyException(f"elements has {numbers} for {name}, expected a list of numbers array<i64: …>")


def _host_reaches(buffer: SSAValue) -> None:
    if device_tensor(buffer).space != "hbm":
        raise VerifyException("the host cannot reach the scratchpads; try hbm and a copy")


def _same_shape(shape: tuple[int, ...], device: SSAValue) -> None:
    if shape != device_tensor(device).shape:
        raise VerifyException(f"the host tensor has shape {shape}, the device tensor {device_tensor(device).shape}")
