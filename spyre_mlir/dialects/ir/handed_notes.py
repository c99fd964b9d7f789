"""Notes on arguments of functions that control flow calls: what is known of the weights that callers hand them."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.dialects.argument_notes import BITS, BOUNDS, KIND, PREPARED_KINDS, kind_of, note_of
from spyre_mlir.dialects.ir.control import ControlOp


def hand_down_notes(module: ModuleOp) -> None:
    """Copy notes on weights and constants to the arguments of functions that callers hand these to.

    Args:
        module: callers stand before the functions they call; notes on arguments of `main` are there.
    """
    for caller in [op for op in module.ops if isinstance(op, func.FuncOp)]:
        for op in caller.body.block.ops:
            if isinstance(op, ControlOp):
                notes = [_handed_down(caller, value) for value in op.inputs]
                varying = op.varying_inputs
                notes[:varying] = [DictionaryAttr({})] * varying
                for function in op.functions():
                    function.arg_attrs = ArrayAttr(notes)


def _handed_down(caller: func.FuncOp, value: SSAValue) -> DictionaryAttr:
    if not isinstance(value, BlockArgument) or (kind := kind_of(caller, value.index)) not in PREPARED_KINDS:
        return DictionaryAttr({})
    found = {name: note for name in (BITS, BOUNDS) if (note := note_of(caller, value.index, name)) is not None}
    return DictionaryAttr({KIND: StringAttr(kind), **found})


__all__ = ["hand_down_notes"]
