"""Products that read weights of few bits through nests of elements alone, by the loop whose parts may be digits.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import AnyFloat, i8
from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.dialects.spyre.loop import NestOp, body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.sticks import IndexMap, LinearExpr
from spyre_mlir.transforms.utils.nests.contractions import is_contraction


@dataclass(frozen=True)
class WeightStep:
    """A nest between a weight and a product.

    Attributes:
        nest: the nest.
        operand: the number of its operand that the weight has become.
        loop: its loop over the parts of the weight.
        each: indices of the weight that one iteration of the loop stands for.
    """

    nest: NestOp
    operand: int
    loop: str
    each: int


@dataclass(frozen=True)
class WeightRead:
    """A product, and the nests between a weight and it.

    Attributes:
        product: the product.
        operand: the number of its operand.
        chain: the nests from the weight on.
        loop: the loop of the product whose parts are the digits: that of the sum, or the one along the columns.
        weight: the weight.
        dim: its dimension along the loop.
    """

    product: NestOp
    operand: int
    chain: tuple[WeightStep, ...]
    loop: str
    weight: BlockArgument
    dim: int

    @property
    def is_summed(self) -> bool:
        """True if each digit has a part of the sum, not of the columns."""
        return self.loop not in self.product.output_map.names

    @property
    def extent(self) -> int:
        """Iterations of the loop."""
        return self.product.space.extents[self.loop]

    @property
    def is_whole(self) -> bool:
        """True if the product reads all of the weight."""
        names = _names(self.product.input_maps[self.operand].data)
        whole = prod(self.product.space.extents[name] for name in names) == prod(shape_of(self.weight))
        return whole and self.extent == shape_of(self.weight)[self.dim]


def weight_reads(product: NestOp) -> Iterator[WeightRead]:
    """Yield how a product reads a weight of 8-bit integers: by the loop of its sum, then by that of its columns."""
    if product.dest is not None or len(product.inputs) != 2 or not is_contraction(product):
        return
    maps = [m.data for m in product.input_maps]
    for operand in (1, 0):
        own, others = _names(maps[operand]), _names(maps[1 - operand])
        columns = [n for n in product.output_map.names if n in own and n not in others]
        out = [e for e in product.output_map.data if columns and columns[0] in dict(e.terms)]
        summed = [n for n in product.space.extents if n not in product.output_map.names]
        if len(columns) != 1 or out != [LinearExpr.of(columns[0])]:
            continue
        for loop in (*(summed if len(summed) == 1 and _is_walked(maps[1 - operand], summed[0]) else ()), *columns):
            if (found := _chain(product.inputs[operand], maps[operand], product, loop)) is not None:
                chain, weight, dim = found
                yield WeightRead(product, operand, chain, loop, weight, dim)


def _is_walked(index: IndexMap, loop: str) -> bool:
    """Whether a loop walks a dimension by itself."""
    return [e for e in index if loop in dict(e.terms)] == [LinearExpr.of(loop)]


def _chain(
    value: SSAValue, index: IndexMap, reader: NestOp, loop: str
) -> tuple[tuple[WeightStep, ...], BlockArgument, int] | None:
    """The nests from a weight to a value that a nest reads, the weight, and its dimension along a loop of the nest."""
    dims = [d for d, e in enumerate(index) if loop in dict(e.terms)]
    if len(dims) != 1 or (outer := _outer(index[dims[0]], reader)) is None or outer[0] != loop:
        return None
    if outer[1] * reader.space.extents[loop] != shape_of(value)[dims[0]]:
        return None
    if isinstance(value, BlockArgument):
        return ((), value, dims[0]) if element_of(value) == i8 and outer[1] == 1 else None
    nest = value.owner
    if (
        not isinstance(nest, NestOp)
        or nest.combine is not None
        or nest.dest is not None
        or value.uses.get_length() != 1
    ):
        return None
    if (written := _outer(nest.output_map.data[dims[0]], nest)) is None or not isinstance(element_of(value), AnyFloat):
        return None
    name, each = written
    if nest.space.extents[name] * each != shape_of(value)[dims[0]]:
        return None
    for number, (inner, at) in enumerate(zip(nest.inputs, nest.input_maps, strict=True)):
        if (found := _chain(inner, at.data, nest, name)) is not None:
            chain, weight, dim = found
            if not chain and not converts_whole(nest):
                return None
            return (
                (*chain, WeightStep(nest, number, name, shape_of(weight)[dim] // nest.space.extents[name])),
                weight,
                dim,
            )
    return None


def _outer(index: LinearExpr, nest: NestOp) -> tuple[str, int] | None:
    """The loop of an index outside of its others, which fill one step of it, and that step; None if it has none."""
    if not index.terms or index.const:
        return None
    (*inner, (name, step)) = sorted(index.terms, key=lambda term: term[1])
    filled = 1
    for other, by in inner:
        if by != filled:
            return None
        filled *= nest.space.extents[other]
    return (name, step) if step == filled else None


def converts_whole(nest: NestOp) -> bool:
    """Return whether a nest is a conversion of every element of a tensor, each to the same place."""
    (index, *_), value = nest.input_maps, nest.inputs[0]
    same = index.data == nest.output_map.data and shape_of(value) == shape_of(nest.result)
    return body_function(nest.body.block) is None and same


def _names(index: IndexMap) -> set[str]:
    return {name for expr in index for name, _ in expr.terms}


__all__ = ["WeightRead", "WeightStep", "converts_whole", "weight_reads"]
