"""The bundle function: the order of the SuperDSC files and the addresses each core starts at.

Decision: docs/decisions/0005-symbolic-addresses.md
Decision: docs/decisions/0032-shared-files-are-an-option.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import DictionaryAttr, IndexType, LocationAttr, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from spyre_mlir.dialects.ir.integers import index_attribute
from spyre_mlir.dialects.sdscbundle import DeviceMemAllocateOp, InputArgExtractOp, InputArgType, SdscExecuteOp
from spyre_mlir.dialects.spyre.static_loop import LoopBounds
from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Operand, Version
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.spec import SPYRE, USER_SEGMENTS, SpyreSpec, segment_base
from spyre_mlir.transforms.kernel_to_superdsc.bundle_loops import AddressSteps, LoopNest
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import Placed

_INDEX = IndexType()
_NO_FLAGS: Mapping[str, Attribute] = {"overflowFlags": arith.IntegerOverflowAttr("none")}
LABELS = "labels"


@dataclass(frozen=True)
class Base:
    """Start of a buffer: an argument of the bundle, an offset in its pool, or an address in every scratchpad.

    Attributes:
        argument: number of the argument, or None for the pool and the scratchpads.
        offset_bytes: bytes behind the start of the argument, the pool or the scratchpad.
        local: whether it is in the scratchpads, whose addresses are numbers always.
        steps: the induction variables that move the start, and by how many bytes.
    """

    argument: int | None
    offset_bytes: int = 0
    local: bool = False
    steps: AddressSteps = ()

    def local_starts(self, offsets: Sequence[int]) -> tuple[str, ...]:
        """Return start addresses in the scratchpads."""
        return tuple(str(self.offset_bytes + o) for o in offsets)


@dataclass(frozen=True)
class _File:
    """A file that has been made: its name, and its symbol ids in the order launches bind them."""

    name: str
    ids: tuple[int, ...]


# What launches of one file have in common: the file but for its symbol ids and number, names of loops, `watched`, and
# `element`.
_Key = tuple[Descriptor, tuple[tuple[str, str], ...], int | None, Attribute | None]


def _sdsc(descriptor: Descriptor, version: Version, spec: SpyreSpec, placed: Placed, location: LocationAttr) -> SdscOp:
    """The op of a file; it says which loop of the kernel each label stands for."""
    op = build(descriptor, version, spec)
    op.location = location
    op.attributes[LABELS] = DictionaryAttr({label: StringAttr(name) for name, label in placed.labels.items()})
    return op


@dataclass
class SymbolicBundle:
    """Bundle with run-time addresses: every core's start is a symbol bound in the bundle function.

    Symbol ids are unique in the bundle, as its specification of April 2026 asks (certain). Under `share`, ops whose
    files would differ in ids only are launches of one file, each with its own values for the same ids: what a draft
    of August 2026 allows, which has ids scoped per call (likely; the two contradict each other).
    """

    arguments: int
    pool_bytes: int
    version: Version
    share: bool = False
    spec: SpyreSpec = SPYRE
    sdscs: list[SdscOp] = field(default_factory=list[SdscOp])
    _files: dict[_Key, _File] = field(default_factory=dict[Any, "_File"])
    _setup: list[Operation] = field(default_factory=list[Operation])
    _body: LoopNest = field(default_factory=LoopNest)
    _values: dict[tuple[int | None, int], SSAValue] = field(default_factory=dict[tuple[int | None, int], SSAValue])
    _constants: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    _block: Block = field(init=False)
    _next_symbol: int = -1

    def __post_init__(self) -> None:
        self._block = Block(arg_types=[InputArgType()] * self.arguments)
        for number, argument in enumerate(self._block.args):
            argument.name_hint = f"arg_{number}_base_addr"

    def add(self, placed: Placed, bases: Sequence[Base], location: LocationAttr) -> None:
        """Append one launch: equal addresses inside it share a symbol."""
        places: dict[SSAValue, int] = {}
        operands: list[Operand] = []
        for operand, offsets, base in zip(placed.descriptor.operands, placed.offsets, bases, strict=True):
            if base.local:
                operands.append(replace(operand, start=base.local_starts(offsets)))
                continue
            addresses = self._addresses(base, offsets)
            start = tuple(str(places.setdefault(a, len(places))) for a in addresses)
            operands.append(replace(operand, start=start, symbolic=True))
        descriptor = replace(placed.descriptor, operands=tuple(operands))
        file = self._file(descriptor, placed, len(places), location)
        launch = SdscExecuteOp(file.name, list(places), file.ids)
        launch.location = location
        self._body.append(launch)

    def _file(self, descriptor: Descriptor, placed: Placed, symbols: int, location: LocationAttr) -> _File:
        """The file of a descriptor whose start addresses are places in a list of `symbols` ids."""
        if not self.share:
            return self._new_file(descriptor, placed, symbols, location)
        # What the machine watches for overflow, and what it rounds, it knows by its file.
        key = (replace(descriptor, index=0), tuple(placed.labels.items()), placed.watched, placed.element)
        if key not in self._files:
            self._files[key] = self._new_file(descriptor, placed, symbols, location)
        return self._files[key]

    def _new_file(self, descriptor: Descriptor, placed: Placed, symbols: int, location: LocationAttr) -> _File:
        first = self._next_symbol
        self._next_symbol -= symbols
        operands = [
            replace(x, start=tuple(str(first - int(place)) for place in x.start)) if x.symbolic else x
            for x in descriptor.operands
        ]
        op = _sdsc(replace(descriptor, operands=tuple(operands)), self.version, self.spec, placed, location)
        self.sdscs.append(op)
        return _File(op.file_name, tuple(range(first, first - symbols, -1)))

    def _addresses(self, base: Base, offsets: Sequence[int]) -> list[SSAValue]:
        starts = [self._at(base.argument, base.offset_bytes + offset) for offset in offsets]
        return [self._body.advance(start, base.steps) for start in starts] if base.steps else starts

    def _at(self, argument: int | None, offset: int) -> SSAValue:
        """The address at an offset of an argument, or of the pool."""
        key = argument, offset
        if key not in self._values:
            self._values[key] = self._sum(self._at(argument, 0), offset) if offset else self._start(argument)
        return self._values[key]

    def _start(self, argument: int | None) -> SSAValue:
        if argument is None:
            op: Operation = DeviceMemAllocateOp(self.pool_bytes)
            op.results[0].name_hint = "pool"
        else:
            op = InputArgExtractOp(self._block.args[argument])
            op.results[0].name_hint = f"arg{argument}"
        self._setup.append(op)
        return op.results[0]

    def _sum(self, base: SSAValue, offset: int) -> SSAValue:
        # A bundle has thousands of sums: `create` leaves out what the constructor finds out by itself.
        operands = [base, self._constant(offset)]
        total = arith.AddiOp.create(operands=operands, result_types=[_INDEX], properties=_NO_FLAGS)
        total.result.name_hint = f"{base.name_hint}_at{offset}"
        self._setup.append(total)
        return total.result

    def _constant(self, value: int) -> SSAValue:
        if value not in self._constants:
            constant = arith.ConstantOp.create(result_types=[_INDEX], properties={"value": index_attribute(value)})
            constant.result.name_hint = f"c{value}"
            self._setup.append(constant)
            self._constants[value] = constant.result
        return self._constants[value]

    def open_loop(self, bounds: LoopBounds, index: SSAValue) -> LoopNest:
        """Begin a loop; launches added before it is closed run in every trip."""
        self._body.open([self._constant(n) for n in (bounds.lower, bounds.upper, bounds.step)], index)
        return self._body

    def function(self, name: str) -> func.FuncOp:
        """Return the finished bundle function."""
        self._block.add_ops([*self._setup, *self._body, func.ReturnOp()])
        return func.FuncOp(name, ([InputArgType()] * self.arguments, []), Region(self._block))


@dataclass
class ConcreteBundle:
    """Bundle with numeric addresses: one segment per argument, the pool in a segment of its own in front."""

    arguments: int
    pool_bytes: int
    version: Version
    spec: SpyreSpec
    segments: Sequence[int | None] = ()
    sdscs: list[SdscOp] = field(default_factory=list[SdscOp])
    _body: list[Operation] = field(default_factory=list[Operation])

    def __post_init__(self) -> None:
        needed = self.arguments + (1 if self.pool_bytes else 0)
        if needed > USER_SEGMENTS:
            raise LoweringError(
                f"concrete addresses need a segment per argument: {needed}, the card has {USER_SEGMENTS}",
                hint="use addresses=symbolic",
            )

    def add(self, placed: Placed, bases: Sequence[Base], location: LocationAttr) -> None:
        """Append one SuperDSC and its launch."""
        operands = [
            replace(
                operand,
                start=base.local_starts(offsets) if base.local else tuple(str(self._start(base) + o) for o in offsets),
            )
            for operand, offsets, base in zip(placed.descriptor.operands, placed.offsets, bases, strict=True)
        ]
        op = _sdsc(replace(placed.descriptor, operands=tuple(operands)), self.version, self.spec, placed, location)
        self.sdscs.append(op)
        launch = SdscExecuteOp(op.file_name)
        launch.location = location
        self._body.append(launch)

    def segment(self, argument: int) -> int:
        """Return the segment of an argument; the pool, if there is one, is in segment 0."""
        given = self.segments[argument] if argument < len(self.segments) else None
        return given if given is not None else argument + (1 if self.pool_bytes else 0)

    def _start(self, base: Base) -> int:
        if base.argument is None:
            return segment_base(0) + base.offset_bytes
        return segment_base(self.segment(base.argument)) + base.offset_bytes

    def function(self, name: str) -> func.FuncOp:
        """Return the finished bundle function."""
        return func.FuncOp(name, ([], []), Region(Block([*self._body, func.ReturnOp()])))
