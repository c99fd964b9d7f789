"""Pass `update-in-place`: changes one position of a cache in place, by writing the block around it.

```mlir
%b = spyre.loop.block %cache dim 2 at %position
%n = spyre.loop.nest [...] ins(%here, %new, %b)      // the block with one entry replaced
%c = spyre.loop.put %n into %cache dim 2 at %position
```
It finds the new value of an argument in which one index is chosen by a comparison of all indices with an integer that
the host has, or with a known number behind it. The function of equal layers writes caches of its callers, if each call
hands over one of its own. Outside of the block around it, the new value is the old one. A position outside of the
tensor, which makes entries NaN otherwise, is an error then.

Decision: docs/decisions/0139-the-host-says-where-a-block-starts.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, IntegerType, ModuleOp, TensorType, f32
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.argument_notes import BOUNDS, kind_of, note_of
from spyre_mlir.dialects.spyre.attributes import IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.loop import LoopConstantOp, NestOp, body_function
from spyre_mlir.dialects.spyre.loop_blocks import BLOCK, BlockOp, NamedEntry, PutOp, block_shape
from spyre_mlir.dialects.spyre.named_values import IotaAttr
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import EXACT_INTEGERS, FP32
from spyre_mlir.hw.sticks import IndexMap, LinearExpr
from spyre_mlir.ops.native import pointwise
from spyre_mlir.transforms.utils.numerics.integer_ranges import is_integer
from spyre_mlir.transforms.utils.overwritten import overwritten_arguments

LEAST_BITS = 32  # of integers whose copies are the same integers


@dataclass(frozen=True)
class UpdateInPlacePass(ModulePass):
    """Lets kernels write blocks of arguments in place of new tensors.

    Without it each new value is a tensor of its own, as KTIR and addresses in files need it.
    """

    name = "update-in-place"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the functions that take tensors of the host."""
        for function, pairs, is_region in overwritten_arguments(op):
            _Updates(function, is_region=is_region).rewrite(sorted(pairs))


@dataclass(frozen=True)
class _Hits:
    """Where a vector of truth values is true: at the index that an integer names, if that is one of its indices.

    Attributes:
        indices: all indices.
        number: the integer as the comparison reads it.
        position: the integer of the host that it is, or that it is a known number behind.
        named: the index, from the end if it is negative and the sum counts so.
        compared: the nest that compares.
    """

    indices: SSAValue
    number: SSAValue
    position: BlockArgument
    named: NamedEntry
    compared: NestOp


