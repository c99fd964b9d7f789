"""Rules for blocks that the host chooses: which block holds a position, and blocks of the tensors of the loop level.

Decision: docs/decisions/0139-the-host-says-where-a-block-starts.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.interpreter import Interpreter, InterpreterFunctions, PythonValues, impl, register_impls
from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.dialects.argument_notes import NAME, note_of
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp
from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, EntryOp, NamedEntry, PutOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.errors import InputError, NoRunError
from spyre_mlir.machine.arrays import Array, HostArray
from spyre_mlir.machine.faults import place_of


def block_number(op: EntryOp, given: HostArray, size: int, extent: int) -> int:
    """Return the number of the block of `size` entries, of `extent` in all, that holds the position of an op.

    Raises:
        InputError: the dimension has no such entry.
        NoRunError: positions from this one on are not the first places of the entry, where they have to be.
    """
    named = NamedEntry.of(op)
    places = extent * named.per
    numbers = given.values.reshape(-1)[named.number or 0 :][: named.run]
    place = int(numbers[0]) + named.offset
    first = -places if named.from_end else 0
    if not first <= place < places:
        one = "" if named.number is None else f"integer {named.number} of "
        called = f"{one}{_name(op.position)} plus {named.offset}" if named.offset else one + _name(op.position)
        kind = "entries" if named.per == 1 else "places"
        raise InputError(
            f"{called} is {place}, and the tensor that it points into has {kind} {first} to {places - 1}",
            where=place_of(op),
            hint="pass a position inside of the tensor, or a longer tensor",
        )
    entry = place % places // named.per
    if named.run > 1:
        _check_run(op, numbers, entry, places)
    return entry // size


def _check_run(op: EntryOp, numbers: Array, entry: int, places: int) -> None:
    """Raises NoRunError unless positions are the first places of an entry; negative ones may count from the end."""
    named = NamedEntry.of(op)
    meant = numbers + named.offset
    meant = np.where(meant < 0, meant + places, meant) if named.from_end else meant
    if (wrong := np.flatnonzero(meant != entry * named.per + np.arange(named.run))).size:
        one, number = int(wrong[0]), named.number or 0
        raise NoRunError(
            f"integer {number + one} of {_name(op.position)} is {numbers[one]}, and the program stores whole pages: "
            f"integers {number} to {number + len(numbers) - 1} have to be the places of one page in order",
            where=place_of(op),
            hint="compile the model with whole_pages=False, which stores tokens anywhere",
        )


def check_runs(main: FuncOp, arguments: Sequence[object]) -> None:
    """Look at the runs of positions that a function is called with, before anything of it runs.

    Args:
        main: the function.
        arguments: of it.

    Raises:
        InputError: a position is none of the tensor that it points into.
        NoRunError: positions are not those of whole pages, where they have to be.
    """
    seen = set[tuple[BlockArgument, NamedEntry, int]]()
    for op in main.body.block.ops:
        if not isinstance(op, BlockNumberOp) or op.run is None or not isinstance(op.position, BlockArgument):
            continue
        key = op.position, NamedEntry.of(op), op.extent.value.data
        given = arguments[op.position.index]
        if key not in seen and isinstance(given, HostArray):
            seen.add(key)
            block_number(op, given, op.size.value.data, op.extent.value.data)


def _name(position: SSAValue) -> str:
    function = position.owner.parent_op() if isinstance(position, BlockArgument) else None
    if not isinstance(position, BlockArgument) or (
        isinstance(function, FuncOp) and function.sym_visibility is not None
    ):
        return "the position"  # of a region's function: its arguments are not the program's
    name = note_of(function, position.index, NAME) if isinstance(function, FuncOp) else None
    return f"argument {position.index}" if name is None else f"argument {position.index}, {name},"


@register_impls
class BlockFunctions(InterpreterFunctions):
    """Blocks of host tensors, and the numbers of blocks."""

    @impl(BlockNumberOp)
    def run_block_number(self, _interpreter: Interpreter, op: BlockNumberOp, args: PythonValues) -> PythonValues:
        """Return the number of a block."""
        (position,) = cast(tuple[HostArray], args)
        return (block_number(op, position, op.size.value.data, op.extent.value.data),)

    @impl(BlockOp)
    def run_block(self, _interpreter: Interpreter, op: BlockOp, args: PythonValues) -> PythonValues:
        """Return a block of a tensor."""
        source, position = cast(tuple[HostArray, HostArray], args)
        box = _box(op, op.source, op.result, position)
        return (HostArray(source.values[box], None if source.defined is None else source.defined[box]),)

    @impl(PutOp)
    def run_put(self, _interpreter: Interpreter, op: PutOp, args: PythonValues) -> PythonValues:
        """Return a tensor with one block replaced."""
        block, dest, position = cast(tuple[HostArray, HostArray, HostArray], args)
        box = _box(op, op.dest, op.block, position)
        values = dest.values.copy()
        values[box] = block.values
        if dest.defined is None and block.defined is None:
            return (HostArray(values, None),)
        defined = np.ones(values.shape, np.bool_) if dest.defined is None else dest.defined.copy()
        defined[box] = True if block.defined is None else block.defined
        return (HostArray(values, defined),)


def _box(op: BlockOp | PutOp, whole: SSAValue, part: SSAValue, position: HostArray) -> tuple[slice, ...]:
    """The places of a block."""
    dim, shape = op.dim.value.data, shape_of(whole)
    size = shape_of(part)[dim]
    start = size * block_number(op, position, size, shape[dim])
    return tuple(slice(start, start + size) if d == dim else slice(None) for d in range(len(shape)))


__all__ = ["BlockFunctions", "block_number", "check_runs"]
