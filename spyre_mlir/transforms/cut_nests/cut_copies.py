"""Pass `cut-copies`: copies in two steps what one copy moves element by element.

```mlir
%y = spyre.loop.nest [t = 100, b = 4, h = 8, c = 32] ins(%x[b, h, t, c]) -> [t * 4 + b, h * 32 + c] : ...
```
becomes
```mlir
%heads = spyre.loop.nest [t = 100, b = 4, h = 8, c = 32] ins(%x[b, h, t, c]) -> [t, b, h * 32 + c] : ...
%y = spyre.loop.nest [d0 = 100, d1 = 4, d2 = 256] ins(%heads[d0, d1, d2]) -> [d0 * 4 + d1, d2] : ...
```
A kernel has one loop in the lanes of what it reads and of what it writes. A copy that merges several dimensions of its
result may have none: then every element gets a stick of its own, 64 times the bytes. Merged one after the other, each
step has a loop for the lanes, and a change of layout between them moves whole sticks.

Decision: docs/decisions/0221-copies-in-two-steps.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, Float8E4M3FNType, TensorType
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.legality import stick_for
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import UNIT, LinearExpr
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import is_copy, nest_like

_LANES = DL16.elements_per_stick()


@dataclass(frozen=True)
class CutCopiesPass(FunctionPass):
    """Cuts copies that have no loop for the lanes in two."""

    name = "cut-copies"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Cut every copy of floats where both steps have a loop for the lanes."""
        for nest in [o for o in function.body.block.ops if isinstance(o, NestOp)]:
            if _moves_floats(nest) and (kept := _dim_to_keep(nest)) is not None:
                _cut(nest, kept)


def _moves_floats(nest: NestOp) -> bool:
    """Whether a nest copies floats, each of which it writes once, into a tensor of its own."""
    element = element_of(nest.result)
    floats = isinstance(element, AnyFloat) and not isinstance(element, Float8E4M3FNType)
    if not floats or not is_copy(nest) or nest.dest is not None or hint_of(nest) is not None:
        return False
    return prod(shape_of(nest.result)) == prod(nest.space.extents.values())


def _dim_to_keep(nest: NestOp) -> int | None:
    """The dimension of the result whose loops a first step keeps apart; None if one copy does, or no two do."""
    source, result, extents = nest.input_maps[0].data, nest.output_map.data, nest.space.extents
    walked = [name for name in extents if extents[name] > 1 and stick_for(source, name, _LANES) not in (None, UNIT)]
    if not walked or any(stick_for(result, name, _LANES) is not None for name in walked):
        return None
    elements, best = prod(extents.values()), None
    least = elements // 2  # of sticks: fewer than those of one copy, each of an element, by far
    for dim, expr in enumerate(result):
        if len(expr.terms) < 2 or prod(shape_of(nest.result)) == shape_of(nest.result)[dim]:
            continue
        for name in (n for n, _ in expr.terms if n in walked):
            sticks = elements // extents[name] * -(-extents[name] // _LANES)
            if sticks < least:
                least, best = sticks, dim
    return best


def _cut(nest: NestOp, kept: int) -> None:
    """Merge the loops of all dimensions but one first, and then those of this one."""
    extents, dims, first = nest.space.extents, list[IterDim](), list[LinearExpr]()
    own = list[list[tuple[str, int]]]()  # by dimension of the result, loops of the second step and their steps
    for dim, (expr, size) in enumerate(zip(nest.output_map.data, shape_of(nest.result), strict=True)):
        merged = sorted(expr.terms, key=lambda term: -term[1]) if dim == kept else []
        first += [LinearExpr.of(name) for name, _ in merged] or [expr]
        made = [IterDim(f"d{len(dims) + n}", extents[name]) for n, (name, _) in enumerate(merged)]
        made = made or [IterDim(f"d{len(dims)}", size)]
        own.append([(loop.name, step) for loop, (_, step) in zip(made, merged or [("", 1)], strict=True)])
        dims += made
    kind = TensorType(element_of(nest.result), [d.extent for d in dims])
    parted = nest_like(nest, nest.space, nest.inputs, [nest.input_maps[0], IndexMapAttr(tuple(first))], kind)
    walked = IndexMapAttr(tuple(LinearExpr.of(d.name) for d in dims))
    written = IndexMapAttr(tuple(LinearExpr(0, tuple(terms)) for terms in own))
    joined = nest_like(nest, SpaceAttr(tuple(dims)), [parted.result], [walked, written], nest.result.type)
    for op in (parted, joined):
        Rewriter.insert_op(op, InsertPoint.before(nest))
    Rewriter.replace_op(nest, [], [joined.result])


__all__ = ["CutCopiesPass"]
