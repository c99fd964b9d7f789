"""Pass `pack-weights`: products of weights of few bits become one product per digit of 32-bit words.

```mlir
%w = spyre.loop.nest [n = 1024, k = 512] ins(%weight[n, k] : tensor<1024x512xi8>) -> [n, k] : tensor<1024x512xf16>
%y = spyre.loop.nest [n = 1024, k = 512] ins(%x[0, k], %w[n, k]) -> [0, n] : tensor<1x1024xf16> reduce "arith.addf"
```
becomes four of each over a sum of 128, and the products are added up. A part of the weight is a digit of the words that
the host makes of four such parts: its nest has the attribute `digits`, the bits of one. The words take as many bytes as
the integers. Kernels take them apart in the scratchpads, digit by digit, so one product reads one digit.

Every digit is multiplied by all columns, so cores have columns of their own and no sum is divided over them. A long sum
is in blocks with words of their own, so that a core has room for a stick of columns. Where parts of the sum would be no
whole sticks or groups of a scale, or need more bits, the digits are parts of the columns instead, and products fill one
tensor part by part.

A weight is packed if all that reads it are such products, and if words take fewer bytes on the card than DL16 does.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.argument_notes import BITS, PREPARED_KINDS, kind_of, new_values, note_of
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import DIGITS, EmptyOp, NestOp, body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.few_bits import BYTE, NIBBLE, Words
from spyre_mlir.hw.formats import DL16, INT32
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr, round_up
from spyre_mlir.ops.native import pointwise
from spyre_mlir.transforms.aten_to_loop.nests import body_of
from spyre_mlir.transforms.loop_to_kernel.widened_order import HALF_SLICE
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import moved, nest_like, part_of
from spyre_mlir.transforms.utils.nests.weight_reads import WeightRead, WeightStep, converts_whole, weight_reads

# Of smaller weights nobody counts the bytes, and unpacking them is many kernels.
LEAST_ELEMENTS = 1 << 16
_LANES = DL16.elements_per_stick()
# Buffers of words and of floats that a core holds at a time while it takes words apart, with what products make.
_BUFFERS = 6


@dataclass(frozen=True)
class PackWeightsPass(FunctionPass):
    """Divides products of weights of 8-bit and 4-bit integers by the digits of words."""

    name = "pack-weights"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Divide all products of every weight that is to be packed."""
        rows = spec.lx_usable_bytes // (_BUFFERS * _LANES * INT32.bits // 8)
        found: dict[BlockArgument, dict[bool, list[WeightRead]]] = {}
        for nest in [o for o in function.body.block.ops if isinstance(o, NestOp)]:
            for read in weight_reads(nest):
                found.setdefault(read.weight, {}).setdefault(read.is_summed, []).append(read)
        for weight, ways in found.items():
            # With equal bits, parts of the sum are better: each is multiplied by all columns.
            bits = {w: n for w in (True, False) if (n := _bits(function, weight, ways.get(w, ())))}
            if bits:
                chosen = min(bits, key=lambda way: bits[way])
                for read in ways[chosen]:
                    _divide(read, Words(bits[chosen]), rows)


def _bits(function: func.FuncOp, weight: BlockArgument, reads: Sequence[WeightRead]) -> int | None:
    """The bits of a digit of a weight's words; None if it is not to be packed."""
    kept = kind_of(function, weight.index) in PREPARED_KINDS and weight.index not in new_values(function)
    if not kept or len({read.dim for read in reads}) != 1 or weight.uses.get_length() != len(reads):
        return None
    if prod(shape_of(weight)) < LEAST_ELEMENTS or any(not r.is_whole for r in reads):
        return None
    noted = note_of(function, weight.index, BITS)
    few = isinstance(noted, IntegerAttr) and noted.value.data <= NIBBLE
    possible = [bits for bits in ((BYTE, NIBBLE) if few else (BYTE,)) if all(_gains(r, Words(bits)) for r in reads)]
    return min(possible, key=lambda bits: _bytes(reads[0], Words(bits)), default=None)


def _gains(read: WeightRead, words: Words) -> bool:
    """Whether words are whole, begin every stick, and take fewer bytes than DL16.

    Both sticks that a last stick is widened into have to begin with an element, so it has more than half a slice.
    """
    part, rest = divmod(read.extent, words.count)
    parts = [part, *(e for d, e in enumerate(shape_of(read.weight)) if d != read.dim)]
    if rest or any(0 < extent % _LANES <= HALF_SLICE for extent in parts):
        return False
    if any(part % step.each for step in read.chain) or (read.is_summed and part % _LANES):
        return False
    return _bytes(read, words) < _sticks_wide(read, read.extent) * DL16.bits // 8


