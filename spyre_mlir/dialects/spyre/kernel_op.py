"""Base of the ops that become one SuperDSC each: syntax, accesses, division over cores, verification."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from types import MappingProxyType

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ir.canonicalization import CanonicalPatterns
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.core_view import (
    CoreDivision,
    CoreLoop,
    CoreView,
    LocalSlices,
    LoopExtents,
    core_view,
    hbm_bytes,
    local_slices,
    local_walk,
)
from spyre_mlir.dialects.spyre.kernel_facts import fact, undivided_fact
from spyre_mlir.dialects.spyre.static_loop import verify_loops
from spyre_mlir.dialects.spyre.syntax import AllReadAt, ReadAt, SharedFirst, Space
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import StickAccess, StickError, StrideNest, access, round_up, walk


def device_tensor(value: SSAValue) -> DeviceTensor:
    """Return the contents of a device tensor's type.

    Raises:
        VerifyException: the value is no device tensor.
    """
    if not isinstance(value.type, DeviceTensorType):
        raise VerifyException(f"expected a device tensor, got {value.type}")
    return value.type.data


# What every kernel is spelled as, behind the properties that one of them alone has.
KERNEL_FORMAT = (
    "custom<Space>($space) (`ins` `(` custom<AllReadAt>($inputs, type($inputs), $maps)^ `)`)? "
    "`outs` `(` custom<ReadAt>($output, type($output), ref($maps)) `)` "
    "custom<SharedFirst>(ref($space), ref($maps))"
)
ATTRIBUTES = "attr-dict-with-keyword"


class KernelOp(IRDLOperation):
    """An op that becomes one SuperDSC; subclasses define its function and lane rules."""

    space = prop_def(SpaceAttr)
    maps = prop_def(ArrayAttr[IndexMapAttr])
    inputs = var_operand_def(DeviceTensorType)
    output = operand_def(DeviceTensorType)

    traits = traits_def(
        MemoryReadEffect(), MemoryWriteEffect(), CanonicalPatterns("spyre_mlir.dialects.spyre.canonicalization.kernel")
    )
    custom_directives = (Space, AllReadAt, ReadAt, SharedFirst)
    assembly_format = f"{KERNEL_FORMAT} {ATTRIBUTES}"

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
        """The hardware function, without the suffix that depends on layouts.

        Raises:
            VerifyException: the op names none.
        """
        raise VerifyException(f"{self.name} names no hardware function")

    def identity(self) -> Hashable:
        """The inputs of its accesses and slices: the op's class, its properties and the types of its operands."""
        return self._identity(self.properties, [operand.type for operand in self.operands])

    def undivided_identity(self) -> Hashable:
        """The same of the op as it is before its work is divided, and anything is in the scratchpads."""
        whole = SpaceAttr(tuple([IterDim(d.name, d.extent) for d in self.space.data]))
        return self._identity({**self.properties, "space": whole}, [tensor.in_hbm for tensor in self.tensors])

    def _identity(self, properties: Mapping[str, Attribute], operands: Sequence[Hashable]) -> Hashable:
        return (type(self), *properties, *properties.values(), *operands)

    @property
    def tensors(self) -> tuple[DeviceTensor, ...]:
        """Types of the inputs, then of the output."""
        return tuple([device_tensor(v) for v in self.operands])

    @undivided_fact
    def accesses(self) -> tuple[StickAccess, ...]:
        """Accesses of the inputs, then of the output.

        Raises:
            StickError: a map that sticks cannot express.
        """
        walked = zip(self.tensors, self.maps, strict=True)
        return tuple(access(t.layout, t.lanes, m.data, self.space.extents) for t, m in walked)

    @undivided_fact
    def lane_dims(self) -> Mapping[str, int]:
        """Dimensions that are rounded up to whole sticks, with the elements per stick."""
        rounding: dict[str, int] = {}
        for acc, tensor in zip(self.accesses(), self.tensors, strict=True):
            if acc.lane is not None:
                rounding[acc.lane] = max(rounding.get(acc.lane, 1), tensor.block)
        return MappingProxyType(rounding)

    def divisible_pieces(self) -> Mapping[str, int]:
        """Return elements that must stay on one core, by dimension: whole sticks of every operand."""
        return self.lane_dims()

    def undivided(self) -> Set[str]:
        """Return loops that stay whole on every core."""
        return frozenset()

    @undivided_fact
    def padded_extents(self) -> Mapping[str, int]:
        """Extent of every dimension as the hardware runs it, whole sticks in the lanes."""
        lanes = self.lane_dims()
        return MappingProxyType({d.name: round_up(d.extent, lanes.get(d.name, 1)) for d in self.space.data})

    @property
    def is_product(self) -> bool:
        """Return whether the op sums products, so that its summed loop may be divided."""
        return False

    @fact
    def core_slices(self) -> tuple[Mapping[str, int], ...]:
        """Per core, its slice of every loop: result loops first, as in the op's file."""
        return self.division(self.space_splits()).table

    def division(self, splits: Mapping[str, int]) -> CoreDivision:
        """Return the loops of the op as divided so; cores are numbered with the first loop of the division fastest."""
        return self.loop_extents().divided(splits)

    @undivided_fact
    def loop_extents(self) -> LoopExtents:
        """Return the loops of the op as they are before they are divided."""
        extents = MappingProxyType(self.space.extents)
        return LoopExtents(self.padded_extents(), extents, self.maps.data[-1].names, self.is_product)

    @fact
    def core_view(self, number: int, tensor: DeviceTensor | None = None) -> CoreView:
        """Return the part of operand `number` that each core sees; of `tensor`, if given, in place of the operand.

        Raises:
            StickError: the parts are no equal slices, each on one core.
        """
        if (slices := self._local_slices(number, tensor)) is not None:
            return slices.view
        seen = self.tensors[number] if tensor is None else tensor
        return core_view(seen, self.maps.data[number].data, self._core_loops(), self.core_slices())

    @fact
    def local_walk(self, number: int, tensor: DeviceTensor | None = None) -> tuple[StickAccess, StrideNest]:
        """Return a core's access to its slice of operand `number` (or of `tensor` in its place) in its scratchpad.

        Raises:
            StickError: there is no such slice, or it is no walk through sticks.
        """
        view, slices = self.core_view(number, tensor), self._local_slices(number, tensor)
        if slices is not None:
            return slices.walk
        seen = self.tensors[number] if tensor is None else tensor
        return local_walk(seen, self.maps.data[number].data, self._core_loops(), view)

    def _local_slices(self, number: int, tensor: DeviceTensor | None) -> LocalSlices | None:
        """The slices of an operand, or of a tensor in its place; None if the scratchpads cannot hold them."""
        seen = self.tensors[number] if tensor is None else tensor
        return local_slices(seen.in_hbm, self.maps.data[number].data, self.division(self.space_splits()))

    def is_elementwise(self, number: int) -> bool:  # noqa: ARG002 - overrides look
        """Return whether each element of the result follows from one element of input `number`, in the same format."""
        return False

    def may_take_over(self, number: int, tensor: DeviceTensor | None = None) -> bool:  # noqa: ARG002 - overrides look
        """Return whether the result may overwrite input `number` in LX: each element is read before it is written."""
        return False

    def has_slices(self, number: int) -> bool:  # noqa: ARG002 - overrides look
        """Return whether cores take slices of operand `number` that are known before the run."""
        return True

    @property
    def rounds_to(self) -> Attribute | None:
        """The element type to which exact numerics round the result; None if they do not."""
        return None

    @property
    def is_watched(self) -> bool:
        """Return whether the machine watches the size of the integers in the result."""
        return False

    def space_splits(self) -> dict[str, int]:
        """Return over how many cores each loop is divided."""
        return {d.name: d.split for d in self.space.data}

    @fact
    def _core_loops(self) -> Mapping[str, CoreLoop]:
        padded = self.padded_extents()
        return MappingProxyType({d.name: CoreLoop(padded[d.name], d.extent, d.split) for d in self.space.data})

    def hbm_bytes(self) -> int:
        """Return the bytes of device memory the operands read and write, every stick of an operand once."""
        return sum(self.operand_bytes(n) for n, t in enumerate(self.tensors) if t.space == "hbm")

    @undivided_fact
    def operand_bytes(self, number: int) -> int:
        """Return the bytes of the sticks that operand `number` accesses, every one once."""
        return hbm_bytes(self.accesses()[number], self.padded_extents(), self.tensors[number].lanes)

    def verify_(self) -> None:
        """Checks the loops around it, the accesses, the lanes of the operands, and the division of work."""
        verify_loops(self)
        self._verify_alone(spec_at(self))

    @fact
    def _verify_alone(self, spec: SpyreSpec) -> None:
        """Everything but the loops around it."""
        if len(self.maps.data) != len(self.inputs) + 1:
            raise VerifyException(f"{len(self.maps.data)} maps for {len(self.inputs)} inputs and one output")
        if len(self.tensors) > (most := spec.operands_per_kernel):
            raise VerifyException(f"{len(self.tensors)} operands, the hardware takes {most}")
        try:
            accesses, padded = self.accesses(), self.padded_extents()
            for acc, tensor in zip(accesses, self.tensors, strict=True):
                walk(acc, padded, tensor.lanes)
        except StickError as error:
            raise VerifyException(f"{self.function_name}: {error}; try a restickify of this operand") from error
        self._verify_inside(accesses, padded)
        self.verify_lanes([a.lane for a in accesses])
        self._verify_division(padded, spec)
        for number, tensor in enumerate(self.tensors):
            if tensor.space == "lx":
                self.verify_local(number)

    def verify_local(self, number: int) -> None:
        """Check that operand `number` can be in the scratchpads.

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

    def _verify_inside(self, accesses: Sequence[StickAccess], padded: Mapping[str, int]) -> None:
        for number, (acc, tensor) in enumerate(zip(accesses, self.tensors, strict=True)):
            steps = {n: padded[n] // tensor.lanes if n == acc.lane else padded[n] for n in acc.strides}
            last = acc.offset + sum(stride * (steps[n] - 1) for n, stride in acc.strides.items())
            if last >= tensor.sticks:
                raise VerifyException(
                    f"{self.function_name}: {self._operand_name(number)} is walked up to stick {last} "
                    f"and has {tensor.sticks}: loops run over whole sticks; try larger extents in its layout"
                )

    def verify_lanes(self, lanes: Sequence[str | None]) -> None:
        """Raise VerifyException unless the lane dimensions of the operands are compatible."""

    def _verify_division(self, padded: Mapping[str, int], spec: SpyreSpec) -> None:
        pieces, cores = self.divisible_pieces(), 1
        for dim in self.space.data:
            unit = pieces.get(dim.name, 1)
            cores *= dim.split
            if dim.split > 1 and dim.name in self.undivided():
                raise VerifyException(
                    f"{dim.name} is divided over {dim.split} cores and must be whole on every core; "
                    "try to divide another loop"
                )
            if dim.split > 1 and padded[dim.name] % (dim.split * unit):
                raise VerifyException(
                    f"{dim.name} has {padded[dim.name]} elements, not divisible over {dim.split} cores "
                    f"in pieces of {unit}; try a divisor"
                )
        if cores > (most := spec.cores_per_card):
            raise VerifyException(f"work is divided over {cores} cores, the card has {most}")
