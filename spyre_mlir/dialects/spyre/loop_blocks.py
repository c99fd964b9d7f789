"""`spyre.loop.block` and `spyre.loop.put`: the block of a dimension around a position that the host knows.

A program that writes one position of a cache changes one block of it. Which block that is the host knows when it runs
the program, and kernels do not: they work on a block, and the host says where it starts.

Decision: docs/decisions/0139-the-host-says-where-a-block-starts.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import I64, IntegerAttr, IntegerType, TensorType, UnitAttr, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16

# Entries of a block: whatever dimension is in the lanes, a block is whole sticks.
BLOCK = DL16.elements_per_stick()


def block_shape(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    """Return the shape of a block of `size` entries of `dim`."""
    return (*shape[:dim], size, *shape[dim + 1 :])


@dataclass(frozen=True)
class NamedEntry:
    """Which entry of a dimension a tensor of positions names.

    Attributes:
        offset: what is added to the position.
        from_end: whether the sum counts from the end if it is negative.
        number: which of several positions it is, in row-major order; None if there is one.
        per: how many places an entry has, if positions count those: place p is one of entry p / `per`, rounded down.
        run: how many positions from this one on have to be the first places of the entry, in order; 1 if none has to.
    """

    offset: int = 0
    from_end: bool = False
    number: int | None = None
    per: int = 1
    run: int = 1

    @classmethod
    def of(cls, op: EntryOp) -> NamedEntry:
        """Return what the properties of an op say."""
        offset, number, per, run = (None if n is None else n.value.data for n in (op.offset, op.number, op.per, op.run))
        return cls(offset or 0, op.from_end is not None, number, 1 if per is None else per, 1 if run is None else run)

    def properties(self) -> dict[str, Attribute]:
        """Return the properties that say so: none for the entry that one position counts."""
        several = {name: None if count == 1 else count for name, count in (("per", self.per), ("run", self.run))}
        said = {"offset": self.offset or None, "number": self.number, **several}
        found: dict[str, Attribute] = {k: IntegerAttr(v, i64) for k, v in said.items() if v is not None}
        return found | ({"from_end": UnitAttr()} if self.from_end else {})

    def check(self, position: SSAValue) -> None:
        """Raise VerifyException unless a tensor has such a position."""
        check_position(position, self.number)
        if self.per < 1:
            raise VerifyException(f"entries of {self.per} places; try 1 or more")
        if not 1 <= self.run <= self.per:
            raise VerifyException(f"runs of {self.run} places in entries of {self.per}")
        if self.run > 1:
            check_position(position, (self.number or 0) + self.run - 1)


class EntryOp(IRDLOperation):
    """Base of ops with the properties of a `NamedEntry`."""

    position = operand_def(TensorType)
    number = opt_prop_def(IntegerAttr[I64])
    offset = opt_prop_def(IntegerAttr[I64])
    from_end = opt_prop_def(UnitAttr)
    per = opt_prop_def(IntegerAttr[I64])
    run = opt_prop_def(IntegerAttr[I64])


# The properties behind a position, in the text of an op.
ENTRY_FORMAT = "(`number` $number^)? (`plus` $offset^)? (`from_end` $from_end^)? (`per` $per^)? (`run` $run^)?"
THE_ENTRY = NamedEntry()


def check_position(position: SSAValue, number: int | None = None) -> None:
    """Raise VerifyException unless a tensor is one integer, or integers of which one has a number."""
    count = prod(shape_of(position))
    if not isinstance(element_of(position), IntegerType) or (count != 1 if number is None else not 0 <= number < count):
        wanted = "a tensor of one integer" if number is None else f"integers, more than {number} of them"
        raise VerifyException(f"the position is {position.type}, expected {wanted}")


def _check(whole: SSAValue, part: SSAValue, dim: int, op: BlockOp | PutOp) -> None:
    """Checks C1 to C3 of both ops."""
    shape, small = shape_of(whole), shape_of(part)
    if not 0 <= dim < len(shape):
        raise VerifyException(f"dimension {dim} of a tensor of rank {len(shape)}")
    size = min(small[dim : dim + 1], default=0)
    if small != block_shape(shape, dim, size) or element_of(whole) != element_of(part):
        raise VerifyException(f"a block of {whole.type} along dimension {dim} cannot be {part.type}")
    if size < 1 or shape[dim] % size:
        raise VerifyException(f"blocks of {size} do not divide dimension {dim}, which has {shape[dim]} entries")
    NamedEntry.of(op).check(op.position)


@irdl_op_definition
class BlockOp(EntryOp):
    """The block of `dim` that holds entry `position`; blocks lie side by side from entry 0 on.

    ``%b = spyre.loop.block %x dim 2 at %position : tensor<1x2x256x64xf16>, tensor<1xi64> -> tensor<1x2x64x64xf16>``

    Constraints:
        C1: the block has the shape and elements of `source`, with fewer entries along `dim`.
        C2: blocks divide `dim`.
        C3: `position` is one integer, or has one with this `number`; when the program runs, it is that of an entry.

    With ``plus 1``, entry `position` + 1 is meant; with ``from_end``, negative ones count from the end. With
    ``per 64``, positions count 64 places of each entry; ``run 64`` says that this position and those behind it are the
    first 64 places of the entry, in order.
    """

    name = "spyre.loop.block"

    source = operand_def(TensorType)
    dim = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        f"$source `dim` $dim `at` $position {ENTRY_FORMAT} attr-dict `:` "
        "type($source) `,` type($position) `->` type($result)"
    )

    def __init__(
        self,
        source: SSAValue,
        dim: int,
        position: SSAValue,
        size: int,
        named: NamedEntry = THE_ENTRY,
    ) -> None:
        """The block of `size` entries of dimension `dim` around the one that is named."""
        result = TensorType(element_of(source), block_shape(shape_of(source), dim, size))
        properties = {"dim": IntegerAttr(dim, i64), **named.properties()}
        super().__init__(operands=[source, position], properties=properties, result_types=[result])

    def verify_(self) -> None:
        """Checks C1 to C3."""
        _check(self.source, self.result, self.dim.value.data, self)


@irdl_op_definition
class PutOp(EntryOp):
    """`dest` with the block of `dim` that holds entry `position` replaced.

    ``%y = spyre.loop.put %b into %x dim 2 at %position : tensor<1x2x64x64xf16>, …``

    Constraints: those of `spyre.loop.block`.
    """

    name = "spyre.loop.put"

    block = operand_def(TensorType)
    dest = operand_def(TensorType)
    dim = prop_def(IntegerAttr[I64])
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        f"$block `into` $dest `dim` $dim `at` $position {ENTRY_FORMAT} attr-dict `:` "
        "type($block) `,` type($dest) `,` type($position) `->` type($result)"
    )

    def __init__(
        self,
        block: SSAValue,
        dest: SSAValue,
        dim: int,
        position: SSAValue,
        named: NamedEntry = THE_ENTRY,
    ) -> None:
        """`dest` with `block` in it, around the entry that is named."""
        properties = {"dim": IntegerAttr(dim, i64), **named.properties()}
        super().__init__(operands=[block, dest, position], properties=properties, result_types=[dest.type])

    def verify_(self) -> None:
        """Checks C1 to C3."""
        if self.dest.type != self.result.type:
            raise VerifyException(f"the destination is {self.dest.type}, the result {self.result.type}")
        _check(self.dest, self.block, self.dim.value.data, self)


__all__ = [
    "BLOCK",
    "ENTRY_FORMAT",
    "THE_ENTRY",
    "BlockOp",
    "EntryOp",
    "NamedEntry",
    "PutOp",
    "block_shape",
    "check_position",
]
