"""Pass `part-sums`: makes products that sum over joined tensors sums of products, where parts are no whole sticks.

```mlir
%joined = aten.cat(%a, %b) {dim = -1 : i64} : (tensor<512x27xf16>, tensor<512x63xf16>) -> tensor<512x90xf16>
%y = aten.linear(%joined, %w) : (tensor<512x90xf16>, tensor<256x90xf16>) -> tensor<512x256xf16>
```
becomes
```mlir
%first = aten.slice.Tensor(%w) {dim = 1 : i64, start = 0 : i64, end = 27 : i64} : (...) -> tensor<256x27xf16>
%second = aten.slice.Tensor(%w) {dim = 1 : i64, start = 27 : i64, end = 90 : i64} : (...) -> tensor<256x63xf16>
%0 = aten.linear(%a, %first) : (tensor<512x27xf16>, tensor<256x27xf16>) -> tensor<512x256xf16>
%1 = aten.linear(%b, %second) : (tensor<512x63xf16>, tensor<256x63xf16>) -> tensor<512x256xf16>
%y = aten.add.Tensor(%0, %1) : (tensor<512x256xf16>, tensor<512x256xf16>) -> tensor<512x256xf16>
```
Elements do not move within a stick, so parts that begin inside of one are laid out twice to be joined. Functions of one
tensor and normalisations between `cat` and the product are computed part by part.

Decision: docs/decisions/0219-products-of-joined-tensors-are-sums.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.argument_notes import is_prepared
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.transforms.aten_forms.recognition.convolved_images import CONVOLUTIONS, is_convolved
from spyre_mlir.transforms.aten_forms.recognition.joined_parts import JoinedParts, joined_parts
from spyre_mlir.transforms.aten_forms.recognition.part_steps import PartedSteps
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread, is_open
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LINEAR, _MATMUL = "linear", "matmul"
_LANES = DL16.elements_per_stick()
# A sum stays in the scratchpads, and takes as long for so many columns as one column takes to be laid out again.
_ADDED = 32
_MOST_PARTS = 8


@dataclass(frozen=True)
class PartSumsPass(FunctionPass):
    """Parts products whose summed dimension joins tensors of no whole sticks."""

    name = "part-sums"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite linear layers, products and convolutions of 1 x 1."""
        ops = [o for o in function.body.block.ops if isinstance(o, AtenOp) and is_open(o)]
        for op in _gaining({op: found for op in ops if (found := _found(function, op)) is not None}):
            _part(op, *(_found(function, op) or ()))  # again: a part may be the result of another product


def _gaining(every: Mapping[AtenOp, tuple[JoinedParts, ...]]) -> list[AtenOp]:
    """Products to be parted: all that read the same joined tensors, and nothing else reads these."""
    readers = dict[SSAValue, list[AtenOp]]()
    for op, found in every.items():
        for joined in found:
            readers.setdefault(joined.whole, []).append(op)
    alone = {whole for whole, ops in readers.items() if len(list(whole.uses)) == len(ops)}
    return [
        op
        for op, found in every.items()
        if alone.issuperset(joined.whole for joined in found) and _gains(found[0], readers[found[0].whole])
    ]


def _found(function: func.FuncOp, op: AtenOp) -> tuple[JoinedParts, ...] | None:
    """The joined tensor that a product sums over, and its second factor if that is joined alike; None for another."""
    if op.overload == _LINEAR or (op.overload == _MATMUL and min(len(shape_of(v)) for v in op.operands) >= 2):
        summed = len(shape_of(op.operands[0])) - 1
    elif op.overload in CONVOLUTIONS and _mixes_channels(op):
        summed = 1
    else:
        return None
    first = joined_parts(function, op.operands[0], summed)
    if first is None:
        return None
    if op.overload in CONVOLUTIONS and not all(is_convolved(part) for part in first.parts):
        return None
    weight = op.operands[1]
    if is_prepared(function, weight) and weight.has_one_use():
        return (first,)
    second = joined_parts(function, weight, len(shape_of(weight)) - 2) if op.overload == _MATMUL else None
    return (first, second) if second is not None and second.widths == first.widths else None


