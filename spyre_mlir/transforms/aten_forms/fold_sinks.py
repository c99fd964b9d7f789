"""Pass `fold-sinks`: adds the sink of an attention head to the sum of its softmax, in place of a column of scores.

```mlir
%joined = aten.cat(%scores, %sink) {dim = -1} : (tensor<8x512x512xf16>, tensor<8x512x1xf16>) -> tensor<8x512x513xf16>
%largest, %_ = aten.max.dim(%joined) {dim = -1, keepdim = true} : (tensor<8x512x513xf16>) -> (tensor<8x512x1xf16>, …)
%less = aten.sub.Tensor(%joined, %largest) : (tensor<8x512x513xf16>, tensor<8x512x1xf16>) -> tensor<8x512x513xf16>
%all = aten.softmax.int(%less) {dim = -1} : (tensor<8x512x513xf16>) -> tensor<8x512x513xf16>
%part = aten.slice.Tensor(%all) {dim = 2, start = 0, end = -1} : (tensor<8x512x513xf16>) -> tensor<8x512x512xf16>
```
becomes
```mlir
%most = aten.amax(%scores) {dim = -1, keepdim = true} : (tensor<8x512x512xf16>) -> tensor<8x512x1xf16>
%largest = aten.maximum(%most, %sink) : (tensor<8x512x1xf16>, tensor<8x512x1xf16>) -> tensor<8x512x1xf16>
%less = aten.sub.Tensor(%scores, %largest) : (tensor<8x512x512xf16>, tensor<8x512x1xf16>) -> tensor<8x512x512xf16>
%sunk = aten.sub.Tensor(%sink, %largest) : (tensor<8x512x1xf16>, tensor<8x512x1xf16>) -> tensor<8x512x1xf16>
%part = aten.call "spyre::softmax_beside"(%less, %sunk) {dim = -1} : (…) -> tensor<8x512x512xf16>
```
A column more than whole sticks would have all scores laid out again, and once more where it is dropped.

Decision: docs/decisions/0185-a-sink-is-a-term-of-a-sum.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread, is_open
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_SOFTMAX, _LESS, _LARGEST, _JOINED = "softmax.int", "sub.Tensor", "max.dim", "cat"


@dataclass(frozen=True)
class FoldSinksPass(FunctionPass):
    """Keeps the sink of a softmax out of its scores."""

    name = "fold-sinks"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every softmax whose last column is one number that is dropped again."""
        for reader in list(function.body.block.ops):
            if isinstance(reader, AtenOp) and (found := _sink_of(reader)) is not None:
                _rewrite(reader, found)


@dataclass(frozen=True)
class _Sink:
    """A softmax over scores and a column beside them.

    Attributes:
        scores: [..., n].
        sink: [..., 1].
        softmax: the op over both.
        less: the op before that takes the largest number off; None if there is none.
    """

    scores: SSAValue
    sink: SSAValue
    softmax: AtenOp
    less: AtenOp | None


def _sink_of(reader: AtenOp) -> _Sink | None:
    """The softmax of which an op takes all but the last column, and that column's part in it."""
    softmax = _maker(reader.operands[0], _SOFTMAX) if reader.overload == "slice.Tensor" and is_open(reader) else None
    if softmax is None or not softmax.results[0].has_one_use():
        return None
    given, rank = softmax.operands[0], len(shape_of(softmax.results[0]))
    if arguments_of(softmax)["dim"] % rank != rank - 1 or element_of(given) != element_of(softmax.results[0]):
        return None
    less = _maker(given, _LESS)
    joined = _maker(given if less is None else less.operands[0], _JOINED)
    if joined is None or len(joined.operands) != 2 or arguments_of(joined)["dim"] % rank != rank - 1:
        return None
    scores, sink = joined.operands
    args, width = arguments_of(reader), shape_of(scores)[-1]
    taken = slice(args["start"], args["end"], args["step"]).indices(width + 1)
    if shape_of(sink)[-1] != 1 or args["dim"] % rank != rank - 1 or taken != (0, width, 1):
        return None
    readers = {use.operation for use in joined.results[0].uses}
    if less is not None and not _takes_largest(less, joined, readers):
        return None
    return _Sink(scores, sink, softmax, less) if less is not None or readers == {softmax} else None


def _takes_largest(less: AtenOp, joined: AtenOp, readers: set[Operation]) -> bool:
    """Whether an op takes the largest number of a row off all of them, and nothing else reads the row."""
    if len(less.operands) != 2 or arguments_of(less)["alpha"] != 1 or not less.results[0].has_one_use():
        return False
    largest = _maker(less.operands[1], _LARGEST)
    if largest is None or largest.operands[0] is not joined.results[0] or less.operands[1] is not largest.results[0]:
        return False
    args, rank = arguments_of(largest), len(shape_of(joined.results[0]))
    alone = largest.results[0].has_one_use() and not largest.results[1].uses and readers == {less, largest}
    return alone and args["keepdim"] and args["dim"] % rank == rank - 1


def _maker(value: SSAValue, overload: str) -> AtenOp | None:
    """The op that makes a value, if it is of this overload and the device's."""
    op = value.owner
    return op if isinstance(op, AtenOp) and op.overload == overload and is_open(op) else None


def _rewrite(reader: AtenOp, found: _Sink) -> None:
    writer, scores, sink = AtenWriter(reader), found.scores, found.sink
    if found.less is not None:
        most = writer.call("amax", found.less, self=scores, dim=(-1,), keepdim=True)
        largest = writer.call("maximum", found.less, self=most, other=sink)
        scores = writer.call(_LESS, found.less, self=scores, other=largest)
        sink = writer.call(_LESS, found.less, self=sink, other=largest)
    made = writer.call("spyre::softmax_beside", found.softmax, self=scores, other=sink, dim=-1)
    reader.results[0].replace_all_uses_with(made)
    erase_unread(reader)


__all__ = ["FoldSinksPass"]
