"""Pass `scale-results`: applies scales of few-bit weights to the results of the products that read the weights.

```mlir
%w = spyre.loop.nest [...] ins(%weight[n, k] : tensor<512x1024xf8E4M3FN>) -> [n, k] : tensor<512x1024xf16> {...}
%y = spyre.loop.nest [n = 512, k = 1024] ins(%x[0, k], %w[n, k]) -> [0, n] : tensor<1x512xf16> reduce "arith.addf" {...}
%z = spyre.loop.nest [n = 512] ins(%y[0, n], %scale[n, 0]) -> [0, n] : tensor<1x512xf16> {...}
```
A scale that the summed loop does not walk, of a row of a linear layer's weight or of all of it, is the same factor of
every term. The result has far fewer elements than the weight where few rows are multiplied, and the weight goes from
its conversion to the product without a tensor between. A scale per group of summed elements stays where it is, and so
does every scale if the result has more elements than the weight.

Decision: docs/decisions/0156-narrow-weights-stay-narrow.md
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float16Type,
    Float32Type,
    TensorType,
    UnitAttr,
    i8,
)
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import NestOp, body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import IndexMap, LinearExpr
from spyre_mlir.ops.native import pointwise
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.transforms.aten_to_loop.nests import body_of
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.contractions import is_contraction

# Element types of what is made of a weight; a conversion to any other rounds on purpose.
_WIDE = Float16Type | BFloat16Type | Float32Type


@dataclass(frozen=True)
class ScaleResultsPass(FunctionPass):
    """Moves scales of weights of few bits behind the products that read them."""

    name = "scale-results"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every product of a scaled weight that gains by it."""
        for nest in [o for o in function.body.block.ops if isinstance(o, NestOp)]:
            if _is_product(nest):
                _rewrite(nest)


@dataclass(frozen=True)
class _Scaled:
    """A weight as a product reads it.

    Attributes:
        weight: of few bits.
        index: its map, in the loops of the product.
        scales: factors of it, with their maps.
    """

    weight: SSAValue
    index: IndexMap
    scales: tuple[tuple[SSAValue, IndexMap], ...] = ()


def _is_product(nest: NestOp) -> bool:
    return nest.dest is None and len(nest.inputs) == 2 and is_contraction(nest)


def _rewrite(product: NestOp) -> None:
    kept = product.output_map.names
    for number, (value, index) in enumerate(zip(product.inputs, product.input_maps, strict=True)):
        found = _scaled(value, index.data, kept)
        if found is not None and found.scales and prod(shape_of(product.result)) <= prod(shape_of(found.weight)):
            _replace(product, number, found)
            return


def _scaled(value: SSAValue, index: IndexMap, kept: Collection[str]) -> _Scaled | None:
    """The weight of few bits behind a value, if all that happens to it are conversions, and scales along kept loops."""
    nest = value.owner
    if isinstance(value, BlockArgument):
        return (
            _Scaled(value, index)
            if isinstance(element_of(value), Float8E4M3FNType) or element_of(value) == i8
            else None
        )
    if not isinstance(nest, NestOp) or nest.combine is not None or nest.dest is not None:
        return None
    places = _places(nest.output_map.data, index)
    if places is None or not isinstance(element_of(value), _WIDE) or value.uses.get_length() != 1:
        return None
    given = [(v, tuple(e.at(places) for e in m.data)) for v, m in zip(nest.inputs, nest.input_maps, strict=True)]
    entry = body_function(nest.body.block)
    if entry is None:
        return _scaled(*given[0], kept)
    if entry is not pointwise.mul:
        return None
    for (inner, at), scale in ((given[0], given[1]), (given[1], given[0])):
        found = _scaled(inner, at, kept) if _names(scale[1]) <= set(kept) else None
        if found is not None:
            return replace(found, scales=(*found.scales, scale))
    return None


def _places(written: IndexMap, index: IndexMap) -> dict[str, LinearExpr] | None:
    """Where the loops of a nest are when its result is read at `index`; None if it does not write each by one loop."""
    found = dict[str, LinearExpr]()
    for own, at in zip(written, index, strict=True):
        name = own.terms[0][0] if len(own.terms) == 1 else ""
        if own != (LinearExpr.of(name) if name else LinearExpr()) or name in found:
            return None
        if name:
            found[name] = at
    return found


def _names(index: IndexMap) -> set[str]:
    return {name for expr in index for name, _ in expr.terms}


def _replace(product: NestOp, number: int, found: _Scaled) -> None:
    made, element = list[NestOp](), element_of(product.inputs[number])

    def converted(value: SSAValue) -> SSAValue:
        if element_of(value) == element:
            return value
        shape = shape_of(value)
        loops = [IterDim(f"d{n}", extent) for n, extent in enumerate(shape)]
        index = tuple(LinearExpr.of(d.name) for d in loops)
        made.append(_nest(loops, [(value, index)], index, TensorType(element, shape), None))
        return made[-1].result

    inputs, maps = list(product.inputs), [m.data for m in product.input_maps]
    inputs[number], maps[number] = converted(found.weight), found.index
    out, type_ = product.output_map.data, product.result.type
    loops = [d for d in product.space.data if d.name in product.output_map.names]
    space, read = product.space.data, list(zip(inputs, maps, strict=True))
    made.append(_nest(space, read, out, type_, pointwise.mul, product.combine and product.combine.data))
    for scale, at in found.scales:
        factor = converted(scale)
        last = next(nest for nest in reversed(made) if nest.result.type == type_ and nest.result is not factor)
        made.append(_nest(loops, [(last.result, out), (factor, at)], out, type_, pointwise.mul))
    for nest in made[:-1]:
        nest.wide = UnitAttr() if isinstance(element_of(nest.result), Float32Type) else None
    made[-1].wide = product.wide
    _put(made, product)


def _nest(
    loops: Sequence[IterDim],
    inputs: Sequence[tuple[SSAValue, IndexMap]],
    out: IndexMap,
    type_: TensorType[Attribute],
    entry: OpEntry | None,
    combine: str | None = None,
) -> NestOp:
    values = [value for value, _ in inputs]
    maps = [IndexMapAttr(index) for index in (*(index for _, index in inputs), out)]
    body = body_of(entry, values, type_.get_element_type())
    return NestOp(SpaceAttr(tuple(loops)), values, maps, type_, body, combine=combine)


def _put(made: Sequence[NestOp], product: NestOp) -> None:
    """Put nests in the place of a product, and drop what only it read."""
    block = product.parent_block()
    assert block is not None
    for nest in made:
        nest.location = product.location
        nest.attributes.update(product.attributes)
        block.insert_op_before(nest, product)
    product.result.replace_all_uses_with(made[-1].result)
    unread: list[Operation] = [product]
    while unread:
        op = unread.pop()
        owners = [v.owner for v in op.operands if isinstance(v.owner, NestOp)]
        Rewriter.erase_op(op)
        unread += [o for o in dict.fromkeys(owners) if not any(r.uses.get_length() for r in o.results)]


__all__ = ["ScaleResultsPass"]
