"""The bundle function: the order of the SuperDSC files and the addresses each core starts at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from spyre_mlir.dialects.sdscbundle import DeviceMemAllocateOp, InputArgExtractOp, InputArgType, SdscExecuteOp
from spyre_mlir.dialects.superdsc.build import build
from spyre_mlir.dialects.superdsc.descriptor import Descriptor, Operand, Version
from spyre_mlir.dialects.superdsc.ops import SdscOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.descriptors import Placed

_INDEX = IndexType()


@dataclass(frozen=True)
class Base:
    """Where a buffer starts: an argument of the bundle, an offset in its pool, or a place in every scratchpad.

    Attributes:
        argument: number of the argument, or None for the pool and the scratchpads.
        offset_bytes: bytes behind the start of the argument, the pool or the scratchpad.
        local: whether it is in the scratchpads, whose addresses are numbers always.
    """

    argument: int | None
    offset_bytes: int = 0
    local: bool = False

    def local_starts(self, offsets: Sequence[int]) -> tuple[str, ...]:
        """Start addresses in the scratchpads."""
        return tuple(str(self.offset_bytes + o) for o in offsets)


@dataclass
class SymbolicBundle:
    """Addresses are run-time values: every core's start is a symbol bound in the bundle function."""

    arguments: int
    pool_bytes: int
    version: Version
    sdscs: list[SdscOp] = field(default_factory=list[SdscOp])
    _setup: list[Operation] = field(default_factory=list[Operation])
    _body: list[Operation] = field(default_factory=list[Operation])
    _values: dict[tuple[Base, int], SSAValue] = field(default_factory=dict[tuple[Base, int], SSAValue])
    _constants: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    _block: Block = field(init=False)
    _next_symbol: int = -1

    def __post_init__(self) -> None:
        self._block = Block(arg_types=[InputArgType()] * self.arguments)
        for number, argument in enumerate(self._block.args):
            argument.name_hint = f"arg_{number}_base_addr"

    def add(self, placed: Placed, bases: Sequence[Base]) -> None:
        """Appends one SuperDSC: equal addresses inside it share a symbol."""
        symbols: dict[SSAValue, int] = {}
        operands: list[Operand] = []
        for operand, offsets, base in zip(placed.descriptor.operands, placed.offsets, bases, strict=True):
            if base.local:
                operands.append(replace(operand, start=base.local_starts(offsets)))
                continue
            addresses = [self._address(base, o) for o in offsets]
            for address in addresses:
                if address not in symbols:
                    symbols[address] = self._next_symbol
                    self._next_symbol -= 1
            start = tuple(str(symbols[a]) for a in addresses)
            operands.append(replace(operand, start=start, symbolic=True))
        op = build(replace(placed.descriptor, operands=tuple(operands)), self.version)
        self.sdscs.append(op)
        self._body.append(SdscExecuteOp(file_name(op, self.version), list(symbols), list(symbols.values())))

    def _address(self, base: Base, offset: int) -> SSAValue:
        start = Base(base.argument)
        key = (start, base.offset_bytes + offset)
        if key not in self._values:
            self._values[key] = self._base(start) if key[1] == 0 else self._sum(self._address(start, 0), key[1])
        return self._values[key]

    def _base(self, base: Base) -> SSAValue:
        if base.argument is None:
            op: Operation = DeviceMemAllocateOp(self.pool_bytes)
            op.results[0].name_hint = "pool"
        else:
            op = InputArgExtractOp(self._block.args[base.argument])
            op.results[0].name_hint = f"arg_{base.argument}"
        self._setup.append(op)
        return op.results[0]

    def _sum(self, base: SSAValue, offset: int) -> SSAValue:
        if offset not in self._constants:
            constant = arith.ConstantOp(IntegerAttr(offset, _INDEX))
            self._setup.append(constant)
            self._constants[offset] = constant.result
        total = arith.AddiOp(base, self._constants[offset])
        self._setup.append(total)
        return total.result

    def function(self, name: str) -> func.FuncOp:
        """The finished bundle function."""
        self._block.add_ops([*self._setup, *self._body, func.ReturnOp()])
        return func.FuncOp(name, ([InputArgType()] * self.arguments, []), Region(self._block))


@dataclass
class ConcreteBundle:
    """Addresses are numbers: one segment per argument, the pool in a segment of its own in front."""

    arguments: int
    pool_bytes: int
    version: Version
    spec: SpyreSpec
    segments: Sequence[int | None] = ()
    sdscs: list[SdscOp] = field(default_factory=list[SdscOp])
    _body: list[Operation] = field(default_factory=list[Operation])

    def __post_init__(self) -> None:
        needed = self.arguments + (1 if self.pool_bytes else 0)
        if needed > self.spec.user_segments:
            raise LoweringError(
                f"concrete addresses need a segment per argument: {needed}, the card has {self.spec.user_segments}",
                hint="use addresses=symbolic",
            )

    def add(self, placed: Placed, bases: Sequence[Base]) -> None:
        """Appends one SuperDSC."""
        operands = [
            replace(
                operand,
                start=base.local_starts(offsets) if base.local else tuple(str(self._start(base) + o) for o in offsets),
            )
            for operand, offsets, base in zip(placed.descriptor.operands, placed.offsets, bases, strict=True)
        ]
        descriptor: Descriptor = replace(placed.descriptor, operands=tuple(operands))
        op = build(descriptor, self.version)
        self.sdscs.append(op)
        self._body.append(SdscExecuteOp(file_name(op, self.version)))

    def _start(self, base: Base) -> int:
        if base.argument is None:
            return self.spec.segment_base(0) + base.offset_bytes
        given = self.segments[base.argument] if base.argument < len(self.segments) else None
        segment = given if given is not None else base.argument + (1 if self.pool_bytes else 0)
        return self.spec.segment_base(segment) + base.offset_bytes

    def function(self, name: str) -> func.FuncOp:
        """The finished bundle function."""
        return func.FuncOp(name, ([], []), Region(Block([*self._body, func.ReturnOp()])))


def file_name(op: SdscOp, version: Version) -> str:
    """Name of the file of a SuperDSC: its position, and in older versions its function."""
    index, _, function = op.root_key.partition("_")
    return version.file_name(int(index), function)
