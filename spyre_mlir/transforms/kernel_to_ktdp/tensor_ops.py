"""Shape ops on tensors of KTIR programs; identity ops are not written."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IntegerAttr, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.utils.dynamic_index_list import split_dynamic_index_list
from xdsl.ir import SSAValue

from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Code, element_of, shape_of, tensor_of


def reshaped(code: Code, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """Return a tensor of the same elements in the same order with other dimensions."""
    have, shape = shape_of(value), tuple(shape)
    groups = _common_groups(have, shape)
    merged = [prod(have[d] for d in group) for group, _ in groups]
    if tuple(merged) != have:
        op = tensor.CollapseShapeOp.build(
            operands=[value],
            result_types=[tensor_of(element_of(value), merged)],
            properties={"reassociation": _attribute([group for group, _ in groups])},
        )
        value = code.add(op)
    if tuple(merged) != shape:
        places = _attribute([group for _, group in groups])
        value = code.add(tensor.ExpandShapeOp(value, [], places, list(shape), tensor_of(element_of(value), shape)))
    return value


def _common_groups(have: Sequence[int], want: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The finest groups of neighbouring dimensions that have equally many elements on both sides."""
    groups, left, right = list[tuple[list[int], list[int]]](), 0, 0
    while left < len(have) and right < len(want):
        group, other = [left], [right]
        while (a := prod(have[d] for d in group)) != (b := prod(want[d] for d in other)):
            if a < b:
                group.append(group[-1] + 1)
            else:
                other.append(other[-1] + 1)
        groups.append((group, other))
        left, right = group[-1] + 1, other[-1] + 1
    groups[-1][0].extend(range(left, len(have)))  # units
    groups[-1][1].extend(range(right, len(want)))
    return groups


def _attribute(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr([ArrayAttr([IntegerAttr(d, i64) for d in g]) for g in groups])


def transposed(code: Code, value: SSAValue, order: Sequence[int]) -> SSAValue:
    """Return a tensor whose dimension `d` is the source's dimension `order[d]`."""
    if list(order) == sorted(order):
        return value
    shape = shape_of(value)
    into = code.empty(element_of(value), [shape[d] for d in order])
    return code.add(linalg.TransposeOp(value, into, DenseArrayBase.from_list(i64, list(order))))


def cut(code: Code, value: SSAValue, first: Sequence[int | SSAValue], sizes: Sequence[int]) -> SSAValue:
    """Return a box of a tensor."""
    if shape_of(value) == tuple(sizes):
        return value
    starts = [_start(one) for one in first]
    kind = tensor_of(element_of(value), sizes)
    return code.add(tensor.ExtractSliceOp(value, starts, list(sizes), [1] * len(sizes), kind))


def inserted(code: Code, value: SSAValue, into: SSAValue, first: Sequence[int | SSAValue]) -> SSAValue:
    """Return a tensor with a box of it replaced."""
    sizes = shape_of(value)
    if sizes == shape_of(into):
        return value
    places, offsets = split_dynamic_index_list([_start(one) for one in first], DYNAMIC_INDEX)
    return code.add(
        tensor.InsertSliceOp.build(
            operands=[value, into, offsets, [], []],
            result_types=[into.type],
            properties={
                "static_offsets": DenseArrayBase.from_list(i64, places),
                "static_sizes": DenseArrayBase.from_list(i64, list(sizes)),
                "static_strides": DenseArrayBase.from_list(i64, [1] * len(sizes)),
            },
        )
    )


def _start(value: int | SSAValue) -> int | SSAValue:
    """A number where it is known."""
    if isinstance(value, int) or not isinstance(op := value.owner, arith.ConstantOp):
        return value
    return op.value.value.data if isinstance(op.value, IntegerAttr) else value


__all__ = ["cut", "inserted", "reshaped", "transposed"]
