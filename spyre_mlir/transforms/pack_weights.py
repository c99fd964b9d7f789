"""Pass `pack-weights`: products of weights of few bits become one product per digit of 32-bit words.

```mlir
%w = spyre.loop.nest [n = 1024, k = 512] ins(%weight[n, k] : tensor<1024x512xi8>) -> [n, k] : tensor<1024x512xf16>
%y = spyre.loop.nest [n = 1024, k = 512] ins(%x[0, k], %w[n, k]) -> [0, n] : tensor<1x1024xf16> reduce "arith.addf"
```
becomes four of each over 256 columns, and the products fill one tensor part by part. A part of the weight is a digit
of the words that the host makes of four such parts: its nest has the attribute `digits`, the bits of one. The words
take as many bytes as the integers. Kernels take them apart in the scratchpads, digit by digit, so all columns of a
product come from the same digit.

A weight is packed if all that reads it are such products, and if words take fewer bytes on the card than DL16 does.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, ModuleOp, TensorType, i8, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.argument_notes import BITS, PREPARED_KINDS, kind_of, new_values, note_of
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import DIGITS, EmptyOp, NestOp, body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.few_bits import BYTE, NIBBLE, Words
from spyre_mlir.hw.formats import DL16, INT32
from spyre_mlir.hw.sticks import IndexMap, LinearExpr, round_up
from spyre_mlir.transforms.aten_to_loop.nests import body_of
from spyre_mlir.transforms.loop_to_kernel.widened_order import HALF_SLICE
from spyre_mlir.transforms.utils.contractions import is_contraction
from spyre_mlir.transforms.utils.nest_parts import moved, part_of
from spyre_mlir.transforms.utils.rebuild import functions

# Of smaller weights nobody counts the bytes, and unpacking them is many kernels.
LEAST_ELEMENTS = 1 << 16
_LANES = DL16.elements_per_stick()


@dataclass(frozen=True)
class PackWeightsPass(ModulePass):
    """Divides products of weights of 8-bit and 4-bit integers by the digits of words.

    Attributes:
        enabled: whether it does.
    """

    name = "pack-weights"

    enabled: bool = True

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Divide all products of every weight that is to be packed."""
        for function in functions(op) if self.enabled else ():
            found: dict[BlockArgument, list[_Read]] = {}
            for nest in [o for o in function.body.block.ops if isinstance(o, NestOp)]:
                if (read := _read(nest)) is not None:
                    found.setdefault(read.weight, []).append(read)
            for weight, reads in found.items():
                if (bits := _bits(function, weight, reads)) is not None:
                    for read in reads:
                        _divide(read, Words(bits))


@dataclass(frozen=True)
class _Read:
    """A product, and the nests between a weight and it.

    Attributes:
        product: the product.
        operand: the number of its operand.
        chain: the nests from the weight on, each with the number of the operand before and the loop along the columns.
        column: the loop of the product along the columns.
        weight: the weight.
        dim: its dimension along the columns.
    """

    product: NestOp
    operand: int
    chain: tuple[tuple[NestOp, int, str], ...]
    column: str
    weight: BlockArgument
    dim: int

    @property
    def columns(self) -> int:
        """Columns of the product."""
        return self.product.space.extents[self.column]


def _read(product: NestOp) -> _Read | None:
    """How a product reads a weight of 8-bit integers, if it does so by nests of elements alone."""
    if product.dest is not None or len(product.inputs) != 2 or not is_contraction(product):
        return None
    maps = [m.data for m in product.input_maps]
    for operand in (1, 0):
        own, others = _names(maps[operand]), _names(maps[1 - operand])
        columns = [n for n in product.output_map.names if n in own and n not in others]
        out = [e for e in product.output_map.data if columns and columns[0] in dict(e.terms)]
        if len(columns) != 1 or out != [LinearExpr.of(columns[0])]:
            continue
        if (found := _chain(product.inputs[operand], maps[operand], columns[0])) is not None:
            chain, weight, dim = found
            return _Read(product, operand, chain, columns[0], weight, dim)
    return None


