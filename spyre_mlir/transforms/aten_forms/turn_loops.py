"""Pass `turn-loops`: lets a loop over slices that are flipped begin with the last ones.

```mlir
%flipped = aten.flip(%x) {dims = [0]} : (tensor<12x8x64xf32>) -> tensor<12x8x64xf32>
%end, %rows = control.for_loop @step trips 12 carrying 1 slicing 1 (%h, %flipped) : …
%y = aten.flip(%rows) {dims = [0]} : (tensor<12x8x64xf32>) -> tensor<12x8x64xf32>
```
becomes `%end, %y = control.for_loop @step trips 12 carrying 1 slicing 1 backwards (%h, %x)`: that is what `scan` with
`reverse=True` asks for. All tensors that are sliced have to be flipped, and nothing else may read what all trips give.

Decision: docs/decisions/0197-loops-over-slices-are-loops-of-the-bundle.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, OpResult

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.control import ForLoopOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.utils.aten_ops import arguments_of, erase_unread, is_open
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_FLIP = "flip"


@dataclass(frozen=True)
class TurnLoopsPass(FunctionPass):
    """Turns loops between flips round."""

    name = "turn-loops"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Turn the loops of a function."""
        for loop in [op for op in function.body.block.ops if isinstance(op, ForLoopOp)]:
            _turn(loop)


def _turn(loop: ForLoopOp) -> None:
    """Turn a loop round, if all that it slices and gives per trip is flipped."""
    _, carried, sliced = loop.numbers
    given = [value.owner for value in loop.inputs[carried : carried + sliced]]
    readers = [use.operation for row in loop.outputs[carried:] for use in row.uses]
    if not given or not all(map(_is_flip, [*given, *readers])):
        return
    for number, value in enumerate(loop.inputs[carried : carried + sliced], carried):
        if isinstance(value, OpResult):
            loop.operands[number] = value.op.operands[0]
            erase_unread(value.op)
    for reader in readers:
        reader.results[0].replace_all_uses_with(reader.operands[0])
        erase_unread(reader)
    loop.backwards = UnitAttr() if loop.backwards is None else None


def _is_flip(op: Operation | Block) -> bool:
    """Whether an op flips the first dimension of a tensor alone."""
    if not isinstance(op, AtenOp) or op.overload != _FLIP or not is_open(op):
        return False
    first = -len(shape_of(op.operands[0]))
    return list(arguments_of(op)["dims"]) in ([0], [first])


__all__ = ["TurnLoopsPass"]
