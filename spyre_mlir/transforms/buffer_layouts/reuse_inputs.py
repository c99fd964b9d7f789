"""Pass `reuse-inputs`: lets results take the memory of inputs that the program reads no more.

```mlir
func.func @main(%cache: tensor<512x64x8x128xf16> {aten.name = "cache", aten.kind = "input"}, …)
    -> (tensor<512x64x8x128xf16> {aten.reuses = "cache"})
```
A result that is an input with some entries replaced, such as a cache in pages with new tokens, is written where the
input lies, if no other operator reads the input. The tensor of the caller on the host stays what it is; what was sent
for the call is gone. So it is not done for inputs that have the default layout, as other programs on the card may have
them, nor for weights.

Decision: docs/decisions/0218-entries-are-stored-in-place.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.argument_notes import (
    PREPARED_KINDS,
    kind_of,
    new_values,
    note_reuses,
    placed_arguments,
    placed_results,
)
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.module_control import called_by_control
from spyre_mlir.transforms.utils.aten_ops import unshaped
from spyre_mlir.transforms.utils.kernels.launches import called_functions
from spyre_mlir.transforms.utils.stored_entries import only_reader, stored_entries


@dataclass(frozen=True)
class ReuseInputsPass(ModulePass):
    """Notes results that take the memory of inputs."""

    name = "reuse-inputs"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at the results of every function that the host calls, control flow left out."""
        by_name = {function.sym_name.data: function for function in functions(op)}
        others = {*called_by_control(op), *called_functions(op)}
        for function in (f for name, f in by_name.items() if name not in others):
            returned = function.get_return_op()
            values = () if returned is None else returned.operands
            kept = placed_results(function) | set(new_values(function).values())
            reused = dict[int, int]()
            for number, value in enumerate(values):
                old = None if number in kept else _updated(value, by_name)
                if old is not None and _may_go(function, old):
                    reused[old.index] = number
            if reused:
                note_reuses(function, reused)


def _may_go(function: func.FuncOp, argument: BlockArgument) -> bool:
    """Whether what was sent of an argument is for one call alone."""
    kind, number = kind_of(function, argument.index), argument.index
    passing = kind is not None and kind not in PREPARED_KINDS
    return passing and number not in placed_arguments(function) and number not in new_values(function)


def _updated(value: SSAValue, by_name: Mapping[str, func.FuncOp]) -> BlockArgument | None:
    """The argument that a tensor is with entries replaced, if nothing else reads it; through calls, too."""
    value = unshaped(value)
    if isinstance(call := value.owner, func.CallOp):
        returned = by_name[call.callee.root_reference.data].get_return_op()
        inner = None if returned is None else _updated(returned.operands[call.results.index(value)], by_name)
        old = None if inner is None else call.arguments[inner.index]
        return old if isinstance(old, BlockArgument) and old.has_one_use() else None
    found = stored_entries(value)
    old = None if found is None else found.old
    return old if isinstance(old, BlockArgument) and only_reader(old) else None


__all__ = ["ReuseInputsPass"]