def _chain(
    value: SSAValue, index: IndexMap, column: str
) -> tuple[tuple[tuple[NestOp, int, str], ...], BlockArgument, int] | None:
    """The nests from a weight to a value that is read at `index`, the weight, and its dimension along `column`."""
    dims = [d for d, e in enumerate(index) if column in dict(e.terms)]
    if len(dims) != 1 or index[dims[0]] != LinearExpr.of(column):
        return None
    if isinstance(value, BlockArgument):
        return ((), value, dims[0]) if element_of(value) == i8 else None
    nest = value.owner
    if (
        not isinstance(nest, NestOp)
        or nest.combine is not None
        or nest.dest is not None
        or value.uses.get_length() != 1
    ):
        return None
    written = nest.output_map.data[dims[0]]
    if len(written.terms) != 1 or written != LinearExpr.of(written.terms[0][0]):
        return None
    loop = written.terms[0][0]
    if nest.space.extents[loop] != shape_of(value)[dims[0]] or not isinstance(element_of(value), AnyFloat):
        return None
    for number, (inner, at) in enumerate(zip(nest.inputs, nest.input_maps, strict=True)):
        if (found := _chain(inner, at.data, loop)) is not None:
            chain, weight, dim = found
            if not chain and not _converts_whole(nest):
                return None
            return (*chain, (nest, number, loop)), weight, dim
    return None


def _converts_whole(nest: NestOp) -> bool:
    """Whether a nest is a conversion of every element of a tensor, each to the same place."""
    (index, *_), value = nest.input_maps, nest.inputs[0]
    same = index.data == nest.output_map.data and shape_of(value) == shape_of(nest.result)
    return body_function(nest.body.block) is None and same


def _names(index: IndexMap) -> set[str]:
    return {name for expr in index for name, _ in expr.terms}


def _bits(function: func.FuncOp, weight: BlockArgument, reads: Sequence[_Read]) -> int | None:
    """The bits of a digit of a weight's words; None if it is not to be packed."""
    kept = kind_of(function, weight.index) in PREPARED_KINDS and weight.index not in new_values(function)
    if not kept or len({read.dim for read in reads}) > 1 or weight.uses.get_length() != len(reads):
        return None
    if prod(shape_of(weight)) < LEAST_ELEMENTS or any(r.columns != shape_of(weight)[r.dim] for r in reads):
        return None
    noted = note_of(function, weight.index, BITS)
    few = isinstance(noted, IntegerAttr) and noted.value.data <= NIBBLE
    possible = [bits for bits in ((BYTE, NIBBLE) if few else (BYTE,)) if _gains(reads[0], Words(bits))]
    return min(possible, key=lambda bits: _bytes(reads[0].columns, Words(bits)), default=None)


