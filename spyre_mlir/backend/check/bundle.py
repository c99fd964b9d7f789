"""A bundle directory as its rules see it: launches in order, and their addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.dialects.affine import ApplyOp
from xdsl.dialects.arith import AddiOp, ConstantOp
from xdsl.dialects.builtin import FileLineColLoc, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, Operation, SSAValue

from spyre_mlir.dialects.sdscbundle import (
    BUNDLE_FUNCTION,
    ArgField,
    DeviceMemAllocateOp,
    InputArgExtractOp,
    SdscExecuteOp,
)
from spyre_mlir.dialects.superdsc.check.json_file import OperandJson, SdscJson
from spyre_mlir.hw.spec import SEGMENT_BYTES, SPYRE, SpyreSpec

Values = Mapping[SSAValue, int]


@dataclass(frozen=True)
class CheckedLaunch:
    """One execution of a SuperDSC file with known addresses.

    Args:
        op: the launch.
        addresses: per symbol id the address, as `Bundle.place` reads it; ids whose address is unknown are left out.
    """

    op: SdscExecuteOp
    addresses: Mapping[int, int]

    @property
    def file(self) -> str:
        """Name of its file."""
        return self.op.sdsc_filename.data

    def name(self, operand: OperandJson) -> str:
        """Name of one of its operands in messages."""
        return f"operand {operand.number} of {self.file}"


@dataclass
class Bundle:
    """A parsed `bundle.mlir` and the files beside it.

    Every argument and every scratch buffer is given a range of numbers of its own, so that a number tells where an
    address points. Loops are walked at their first and at their last step.

    Args:
        directory: where the files are.
        module: the parsed bundle, not verified.
        files: the SuperDSC files that could be read, by name.
        spec: the card it names.
    """

    directory: Path
    module: ModuleOp
    files: Mapping[str, SdscJson]
    spec: SpyreSpec = SPYRE
    _bases: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    @property
    def function(self) -> FuncOp | None:
        """The bundle function, if there is one."""
        functions = [op for op in self.module.ops if isinstance(op, FuncOp) and op.sym_name.data == BUNDLE_FUNCTION]
        return functions[0] if functions else None

    @property
    def executes(self) -> list[SdscExecuteOp]:
        """The launch ops, in order."""
        return [op for op in self.module.walk() if isinstance(op, SdscExecuteOp)]

    @property
    def pools(self) -> list[DeviceMemAllocateOp]:
        """The scratch buffers."""
        return [op for op in self.module.walk() if isinstance(op, DeviceMemAllocateOp)]

    @property
    def stride(self) -> int:
        """Numbers reserved per argument and scratch buffer: more than any address of the card."""
        return self.spec.hbm_card_bytes * SEGMENT_BYTES

    def place(self, address: int) -> tuple[SSAValue | None, int]:
        """Return the argument or buffer an address points into, and the byte offset in it; None for a plain number."""
        number, offset = divmod(address + self.stride // 2, self.stride)
        owners = {base: value for value, base in self._bases.items()}
        return owners.get(number * self.stride), offset - self.stride // 2

    def launches(self, function: FuncOp | None = None) -> Iterator[CheckedLaunch]:
        """Every launch of the bundle function (or of another one), at the corners of the loops around it."""
        self._bases = {}
        function = self.function if function is None else function
        if function is not None and function.body.blocks:
            yield from self._walk(function.body.block, {}, _corners)

    def launches_in_order(self) -> Iterator[CheckedLaunch]:
        """Every launch of the bundle function, in each trip of the loops around it."""
        self._bases = {}
        if self.function is not None and self.function.body.blocks:
            yield from self._walk(self.function.body.block, {}, _steps)

    def number_of_launches(self) -> int | None:
        """Return how many `launches_in_order` are; None if a loop has an end that is no constant."""
        if self.function is None or not self.function.body.blocks:
            return 0
        return _launches_in(self.function.body.block, constants_of(self.module))

    def _base(self, value: SSAValue) -> int:
        return self._bases.setdefault(value, (len(self._bases) + 1) * self.stride)

    def _walk(
        self, block: Block, values: dict[SSAValue, int], steps: Callable[[ForOp, Values], Sequence[int]]
    ) -> Iterator[CheckedLaunch]:
        for op in block.ops:
            if isinstance(op, ForOp):
                for step in dict.fromkeys(steps(op, values)):
                    yield from self._walk(op.body.block, {**values, op.body.block.args[0]: step}, steps)
            elif isinstance(op, SdscExecuteOp):
                pairs = zip(op.ids, op.addresses, strict=False)
                yield CheckedLaunch(op, {number: values[value] for number, value in pairs if value in values})
            else:
                self._evaluate(op, values)

    def _evaluate(self, op: Operation, values: dict[SSAValue, int]) -> None:
        """Add an op's result; nothing where an operand is unknown."""
        if isinstance(op, InputArgExtractOp) and op.field.data == ArgField.VALUE.value:
            values[op.result] = self._base(op.arg)
        elif isinstance(op, DeviceMemAllocateOp):
            values[op.result] = self._base(op.result)
        elif isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr):
            values[op.result] = op.value.value.data
        elif all(operand in values for operand in op.operands):
            given = [values[operand] for operand in op.operands]
            if isinstance(op, AddiOp):
                values[op.result] = sum(given)
            elif isinstance(op, ApplyOp):
                dims = op.map.data.num_dims
                values[op.result] = op.map.data.eval(given[:dims], given[dims:])[0]


def _corners(loop: ForOp, values: Values) -> Sequence[int]:
    """The first and the last value of a loop's variable; the first alone if the end is not known."""
    low, high, step = (values.get(bound) for bound in (loop.lb, loop.ub, loop.step))
    if low is None:
        return ()
    if high is None or step is None or step < 1:
        return (low,)
    count = -(-(high - low) // step)
    return (low, low + (count - 1) * step) if count > 0 else ()


def _steps(loop: ForOp, values: Values) -> Sequence[int]:
    """All values of a loop's variable; none if its bounds are not known."""
    low, high, step = (values.get(bound) for bound in (loop.lb, loop.ub, loop.step))
    return () if low is None or high is None or step is None or step < 1 else range(low, high, step)


def _launches_in(block: Block, constants: Values) -> int | None:
    total = 0
    for op in block.ops:
        if isinstance(op, ForOp):
            count, inside = trips(op, constants), _launches_in(op.body.block, constants)
            if count is None or inside is None:
                return None
            total += count * inside
        total += isinstance(op, SdscExecuteOp)
    return total


def trips(loop: ForOp, constants: Values) -> int | None:
    """Return how often a loop runs, if its bounds are constants."""
    low, high, step = (constants.get(bound) for bound in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or step is None or step < 1:
        return None
    return max(-(-(high - low) // step), 0)


def constants_of(module: ModuleOp) -> dict[SSAValue, int]:
    """Return the integer constants of a module."""
    return {
        op.result: op.value.value.data
        for op in module.walk()
        if isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr)
    }


def line(op: Operation) -> str:
    """Return the line of an op in its text."""
    location = op.location
    return f"{location.line.data}:{location.column.data}" if isinstance(location, FileLineColLoc) else op.name


def symbolic_operands(sdsc: SdscJson) -> Iterator[OperandJson]:
    """Return the operands whose start addresses are symbol ids."""
    return (operand for operand in sdsc.operands if operand.symbolic)


def ids_of(sdsc: SdscJson) -> set[int]:
    """Return the symbol ids that a file uses for addresses."""
    return {place.number() for operand in symbolic_operands(sdsc) for place in operand.starts}
