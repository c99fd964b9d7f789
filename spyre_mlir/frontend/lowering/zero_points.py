"""Zero points of symmetric quantization: subtracting a tensor of zeros is left out, and its tensor is sent nowhere.

torchao stores zero points of symmetric weights, too: as DL16, those of groups of 32 take an eighth of the bytes of
4-bit weights. Other numbers may be bound later, so the argument gets a note, and the host looks at it at every call.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import torch
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of

# What zeros stay zeros in: their elements are moved, repeated or converted.
_MOVES = frozenset({"view", "_to_copy", "expand", "unsqueeze", "reshape", "clone", "squeeze.dim", "permute"})


def is_zero(value: torch.Tensor | None) -> bool:
    """Return whether a weight is of integers that are all zero; False if its numbers are not known."""
    if value is None or value.is_meta or value.is_floating_point() or value.is_complex() or value.dtype is torch.bool:
        return False
    return value.numel() > 0 and not bool(value.any())


def drop_zero_points(block: Block, numbers: Iterable[int], has_zeros: Callable[[int], bool]) -> dict[int, StringAttr]:
    """Replace differences of a tensor and arguments of zeros by the tensor.

    Args:
        block: of the program.
        numbers: of the arguments that no call writes.
        has_zeros: whether the elements of one are known to be zero; asked only of those that are subtracted.

    Returns:
        Per argument that is no longer read, the operator that subtracted it, for the note on it.
    """
    dropped: dict[int, StringAttr] = {}
    for number in numbers:
        users = list(_users(block.args[number]))
        differences = [op for op in users if _subtracts(op, users)]
        others = [op for op in users if op not in differences and not _moves(op)]
        if not differences or others or not has_zeros(number):
            continue
        for op in differences:
            op.results[0].replace_all_uses_with(op.operands[0])
        for op in reversed([op for op in block.ops if op in users]):
            Rewriter.erase_op(op)
        dropped[number] = StringAttr(differences[0].name)
    return dropped


def _users(value: SSAValue) -> Iterator[Operation]:
    """What reads a value, or the same elements moved."""
    for use in value.uses:
        yield use.operation
        if _moves(use.operation):
            yield from _users(use.operation.results[0])


def _moves(op: Operation) -> bool:
    return isinstance(op, AtenOp) and op.overload in _MOVES and len(op.operands) == 1 and not op.on_host


def _subtracts(op: Operation, zeros: Collection[Operation]) -> bool:
    """Return whether an op is a tensor less zeros, and gives the tensor as it is."""
    if not isinstance(op, AtenOp) or op.overload != "sub.Tensor" or len(op.operands) != 2 or op.on_host:
        return False
    minuend, other = op.operands
    if minuend.owner in zeros or minuend is other:
        return False
    return element_of(minuend) == element_of(op.results[0]) and shape_of(minuend) == shape_of(op.results[0])