def _bytes(read: WeightRead, words: Words) -> int:
    """Bytes of the words of a weight, padding included."""
    return _sticks_wide(read, read.extent // words.count) * INT32.bits // 8


def _blocks(read: WeightRead, words: Words, rows: int) -> int:
    """Blocks of a sum that have words of their own, of no more than so many rows if they can be cut so small."""
    if not read.is_summed:
        return 1
    part = read.extent // words.count
    cuts = (n for n in divisors(part // _LANES, part // _LANES) if not any(part // n % s.each for s in read.chain))
    return next((n for n in cuts if part // n <= rows), 1)


def _sticks_wide(read: WeightRead, extent: int) -> int:
    """Elements of so many iterations of the loop, with the columns of a product in sticks."""
    if not read.is_summed:
        return round_up(extent, _LANES)
    return extent * round_up(prod(shape_of(read.weight)) // read.extent, _LANES)


def _divide(read: WeightRead, words: Words, rows: int) -> None:
    """Put one product per digit in the place of a product, with their own nests before them."""
    product = read.product
    block, digits = product.parent_block(), words.count * _blocks(read, words, rows)
    part = read.extent // digits
    assert block is not None
    made, copies = list[Operation](), list[NestOp]()
    empty = EmptyOp(product.result.type)
    filled: SSAValue | None = None
    for number in range(digits):
        value: SSAValue = read.weight
        columns = slice(number * part, (number + 1) * part)
        for place, step in enumerate(read.chain):
            taken = slice(columns.start // step.each, columns.stop // step.each)
            parts = _cut(step, taken)
            made += [op for cut in parts.values() for op in _new_before(cut)]
            if place > 0:
                parts[step.operand] = value
            made.append(copy := part_of(step.nest, step.loop, taken, parts))
            if place == 0:
                copy.attributes[DIGITS] = IntegerAttr(words.bits, i64)
            value = copy.result
        made.append(copy := part_of(product, read.loop, columns, {read.operand: value}))
        if not read.is_summed:
            copies.append(_put(copy.result, read, columns.start, empty.results[0] if filled is None else filled))
            filled = copies[-1].result
        elif filled is None:
            filled = copy.result
        else:
            made.append(copy := _added(filled, copy.result))
            filled = copy.result
    # The products stay next to each other, so that one loop may have them and the kernels that all digits share.
    made += [empty, *copies] if copies else []
    for op in made:
        op.location = product.location
        block.insert_op_before(op, product)
    for op in made:
        if isinstance(op, NestOp):
            _write_as_copied(op)
    assert filled is not None
    product.result.replace_all_uses_with(filled)
    _erase(read)


def _erase(read: WeightRead) -> None:
    """Erase a product that nothing reads any more, its chain, and what only they read."""
    chain = [step.nest for step in read.chain]
    for op in (read.product, *reversed(chain)):
        unread = [v.owner for v in op.operands if isinstance(v.owner, NestOp) and v.uses.get_length() == 1]
        Rewriter.erase_op(op)
        for other in unread:
            if other not in chain:
                Rewriter.erase_op(other)


def _cut(step: WeightStep, taken: slice) -> dict[int, SSAValue]:
    """Parts of the other operands that a loop walks along a dimension, as tensors: no loop of trips takes an offset."""
    nest, found = step.nest, dict[int, SSAValue]()
    for number, (value, index) in enumerate(zip(nest.inputs, nest.input_maps, strict=True)):
        dims = [d for d, e in enumerate(index.data) if step.loop in dict(e.terms)]
        if number == step.operand or len(dims) != 1 or index.data[dims[0]] != LinearExpr.of(step.loop):
            continue
        shape = [taken.stop - taken.start if d == dims[0] else e for d, e in enumerate(shape_of(value))]
        if shape_of(value)[dims[0]] != nest.space.extents[step.loop]:
            continue
        found[number] = _part_of(value, dims[0], taken.start, shape)
    return found


def _new_before(value: SSAValue) -> list[Operation]:
    """The nests that make a value and are in no program yet."""
    op = value.owner
    return [*_new_before(op.inputs[0]), op] if isinstance(op, NestOp) and op.parent is None else []


def _part_of(value: SSAValue, dim: int, start: int, shape: Sequence[int]) -> SSAValue:
    """A copy of a part of a tensor along a dimension; of a converted weight a part of the weight, made by the host."""
    before, kinds = value.owner, [element_of(value)]
    if isinstance(before, NestOp) and isinstance(before.inputs[0], BlockArgument) and converts_whole(before):
        value, kinds = before.inputs[0], [element_of(before.inputs[0]), *kinds]
    space = SpaceAttr(tuple(IterDim(f"d{d}", e) for d, e in enumerate(shape)))
    own = IndexMapAttr(tuple(LinearExpr.of(f"d{d}") for d in range(len(shape))))
    at = moved(own, f"d{dim}", start)
    for kind in kinds:
        maps = [at, own]
        value, at = NestOp(space, [value], maps, TensorType(kind, shape), body_of(None, [value], kind)).result, own
    return value


def _put(part: SSAValue, read: WeightRead, start: int, dest: SSAValue) -> NestOp:
    """A copy of some columns of a product to their place in all of them."""
    product, column = read.product, read.loop
    index, extents = product.output_map.data, dict(product.space.extents)
    extents[column] = shape_of(part)[index.index(LinearExpr.of(column))]
    space = SpaceAttr(
        tuple(IterDim(d.name, extents[d.name]) for d in product.space.data if d.name in product.output_map.names)
    )
    body = body_of(None, [part], element_of(part))
    maps = [IndexMapAttr(index), moved(product.output_map, column, start)]
    return NestOp(space, [part], maps, product.result.type, body, dest=dest)


def _added(left: SSAValue, right: SSAValue) -> NestOp:
    """The sum of the products of two parts of a sum."""
    shape = shape_of(left)
    space = SpaceAttr(tuple(IterDim(f"d{d}", e) for d, e in enumerate(shape) if e > 1))
    index = IndexMapAttr(tuple(LinearExpr.of(f"d{d}") if e > 1 else LinearExpr(0) for d, e in enumerate(shape)))
    body = body_of(pointwise.add, [left, right], element_of(left))
    return NestOp(space, [left, right], [index] * 3, TensorType(element_of(left), shape), body)


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
    made = nest_like(before, before.space, before.inputs, [*before.input_maps, index], copy.result.type)
    made.result.name_hint = copy.result.name_hint
    Rewriter.insert_op(made, InsertPoint.before(before))
    copy.result.replace_all_uses_with(made.result)
    for op in (copy, before):
        Rewriter.erase_op(op)


__all__ = ["LEAST_ELEMENTS", "PackWeightsPass"]
