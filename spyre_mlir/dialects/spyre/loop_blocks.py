"""`spyre.loop.block` and `spyre.loop.put`: the block of a dimension around a position that the host knows.

A program that writes one position of a cache changes one block of it. Which block that is the host knows when it runs
the program, and kernels do not: they work on a block, and the host says where it starts.

Decision: docs/decisions/0139-the-host-says-where-a-block-starts.md
"""

from __future__ import annotations

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


def block_shape(shape: tuple[int, ...], dim: int, size: int) -> tuple[int, ...]:
    """Return the shape of a block of `size` entries of `dim`."""
    return (*shape[:dim], size, *shape[dim + 1 :])


def check_position(position: SSAValue) -> None:
    """Raise VerifyException unless a tensor is one integer."""
    if prod(shape_of(position)) != 1 or not isinstance(element_of(position), IntegerType):
        raise VerifyException(f"the position is {position.type}, expected a tensor of one integer")


def _place(dim: int, offset: int, from_end: bool) -> dict[str, Attribute]:
    return {"dim": IntegerAttr(dim, i64), **entry_properties(offset, from_end=from_end)}


def entry_properties(offset: int, *, from_end: bool) -> dict[str, Attribute]:
    """Return the properties that say which entry a position names: none if it is the entry of its own number.

    Args:
        offset: what is added to the position.
        from_end: whether the sum counts from the end if it is negative.
    """
    added: dict[str, Attribute] = {"offset": IntegerAttr(offset, i64)} if offset else {}
    return added | ({"from_end": UnitAttr()} if from_end else {})


def added_to_position(offset: IntegerAttr[I64] | None) -> int:
    """Return what a property says is added to a position."""
    return 0 if offset is None else offset.value.data


def _check(whole: SSAValue, part: SSAValue, dim: int, position: SSAValue) -> None:
    """Checks C1 to C3 of both ops."""
    shape, small = shape_of(whole), shape_of(part)
    if not 0 <= dim < len(shape):
        raise VerifyException(f"dimension {dim} of a tensor of rank {len(shape)}")
    size = min(small[dim : dim + 1], default=0)
    if small != block_shape(shape, dim, size) or element_of(whole) != element_of(part):
        raise VerifyException(f"a block of {whole.type} along dimension {dim} cannot be {part.type}")
    if size < 1 or shape[dim] % size:
        raise VerifyException(f"blocks of {size} do not divide dimension {dim}, which has {shape[dim]} entries")
    check_position(position)


@irdl_op_definition
class BlockOp(IRDLOperation):
    """The block of `dim` that holds entry `position`; blocks lie side by side from entry 0 on.

    ``%b = spyre.loop.block %x dim 2 at %position : tensor<1x2x256x64xf16>, tensor<1xi64> -> tensor<1x2x64x64xf16>``

    Constraints:
        C1: the block has the shape and elements of `source`, with fewer entries along `dim`.
        C2: blocks divide `dim`.
        C3: `position` is one integer; when the program runs, it is that of an entry.

    With ``plus 1``, entry `position` + 1 is meant; with ``from_end``, negative ones count from the end.
    """

    name = "spyre.loop.block"

    source = operand_def(TensorType)
    position = operand_def(TensorType)
    dim = prop_def(IntegerAttr[I64])
    offset = opt_prop_def(IntegerAttr[I64])
    from_end = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$source `dim` $dim `at` $position (`plus` $offset^)? (`from_end` $from_end^)? attr-dict `:` "
        "type($source) `,` type($position) `->` type($result)"
    )

    def __init__(
        self,
        source: SSAValue,
        dim: int,
        position: SSAValue,
        size: int,
        offset: int = 0,
        *,
        from_end: bool = False,
    ) -> None:
        """The block of `size` entries of dimension `dim` around `position` + `offset`."""
        result = TensorType(element_of(source), block_shape(shape_of(source), dim, size))
        super().__init__(operands=[source, position], properties=_place(dim, offset, from_end), result_types=[result])

    def verify_(self) -> None:
        """Checks C1 to C3."""
        _check(self.source, self.result, self.dim.value.data, self.position)


@irdl_op_definition
class PutOp(IRDLOperation):
    """`dest` with the block of `dim` that holds entry `position` replaced.

    ``%y = spyre.loop.put %b into %x dim 2 at %position : tensor<1x2x64x64xf16>, …``

    Constraints: those of `spyre.loop.block`.
    """

    name = "spyre.loop.put"

    block = operand_def(TensorType)
    dest = operand_def(TensorType)
    position = operand_def(TensorType)
    dim = prop_def(IntegerAttr[I64])
    offset = opt_prop_def(IntegerAttr[I64])
    from_end = opt_prop_def(UnitAttr)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = (
        "$block `into` $dest `dim` $dim `at` $position (`plus` $offset^)? (`from_end` $from_end^)? attr-dict `:` "
        "type($block) `,` type($dest) `,` type($position) `->` type($result)"
    )

    def __init__(
        self,
        block: SSAValue,
        dest: SSAValue,
        dim: int,
        position: SSAValue,
        offset: int = 0,
        *,
        from_end: bool = False,
    ) -> None:
        """`dest` with `block` in it, around `position` + `offset`."""
        properties = _place(dim, offset, from_end)
        super().__init__(operands=[block, dest, position], properties=properties, result_types=[dest.type])

    def verify_(self) -> None:
        """Checks C1 to C3."""
        if self.dest.type != self.result.type:
            raise VerifyException(f"the destination is {self.dest.type}, the result {self.result.type}")
        _check(self.dest, self.block, self.dim.value.data, self.position)


__all__ = ["BlockOp", "PutOp", "added_to_position", "block_shape", "check_position", "entry_properties"]