@dataclass
class _Updates:
    """Updates of the arguments of one function.

    Attributes:
        is_region: whether it is called: the host has those of its arguments whose kind is noted.
    """

    function: func.FuncOp
    is_region: bool = False
    here: dict[tuple[SSAValue, SSAValue], SSAValue] = field(default_factory=dict[tuple[SSAValue, SSAValue], SSAValue])

    def rewrite(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Rewrite every update that is found, of arguments by results that are their new values."""
        returned = self.function.get_return_op()
        if returned is None:
            return
        for argument, result in pairs:
            old = self.function.body.block.args[argument]
            nest = returned.operands[result].owner
            if isinstance(nest, NestOp) and self._is_hosts(old) and all(use.operation is nest for use in old.uses):
                self._rewrite(nest, old)

    def _is_hosts(self, argument: BlockArgument) -> bool:
        return not self.is_region or kind_of(self.function, argument.index) is not None

    def _rewrite(self, nest: NestOp, old: SSAValue) -> None:
        if _function(nest) is not pointwise.where or nest.dest is not None or nest.inputs[2] is not old:
            return
        mask, new, _ = nest.inputs
        index, written, read = (m.data for m in nest.input_maps)
        if read != nest.output_map.data or old.type != nest.result.type or len(index) != 1 or new is old:
            return
        dim, hits = _dimension(index, read), _hits(mask)
        if dim is None or hits is None or not _covers(nest, shape_of(old)) or shape_of(old)[dim] % BLOCK:
            return
        if not self._is_hosts(hits.position) or is_integer(element_of(old)):  # integers are computed in another format
            return
        row = index[0].terms[0][0]
        if shape_of(mask)[0] == shape_of(old)[dim] and not any(n == row for e in written for n, _ in e.terms):
            self._emit(nest, old, dim, hits, _in_range(new, hits, shape_of(old)[dim]))

    def _emit(self, nest: NestOp, old: SSAValue, dim: int, hits: _Hits, new: SSAValue) -> None:
        here = self._here(hits, nest)
        block = BlockOp(old, dim, hits.position, BLOCK, hits.named)
        space = _with_extent(nest, nest.output_map.data[dim].terms[0][0])
        type_ = TensorType(element_of(old), block_shape(shape_of(old), dim, BLOCK))
        made = NestOp(space, [here, new, block.result], nest.maps.data, type_, nest.body.clone())
        made.wide = nest.wide
        put = PutOp(made.result, old, dim, hits.position, hits.named)
        Rewriter.insert_op(_alike([block, made, put], nest), InsertPoint.before(nest))
        nest.result.replace_all_uses_with(put.result)
        _erase_chain(nest)

    def _here(self, hits: _Hits, before: Operation) -> SSAValue:
        """Truth values of the indices of one block; made once for all tensors of equal size."""
        key = hits.indices, hits.number
        if key not in self.here:
            nest = hits.compared
            block = BlockOp(hits.indices, 0, hits.position, BLOCK, hits.named)
            space = _with_extent(nest, nest.output_map.data[0].terms[0][0])
            inputs = [block.result if v is hits.indices else v for v in nest.inputs]
            type_ = TensorType(element_of(nest.result), (BLOCK,))
            made = NestOp(space, inputs, nest.maps.data, type_, nest.body.clone())
            made.wide = nest.wide
            Rewriter.insert_op(_alike([block, made], before), InsertPoint.before(before))
            self.here[key] = made.result
        return self.here[key]


def _alike(ops: Sequence[Operation], old: Operation) -> Sequence[Operation]:
    """Gives ops the place in the model and the notes of another one."""
    for op in ops:
        op.location = old.location
        op.attributes.update(old.attributes)
    return ops


def _erase_chain(op: Operation) -> None:
    """Erases an op that nothing reads, and what it alone read."""
    owners = [v.owner for v in op.operands]
    Rewriter.erase_op(op)
    for owner in dict.fromkeys(owners):
        if isinstance(owner, Operation) and not any(result.uses.get_length() for result in owner.results):
            _erase_chain(owner)


def _with_extent(nest: NestOp, name: str) -> SpaceAttr:
    return SpaceAttr(tuple(IterDim(d.name, BLOCK if d.name == name else d.extent) for d in nest.space.data))


def _function(nest: NestOp) -> object:
    return body_function(nest.body.block) if nest.combine is None else None


def _dimension(index: IndexMap, read: IndexMap) -> int | None:
    """The dimension that is walked as the vector of a mask is."""
    if len(index[0].terms) != 1 or index[0] != LinearExpr.of(index[0].terms[0][0]):
        return None
    return next((dim for dim, expr in enumerate(read) if expr == index[0]), None)


def _covers(nest: NestOp, shape: tuple[int, ...]) -> bool:
    """Return whether a nest walks every element of its result, each dimension by a loop of its own."""
    extents = nest.space.extents
    names = [e.terms[0][0] if e.terms else None for e in nest.output_map.data]
    wanted = [LinearExpr() if n is None else LinearExpr.of(n) for n in names]
    plain = wanted == list(nest.output_map.data)
    used = [n for n in names if n is not None]
    whole = all(size == (1 if n is None else extents[n]) for n, size in zip(names, shape, strict=True))
    return plain and whole and len(set(used)) == len(used) == len(extents)


def _hits(mask: SSAValue) -> _Hits | None:
    """What a vector of truth values says, if it names one index at most inside of a tensor."""
    nest = mask.owner
    if not isinstance(nest, NestOp) or len(shape_of(mask)) != 1 or nest.dest is not None:
        return None
    if _function(nest) is pointwise.where:  # or outside of the tensor
        inside, true, outside = nest.inputs
        hits = _hits(inside) if nest.input_maps[0] == nest.output_map and _constant(true) == 1 else None
        return hits if hits is not None and _is_outside(outside, hits.number, shape_of(mask)[0]) else None
    return _compared(nest)


def _compared(nest: NestOp) -> _Hits | None:
    """The comparison of all indices with one integer."""
    if _function(nest) is not pointwise.eq or len(nest.inputs) != 2 or not _covers(nest, shape_of(nest.result)):
        return None
    indices, number = nest.inputs
    wrapped = _counted_from_end(number, shape_of(indices)[0])
    found = _integer(number if wrapped is None else wrapped)
    if found is None or nest.input_maps[0] != nest.output_map or nest.input_maps[1].names or not _counts(indices):
        return None
    position, offset = found
    return _Hits(indices, number, position, NamedEntry(offset, wrapped is not None), nest)


def _counted_from_end(number: SSAValue, extent: int) -> SSAValue | None:
    """What a number of one element is, but for the extent that is added to it where it is negative."""
    nest = _unconverted(number).owner
    if not isinstance(nest, NestOp) or _function(nest) is not pointwise.where or nest.dest is not None:
        return None
    negative, more, value = nest.inputs
    added = more.owner
    if not _bounds(negative, pointwise.lt, value, 0) or not isinstance(added, NestOp):
        return None
    is_sum = _function(added) is pointwise.add and len(added.inputs) == 2 and _is_wide(element_of(value))
    return value if is_sum and added.inputs[0] is value and _whole(added.inputs[1]) == extent else None


def _integer(number: SSAValue) -> tuple[BlockArgument, int] | None:
    """The integer of the host that a tensor of one number is, or that it is a known number behind."""
    offset = 0
    while isinstance(nest := (number := _unconverted(number)).owner, NestOp) and nest.combine is None:
        function, element = _function(nest), element_of(number)
        if function is pointwise.add and _is_wide(element) and len(nest.inputs) == 2:
            known = [_whole(v) for v in nest.inputs]
            added = known[0] if known[1] is None else known[1]
            if added is None:
                return None
            offset += added
            number = nest.inputs[0 if known[1] is not None else 1]
        else:
            return None
    one = all(size == 1 for size in shape_of(number))
    return (number, offset) if isinstance(number, BlockArgument) and one and is_integer(element_of(number)) else None


def _unconverted(number: SSAValue) -> SSAValue:
    """The integer that copies have made another type of."""
    while isinstance(nest := number.owner, NestOp) and nest.combine is None and _function(nest) is None:
        if element_of(number) != f32 and not _is_wide(element_of(number)):
            break
        number = nest.inputs[0]
    return number


def _is_wide(element: Attribute) -> bool:
    """Return whether positions are exact in an element type: narrow integers wrap."""
    match element:
        case IntegerType():
            return element.width.data >= LEAST_BITS
        case _:
            return False


def _whole(value: SSAValue) -> int | None:
    """The integer that every element of a tensor is, if it is in the program, or a constant of the model."""
    if isinstance(value, BlockArgument) and isinstance(function := value.owner.parent_op(), func.FuncOp):
        bounds = note_of(function, value.index, BOUNDS)
        if kind_of(function, value.index) == "constant" and isinstance(bounds, DenseArrayBase):
            low, high = (int(n) for n in bounds.get_values())
            return low if low == high else None
    found = _constant(value)
    return None if found is None or not found.is_integer() else int(found)


def _is_outside(value: SSAValue, number: SSAValue, extent: int) -> bool:
    """Return whether a truth value says that a number is none of the indices of a vector."""
    either = value.owner
    if not isinstance(either, NestOp) or _function(either) is not pointwise.where:
        return False
    below, true, beyond = either.inputs
    return (
        _constant(true) == 1
        and _bounds(below, pointwise.lt, number, 0)
        and _bounds(beyond, pointwise.ge, number, extent)
    )


def _bounds(value: SSAValue, function: object, number: SSAValue, bound: int) -> bool:
    nest = value.owner
    if not isinstance(nest, NestOp) or _function(nest) is not function or len(nest.inputs) != 2:
        return False
    return nest.inputs[0] is number and _constant(nest.inputs[1]) == bound


def _counts(indices: SSAValue) -> bool:
    """Return whether a vector is 0, 1, 2 and so on, all of them exact where they are compared."""
    match indices.owner:
        case LoopConstantOp(value=IotaAttr(start=start, step=step)):
            few = shape_of(indices)[0] <= EXACT_INTEGERS[FP32.name]
            return few and (start.value.data, step.value.data) == (0.0, 1.0)
        case _:
            return False


def _constant(value: SSAValue) -> float | None:
    match value.owner:
        case LoopConstantOp(value=FloatAttr() | IntegerAttr() as number):
            return float(number.value.data)
        case _:
            return None


def _in_range(new: SSAValue, hits: _Hits, extent: int) -> SSAValue:
    """What is written, without the choice of NaN for positions outside of the tensor."""
    nest = new.owner
    if not isinstance(nest, NestOp) or _function(nest) is not pointwise.where or nest.dest is not None:
        return new
    outside, _, inside = nest.inputs
    plain = inside.type == new.type and nest.input_maps[2] == nest.output_map and _covers(nest, shape_of(new))
    return inside if plain and _is_outside(outside, hits.number, extent) else new


__all__ = ["BLOCK", "UpdateInPlacePass"]
