"""Pass `join-parts`: nests that compute parts of one tensor alike, element by element, become one nest over all of it.

```mlir
%a = spyre.loop.nest [i = 4, j = 64] ins(%x[i, j] : tensor<8x64xf16>, %c[])     -> [i, j] : tensor<4x64xf16> {...}
%b = spyre.loop.nest [i = 4, j = 64] ins(%x[i + 4, j] : tensor<8x64xf16>, %c[]) -> [i, j] : tensor<4x64xf16> {...}
```
become one nest behind the nest that makes `%x`, and their readers read parts of its result. So each element is
computed where it is made, and goes through device memory once instead of twice. Parts of rows stay apart, because their
readers may want layouts of their own, and so do parts of what the host sends: a kernel has to read them first.

Decision: docs/decisions/0181-parts-are-computed-together.md
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.boxes import box_of, overlap
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import LoopConstantOp, NestOp, body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import nest_like


@dataclass(frozen=True)
class JoinPartsPass(FunctionPass):
    """Joins nests that compute all parts of one tensor alike."""

    name = "join-parts"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Join the parts of every tensor, producers before their readers."""
        for nest in [o for o in function.body.block.ops if isinstance(o, NestOp)]:
            if (parts := _parts(nest.result)) is not None:
                _join(nest, parts)


def _parts(value: SSAValue) -> list[NestOp] | None:
    """The nests that compute all of a tensor between them, each whole rows of it; None if there are no such nests."""
    found = list[NestOp]()
    for use in value.uses:
        nest = use.operation
        if not isinstance(nest, NestOp) or use.index != 0 or not _computes_a_part(nest):
            return None
        found.append(nest)
    if len(found) < 2 or not all(_are_alike(found[0], other) for other in found[1:]):
        return None
    boxes = [box_of(nest, nest.input_maps[0]) for nest in found]
    covered = sum(prod(shape_of(nest.result)) for nest in found) == prod(shape_of(value))
    return found if covered and not any(overlap(a, b) for a, b in combinations(boxes, 2)) else None


def _computes_a_part(nest: NestOp) -> bool:
    """Whether a nest applies a function to whole rows of its first input, with constants, for nests alone."""
    if nest.combine is not None or nest.dest is not None or hint_of(nest) is not None:
        return False
    if body_function(nest.body.block) is None or not all(isinstance(v.owner, LoopConstantOp) for v in nest.inputs[1:]):
        return False
    value, read = nest.inputs[0], nest.input_maps[0].data
    walked = [LinearExpr(0, expr.terms) for expr in read]
    single = all(not e.terms or e == LinearExpr.of(e.terms[0][0]) for e in walked)
    if not single or tuple(walked) != nest.output_map.data or shape_of(nest.result)[-1:] != shape_of(value)[-1:]:
        return False
    return all(isinstance(u.operation, NestOp) and u.index < len(u.operation.inputs) for u in nest.result.uses)


def _are_alike(one: NestOp, other: NestOp) -> bool:
    """Whether two nests compute the same of their first inputs."""
    constants = zip(one.inputs[1:], other.inputs[1:], strict=True)
    return (
        len(one.inputs) == len(other.inputs)
        and element_of(one.result) == element_of(other.result)
        and one.wide == other.wide
        and one.body.is_structurally_equivalent(other.body)
        and all(_is_same_constant(a, b) for a, b in constants)
    )


def _is_same_constant(one: SSAValue, other: SSAValue) -> bool:
    a, b = one.owner, other.owner
    return (
        isinstance(a, Operation)
        and isinstance(b, Operation)
        and a.properties == b.properties
        and one.type == other.type
    )


def _join(maker: NestOp, parts: list[NestOp]) -> None:
    """Put a nest over a whole tensor behind its maker, in the place of those over its parts."""
    first, value, block = parts[0], maker.result, maker.parent_block()
    assert block is not None
    shape = shape_of(value)
    dims = [f"d{n}" for n in range(len(shape))]
    index = IndexMapAttr(tuple(LinearExpr.of(d) if e > 1 else LinearExpr() for d, e in zip(dims, shape, strict=True)))
    space = SpaceAttr(tuple(IterDim(d, e) for d, e in zip(dims, shape, strict=True) if e > 1))
    constants = [v.owner.clone() for v in first.inputs[1:] if isinstance(v.owner, LoopConstantOp)]
    inputs = [value, *(op.results[0] for op in constants)]
    maps = [index, *first.input_maps[1:], index]
    made = nest_like(first, space, inputs, maps, TensorType(element_of(first.result), shape))
    for op, given in zip(constants, first.inputs[1:], strict=True):
        op.location = given.owner.location if isinstance(given.owner, Operation) else first.location
    block.insert_ops_after([*constants, made], maker)
    for part in parts:
        starts = [expr.const for expr in part.input_maps[0].data]
        for use in list(part.result.uses):
            reader = use.operation
            assert isinstance(reader, NestOp)
            moved = tuple(e.shifted(s) for e, s in zip(reader.input_maps[use.index].data, starts, strict=True))
            reader.maps = ArrayAttr(
                [IndexMapAttr(moved) if n == use.index else m for n, m in enumerate(reader.maps.data)]
            )
            reader.operands[use.index] = made.result
        Rewriter.erase_op(part)


__all__ = ["JoinPartsPass"]