def _mixes_channels(op: AtenOp) -> bool:
    """Whether a convolution multiplies each place of an image by itself."""
    args = arguments_of(op)
    return args["groups"] == 1 and not args.get("transposed", False) and prod(shape_of(op.operands[1])[2:]) == 1


def _gains(joined: JoinedParts, readers: list[AtenOp]) -> bool:
    """Whether the sums of all products that read joined tensors take less than laying out the parts again."""
    groups, columns = _grouped(joined.widths), 0
    for op in readers:
        columns += shape_of(op.results[0])[1 if op.overload in CONVOLUTIONS else -1]
    more = columns * (len(groups) - 1)
    return 1 < len(groups) <= _MOST_PARTS and more <= _ADDED * round_up(sum(joined.widths), _LANES)


def _grouped(widths: list[int]) -> list[list[int]]:
    """Numbers of parts that stay joined: each but the last has whole sticks; a part of one column is by itself."""
    groups, last = list[list[int]](), 0
    for number, width in enumerate(widths):
        if groups and last % _LANES == 0 and width > 1:
            groups[-1].append(number)
            last += width
        else:
            groups.append([number])
            last = width
    return groups


def _part(op: AtenOp, first: JoinedParts, second: JoinedParts | None = None) -> None:
    """Replace a product by the sum of the products of parts."""
    writer, groups = AtenWriter(op), _grouped(first.widths)
    ends = [sum(first.widths[: group[-1] + 1]) for group in groups]
    bounds = list(zip([0, *ends[:-1]], ends, strict=True))
    factors = PartedSteps(writer, first).values(groups, bounds)
    others = None if second is None else PartedSteps(writer, second).values(groups, bounds)
    terms = list[SSAValue]()
    for number in sorted(range(len(groups)), key=lambda n: bounds[n][0] - bounds[n][1]):
        other = None if others is None else others[number]
        terms.append(_term(writer, op, factors[number], bounds[number], other, with_bias=not terms))
    total = terms[0]
    for term in terms[1:]:
        total = writer.call("add.Tensor", op, self=total, other=term)
    op.results[0].replace_all_uses_with(total)
    erase_unread(op)


def _term(
    writer: AtenWriter,
    op: AtenOp,
    factor: SSAValue,
    bounds: tuple[int, int],
    other: SSAValue | None,
    *,
    with_bias: bool,
) -> SSAValue:
    """The product of one part, whose weight the host slices; that of one column is a product of each two elements."""
    args, one = arguments_of(op), bounds[1] - bounds[0] == 1
    if op.overload == _MATMUL:
        if other is None:
            other = _slice(writer, op.operands[1], len(shape_of(op.operands[1])) - 2, bounds)
        return _outer(writer, op, factor, other) if one else writer.call(_MATMUL, op, self=factor, other=other)
    weight = _slice(writer, args["weight"], 1, bounds)
    if one and not with_bias and op.overload == _LINEAR:
        row = writer.moved("view", weight, size=shape_of(weight)[:1])
        return _outer(writer, op, factor, row)
    args["input"], args["weight"] = factor, weight
    if not with_bias:
        args["bias"] = None
    return writer.call(op.overload, op, **args)


def _slice(writer: AtenWriter, weight: SSAValue, dim: int, bounds: tuple[int, int]) -> SSAValue:
    return writer.moved("slice.Tensor", weight, dim=dim, start=bounds[0], end=bounds[1], step=1)


def _outer(writer: AtenWriter, op: AtenOp, column: SSAValue, row: SSAValue) -> SSAValue:
    """The product of a column and a row; a column or row of ones leaves the other, for the sum to repeat."""
    if _is_one(column):
        return row
    return column if _is_one(row) else writer.call("mul.Tensor", op, self=column, other=row)


def _is_one(value: SSAValue) -> bool:
    """Whether all elements are 1."""
    op = value.owner
    if isinstance(op, AtenOp) and op.overload == "permute":
        return _is_one(op.operands[0])
    return isinstance(op, AtenOp) and op.overload in ("ones", "ones_like")


__all__ = ["PartSumsPass"]
