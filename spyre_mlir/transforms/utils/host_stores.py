"""Stores of entries in overwritten tensors at positions of the host, and their rewriting into others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.dialects.argument_notes import kind_of
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, erase_unread, unshaped
from spyre_mlir.transforms.utils.overwritten import overwritten_arguments
from spyre_mlir.transforms.utils.stored_entries import StoredEntries, host_positions, only_reader, stored_entries

# Writes the new value of one tensor of an operator.
StoreWriter = Callable[[StoredEntries], SSAValue]


def host_stores(module: ModuleOp) -> Iterator[Sequence[StoredEntries]]:
    """Yield for each function the stores in its arguments of which the host has the positions and the tensor."""
    for function, pairs, is_region in overwritten_arguments(module):
        returned = function.get_return_op()
        found = list[StoredEntries]()
        for argument, result in sorted(pairs):
            old = function.body.block.args[argument]
            one = None if returned is None else stored_entries(unshaped(returned.operands[result]))
            if one is not None and one.old is old and _is_hosts(function, one, is_region):
                found.append(one)
        yield found


def rewrite_stores(
    found: Sequence[StoredEntries], writer_of: Callable[[AtenWriter, StoredEntries], StoreWriter]
) -> None:
    """Rewrite the operators all of whose results are found.

    Args:
        found: stores of one function.
        writer_of: makes, in front of an operator, what writes its new values, from the first of them.
    """
    by_op = dict[AtenOp, list[StoredEntries]]()
    for one in found:
        by_op.setdefault(one.op, []).append(one)
    for op, stored in by_op.items():
        if len(stored) != len(op.results):
            continue
        writer = AtenWriter(op)
        write = writer_of(writer, stored[0])
        for one in stored:
            _replace(writer, one, write(one))
        erase_unread(op)


def _is_hosts(function: func.FuncOp, found: StoredEntries, is_region: bool) -> bool:
    """Whether the host has the positions, and the tensor, which nothing else reads."""
    values = found.old, host_positions(found)
    ours = all(
        isinstance(v, BlockArgument) and (not is_region or kind_of(function, v.index) is not None) for v in values
    )
    return ours and only_reader(found.old)


def _replace(writer: AtenWriter, found: StoredEntries, made: SSAValue) -> None:
    """Let readers of a new value read what is made, those of views in the shape of the tensor without a view."""
    result, shape = found.result, shape_of(made)
    made.name_hint = result.name_hint
    if shape_of(result) == shape:
        result.replace_all_uses_with(made)
        return
    for use in list(result.uses):
        view = use.operation
        if isinstance(view, AtenOp) and unshaped(view.results[0]) is result and shape_of(view.results[0]) == shape:
            view.results[0].replace_all_uses_with(made)
            erase_unread(view)
    if result.uses:
        result.replace_all_uses_with(writer.call("view", self=made, size=shape_of(result)))


__all__ = ["StoreWriter", "host_stores", "rewrite_stores"]