def _gains(read: _Read, words: Words) -> bool:
    """Whether words are whole, begin every stick, and take fewer bytes than DL16.

    Both sticks that a last stick is widened into have to begin with an element, so it has more than half a slice.
    """
    parts = [read.columns // words.count, *(e for d, e in enumerate(shape_of(read.weight)) if d != read.dim)]
    if read.columns % words.count or any(0 < extent % _LANES <= HALF_SLICE for extent in parts):
        return False
    return _bytes(read.columns, words) < round_up(read.columns, _LANES) * DL16.bits // 8


def _bytes(columns: int, words: Words) -> int:
    """Bytes of the words of one row of a weight, padding included."""
    return round_up(columns // words.count, _LANES) * INT32.bits // 8


def _divide(read: _Read, words: Words) -> None:
    """Put one product per digit in the place of a product, with their own nests before them."""
    product = read.product
    block, part = product.parent_block(), read.columns // words.count
    assert block is not None
    made, copies = list[Operation](), list[NestOp]()
    empty = EmptyOp(product.result.type)
    filled: SSAValue = empty.results[0]
    for number in range(words.count):
        value: SSAValue = read.weight
        columns = slice(number * part, (number + 1) * part)
        for place, (nest, operand, loop) in enumerate(read.chain):
            parts = _cut(nest, operand, loop, number * part, part)
            made += [op for cut in parts.values() for op in _new_before(cut)]
            if place > 0:
                parts[operand] = value
            made.append(copy := part_of(nest, loop, columns, parts))
            if place == 0:
                copy.attributes[DIGITS] = IntegerAttr(words.bits, i64)
            value = copy.result
        made.append(copy := part_of(product, read.column, columns, {read.operand: value}))
        copies.append(_put(copy.result, product, read.column, number * part, filled))
        filled = copies[-1].result
    # The products stay next to each other, so that one loop may have them and the kernels that all digits share.
    made += [empty, *copies]
    for op in made:
        op.location = product.location
        block.insert_op_before(op, product)
    for op in made:
        if isinstance(op, NestOp):
            _write_as_copied(op)
    product.result.replace_all_uses_with(filled)
    _erase(read)


def _erase(read: _Read) -> None:
    """Erase a product that nothing reads any more, its chain, and what only they read."""
    chain = [nest for nest, _, _ in read.chain]
    for op in (read.product, *reversed(chain)):
        unread = [v.owner for v in op.operands if isinstance(v.owner, NestOp) and v.uses.get_length() == 1]
        op.detach()
        op.erase()
        for other in unread:
            if other not in chain:
                other.detach()
                other.erase()


def _cut(nest: NestOp, operand: int, loop: str, start: int, extent: int) -> dict[int, SSAValue]:
    """Parts of the other operands that a loop walks along a dimension, as tensors: no loop of trips takes an offset."""
    found: dict[int, SSAValue] = {}
    for number, (value, index) in enumerate(zip(nest.inputs, nest.input_maps, strict=True)):
        dims = [d for d, e in enumerate(index.data) if loop in dict(e.terms)]
        if number == operand or len(dims) != 1 or index.data[dims[0]] != LinearExpr.of(loop):
            continue
        shape = [extent if d == dims[0] else e for d, e in enumerate(shape_of(value))]
        if shape_of(value)[dims[0]] != nest.space.extents[loop]:
            continue
        found[number] = _part_of(value, dims[0], start, shape)
    return found


def _new_before(value: SSAValue) -> list[Operation]:
    """The nests that make a value and are in no program yet."""
    op = value.owner
    return [*_new_before(op.inputs[0]), op] if isinstance(op, NestOp) and op.parent is None else []


def _part_of(value: SSAValue, dim: int, start: int, shape: Sequence[int]) -> SSAValue:
    """A copy of a part of a tensor along a dimension; of a converted weight a part of the weight, made by the host."""
    before, kinds = value.owner, [element_of(value)]
    if isinstance(before, NestOp) and isinstance(before.inputs[0], BlockArgument) and _converts_whole(before):
        value, kinds = before.inputs[0], [element_of(before.inputs[0]), *kinds]
    space = SpaceAttr(tuple(IterDim(f"d{d}", e) for d, e in enumerate(shape)))
    own = IndexMapAttr(tuple(LinearExpr.of(f"d{d}") for d in range(len(shape))))
    at = moved(own, f"d{dim}", start)
    for kind in kinds:
        maps = [at, own]
        value, at = NestOp(space, [value], maps, TensorType(kind, shape), body_of(None, [value], kind)).result, own
    return value


def _put(part: SSAValue, product: NestOp, column: str, start: int, dest: SSAValue) -> NestOp:
    """A copy of some columns of a product to their place in all of them."""
    index, extents = product.output_map.data, dict(product.space.extents)
    extents[column] = shape_of(part)[index.index(LinearExpr.of(column))]
    space = SpaceAttr(tuple(IterDim(d.name, extents[d.name]) for d in product.space.data if d.name in _names(index)))
    body = body_of(None, [part], element_of(part))
    maps = [IndexMapAttr(index), moved(product.output_map, column, start)]
    return NestOp(space, [part], maps, product.result.type, body, dest=dest)


def _write_as_copied(copy: NestOp) -> None:
    """Let the nest before a copy within a chain write where the copy would, if each of its loops walks a dimension."""
    value = copy.inputs[0]
    before = value.owner
    if copy.dest is not None or copy.combine is not None or body_function(copy.body.block) is not None:
        return
    if not isinstance(before, NestOp) or before.combine is not None or DIGITS in before.attributes:
        return
    written, read = before.output_map.data, copy.input_maps[0].data
    loops = [e.terms[0][0] if len(e.terms) == 1 else "" for e in (*written, *read)]
    whole = dict(zip(loops[len(written) :], shape_of(value), strict=True))
    if list(map(LinearExpr.of, loops)) != [*written, *read] or copy.space.extents != whole:
        return
    places = {own: LinearExpr.of(name) for name, own in zip(loops[: len(written)], loops[len(written) :], strict=True)}
    index = IndexMapAttr(tuple(e.at(places) for e in copy.output_map.data))
    made = NestOp(before.space, before.inputs, [*before.input_maps, index], copy.result.type, before.body.clone())
    made.wide, made.location, made.result.name_hint = before.wide, before.location, copy.result.name_hint
    made.attributes |= before.attributes
    block = before.parent_block()
    assert block is not None
    block.insert_op_before(made, before)
    copy.result.replace_all_uses_with(made.result)
    for op in (copy, before):
        op.detach()
        op.erase()


__all__ = ["LEAST_ELEMENTS", "PackWeightsPass"]
