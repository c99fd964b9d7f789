"""Row loops of one kernel: those that walk each operand from its first rows to its last.

Decision: docs/decisions/0240-pages-stay-in-the-scratchpads.md
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from types import MappingProxyType

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_facts import fact
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.spyre.kernel_loop import buffer_behind
from spyre_mlir.hw.sticks import IndexMap

Rows = tuple[int | None, ...]  # per operand, the dimension that the rows walk; None for an operand without rows


def pieces_of(op: kernel.KernelOp, loop: str, rows: Rows) -> int:
    """Return into how many blocks of rows an op can be cut that keep sticks whole."""
    counts = [op.space.extents[loop]]
    for tensor, dim in zip(op.tensors, rows, strict=True):
        if dim is not None and dim == tensor.layout.stick:
            whole, rest = divmod(tensor.shape[dim], tensor.block)
            counts.append(1 if rest else whole)
    return gcd(*counts)


@fact
def row_loops(op: kernel.KernelOp) -> Mapping[str, Rows]:
    """Return the candidate row loops of an op, with the dimensions they traverse in its operands."""
    found: dict[str, Rows] = {}
    # The table of a gather starts at one address for all rows, so that no loop walks it.
    whole = op.maps.data[1].names if isinstance(op, GatherOp) else frozenset[str]()
    for dim in op.space.data:
        if dim.name in whole:
            continue
        if dim.extent > 1 and (rows := _rows(op, dim.name)) is not None and rows[-1] is not None:
            found[dim.name] = rows
    return MappingProxyType(found)


@fact
def reads_beside(op: kernel.KernelOp) -> Mapping[str, frozenset[int]]:
    """Return, by row loop, the numbers of the operands of which an op reads rows beside those that it is at."""
    found: dict[str, frozenset[int]] = {}
    for name, rows in row_loops(op).items():
        walks = zip(op.tensors, op.maps.data, rows, strict=True)
        beside = [
            number
            for number, (tensor, index, dim) in enumerate(walks)
            if dim is not None and not _walks_blocks(index.data, dim, name, tensor.shape[dim], op.space.extents)
        ]
        if beside:
            found[name] = frozenset(beside)
    return MappingProxyType(found)


def _rows(op: kernel.KernelOp, name: str) -> Rows | None:
    """Return the access of a loop; None if it does not traverse an operand from its first rows to its last."""
    found: list[int | None] = []
    for number, (tensor, index) in enumerate(zip(op.tensors, op.maps.data, strict=True)):
        walked = [d for d, expr in enumerate(index.data) if any(n == name for n, _ in expr.terms)]
        if not walked:
            found.append(None)
            continue
        dim, *more = walked
        if more or dim >= len(tensor.shape) or tensor.layout.unit_extent != 1:
            return None
        if not _walks_blocks(index.data, dim, name, tensor.shape[dim], op.space.extents):
            own = buffer_behind(op.operands[number]) is buffer_behind(op.output)
            if own or dim == tensor.layout.stick:
                return None
        found.append(dim)
    return tuple(found)


def _walks_blocks(index: IndexMap, dim: int, name: str, size: int, extents: Mapping[str, int]) -> bool:
    """Return whether each step of a loop is a block of a dimension, the blocks side by side."""
    expr = index[dim]
    step = next(c for n, c in expr.terms if n == name)
    within = sum(c * (extents[n] - 1) for n, c in expr.terms if n != name)
    return expr.const == 0 and step * extents[name] == size and within < step and all(c > 0 for _, c in expr.terms)


__all__ = ["Rows", "pieces_of", "reads_beside", "row_loops"]
