"""The grid of cores, and the place of a core in it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from typing_extensions import override
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.target import spec_at

MOST_GRID_DIMENSIONS = 3  # RFC 0682; certain


def grid_of(function: FuncOp) -> tuple[int, ...]:
    """Return the grid of a function, the first dimension fastest; one core by default.

    Raises:
        VerifyException: the grid is no list of 1 to 3 positive numbers, or has more cores than the card.
    """
    given = function.attributes.get("grid")
    match given:
        case None:
            return (1,)
        case ArrayAttr():
            numbers = [one.value.data if isinstance(one, IntegerAttr) else 0 for one in given]
        case _:
            numbers = []
    if not 1 <= len(numbers) <= MOST_GRID_DIMENSIONS or min(numbers) < 1:
        raise VerifyException(f"grid is a list of 1 to {MOST_GRID_DIMENSIONS} positive numbers, got {given}")
    if prod(numbers) > (most := spec_at(function).cores_per_card):
        raise VerifyException(f"grid {numbers} has {prod(numbers)} cores, the card has {most}")
    return tuple(numbers)


def enclosing_grid(op: Operation) -> tuple[int, ...] | None:
    """Return the grid of the function around an op, None where there is none.

    Raises:
        VerifyException: the grid is not one of the card.
    """
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return None if parent is None else grid_of(parent)


@irdl_op_definition
class GetComputeTileIdOp(IRDLOperation):
    """The place of the running core in the grid, one number per dimension.

    Constraints:
        C1: as many results as the grid has dimensions, all `index`; dimensions of one core may be left out at the end.
        C2: the grid has 1 to 3 positive extents and no more cores than the card.
    """

    name = "ktdp.get_compute_tile_id"

    ids = var_result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($ids)"

    def __init__(self, dimensions: int = 1) -> None:
        """Makes the numbers of a grid of so many dimensions."""
        super().__init__(result_types=[[IndexType()] * dimensions])

    @override
    def verify_(self) -> None:
        grid = enclosing_grid(self)
        count = len(self.ids)
        if not count or (grid is not None and (count > len(grid) or prod(grid[count:]) != 1)):
            known = "" if grid is None else f", the grid is {list(grid)}"
            raise VerifyException(f"one result per dimension of the grid: {len(self.ids)} results{known}")


@irdl_op_definition
class CoreidOp(IRDLOperation):
    """The number of the core at a place of the grid; the first dimension is fastest.

    Constraints:
        C1: one operand per dimension of the grid.
    """

    name = "ktdp.coreid"

    coordinates = var_operand_def(IndexType)
    result = result_def(IndexType)

    traits = traits_def(Pure())
    assembly_format = "$coordinates attr-dict `:` type($result)"

    def __init__(self, coordinates: Sequence[SSAValue | Operation]) -> None:
        """Makes the number of the core at these coordinates."""
        super().__init__(operands=[list(coordinates)], result_types=[IndexType()])

    @override
    def verify_(self) -> None:
        grid = enclosing_grid(self)
        if grid is not None and len(self.coordinates) != len(grid):
            raise VerifyException(f"one coordinate per dimension of the grid {list(grid)}, got {len(self.coordinates)}")
