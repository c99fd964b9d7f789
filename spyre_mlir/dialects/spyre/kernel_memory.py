"""Buffers of the kernel level and their traffic with the host: the ops around the hardware functions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, IntegerAttr, SymbolRefAttr, TensorType
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

from spyre_mlir.dialects.canonicalization import CanonicalPatterns
from spyre_mlir.dialects.directives import Number
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel_op import KernelOp, device_tensor
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import StickError

# Where a bundle with addresses in its files expects its arguments and its pool: attributes of the op that makes an
# argument (its segment) and of the launch (the pool's size; it is in segment 0).
SEGMENT = "segment"
POOL_BYTES = "pool_bytes"
# Kernels whose results are integers in a format of floats: an attribute of such an op, and of the launch, there as a
# list of the numbers of their SuperDSCs, each with the elements in the lanes that are no padding. A result beyond what
# the format holds exactly is a fault of the machine.
INTEGERS = "integers"
INTEGER_KERNELS = "integer_kernels"

# The element type of the model that a kernel's result has, where exact numerics must know it: they round float32 as
# eager does. An attribute of such an op, and of the launch, there as a dictionary from a type to the numbers of the
# SuperDSCs.
ELEMENT = "element"
ELEMENTS = "elements"

# Marks a kernel that computes in DL16 although the program keeps its float32: its function has no other form.
NARROWED = "narrowed"

# Marks a kernel that reads numbers made from integers, which may be large, in DL16: its function has no other form.
ROUNDED = "rounded"

# A transfer of integers for comparisons with small ones only: the host sends those beyond DL16's integers as the next
# number beyond these.
SATURATE = "saturate"

# A transfer that fills what the layout reserves beyond the tensor with zeros.
ZERO_PADDING = "zero_padding"

# Constants of a hardware function, by their names in its file: an attribute of a kernel op, a dictionary of numbers.
OP_INFO = "op_info"

_CANONICAL = CanonicalPatterns("spyre_mlir.dialects.spyre.canonicalize_kernel")


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

    traits = traits_def(MemoryAllocEffect(), _CANONICAL)
    custom_directives = (Number,)
    assembly_format = "(`at` custom<Number>($offset)^)? attr-dict `:` type($result)"

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
class KernelConstantOp(IRDLOperation):
    """A device tensor of known numbers, which the host provides with the program; its padding is 0.

    The value is one number everywhere, `#spyre.iota` or `#spyre.first_ones`.
    """

    name = "spyre.kernel.constant"

    value = prop_def()
    result = result_def(DeviceTensorType)

    traits = traits_def(_CANONICAL)
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

    traits = traits_def(_CANONICAL)
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

    traits = traits_def(MemoryReadEffect(), _CANONICAL)
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
