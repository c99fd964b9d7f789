"""Pass `forward-copies`: lets a nest write its result where a copy would move it.

```mlir
%a = spyre.loop.nest [i = 8, j = 64] ...                     -> [i, j] : tensor<8x64xf16>
%b = spyre.loop.nest [i = 8, j = 64] ins(%a[i, j]) into %e   -> [i, j + 64] : tensor<8x128xf16>
```
becomes one nest into `%e`. The destination moves up to its first writer, and every writer stays where it computes:
written at the end, results would wait for each other in the scratchpads. A copy that takes other elements to the lanes
stays, because its writer would have to bring its inputs there. One number around a tensor goes with it.

Decision: docs/decisions/0161-results-go-where-they-are-read.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, Float8E4M3FNType
from xdsl.ir import Block, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.boxes import box_of, overlap
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopConstantOp, NestOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.transforms.aten_to_loop.coalesced_loops import merged
from spyre_mlir.transforms.aten_to_loop.nests import NestLoops
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import is_copy, nest_like

LANES = DL16.elements_per_stick()

_Source = tuple[list[NestOp], dict[str, int]]  # nests that may write what a copy takes, and the dimensions it walks


@dataclass(frozen=True)
class ForwardCopiesPass(FunctionPass):
    """Lets nests of floats write where copies of their results lie."""

    name = "forward-copies"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Forward the copies of a function."""
        block = function.body.block
        for empty in [o for o in block.ops if isinstance(o, EmptyOp)]:
            _Destination(block, empty).forward()
        # Whole tensors come last: parts side by side may interleave once the tensor that they fill is copied itself.
        for nest in [o for o in reversed(list(block.ops)) if isinstance(o, NestOp)]:
            _forward_whole(nest)


def _forward_whole(copy: NestOp) -> None:
    """Let what a copy without a destination reads be written as the copy has it."""
    if copy.dest is not None or (places := _places(copy)) is None:
        return
    writers = _writers(copy.inputs[0])
    if not writers or not all(_may_write(w, copy) for w in writers):
        return
    first = writers[0]
    made: SSAValue | None = None
    if first.dest is not None:
        empty = EmptyOp(copy.result.type)
        empty.location = first.dest.owner.location if isinstance(first.dest.owner, EmptyOp) else first.location
        Rewriter.insert_op(empty, InsertPoint.before(first))
        made = empty.result
    for writer in writers:
        made = _rewritten(writer, _composed(copy, places, writer.output_map), copy, made)
    if made is not None:
        made.name_hint = copy.result.name_hint
        copy.result.replace_all_uses_with(made)
    Rewriter.erase_op(copy)
    _erase(writers)


def _writers(value: SSAValue) -> list[NestOp]:
    """Return the nests that make a tensor with one reader, in order; none if some of it is given or copied."""
    found = list[NestOp]()
    while isinstance(nest := value.owner, NestOp) and value.has_one_use():
        found.append(nest)
        if nest.dest is None:
            return found[::-1] if len(found) == 1 and not is_copy(nest) else []
        value = nest.dest
    computed = all(not is_copy(n) or isinstance(n.inputs[0].owner, NestOp) or _fills(n) for n in found)
    known = computed and (_is_framed(found) or not any(map(_fills, found)))
    return found[::-1] if isinstance(value.owner, EmptyOp) and value.has_one_use() and known else []


def _fills(nest: NestOp) -> bool:
    """Return whether a nest writes one number everywhere."""
    one = is_copy(nest) and isinstance(nest.inputs[0].owner, LoopConstantOp)
    return one and not any(expr.terms for expr in nest.input_maps[0].data)


def _is_framed(writers: list[NestOp]) -> bool:
    """Return whether nests put one number around what one of them writes, and nothing beside it in the lanes."""
    lanes = {box_of(writer, writer.output_map)[-1] for writer in writers}
    return [_fills(writer) for writer in writers].count(False) == 1 and len(lanes) == 1


@dataclass
class _Destination:
    """A tensor that nests fill one after the other.

    Attributes:
        block: the block it is in.
        empty: its first value.
    """

    block: Block
    empty: EmptyOp
    chain: list[NestOp] = field(init=False)

    def __post_init__(self) -> None:
        self.chain = []
        value: SSAValue = self.empty.result
        while value.has_one_use():
            (use,) = value.uses
            nest = use.operation
            if not isinstance(nest, NestOp) or nest.dest is not value:
                break
            self.chain.append(nest)
            value = nest.result

    def forward(self) -> None:
        """Let results that are copied into it be written there, if no place of it is written twice."""
        sources = {copy: found for copy in self.chain if (found := _forwarded(copy)) is not None}
        boxes = [box_of(nest, nest.output_map) for nest in self.chain]
        if not sources or any(overlap(a, b) for a, b in combinations(boxes, 2)):
            return
        final = self.chain[-1].result
        numbers = {op: number for number, op in enumerate(self.block.ops)}
        parts = [part for nest in self.chain for part in _parts(nest, sources.get(nest))]
        parts.sort(key=lambda part: numbers[part[0]])
        if numbers[self.empty] > numbers[first := parts[0][0]]:
            self.empty.detach()
            Rewriter.insert_op(self.empty, InsertPoint.before(first))
        made: SSAValue = self.empty.result
        for writer, index, like in parts:
            made = _rewritten(writer, index, like, made)
        made.name_hint = final.name_hint
        final.replace_all_uses_with(made)
        for nest in reversed(self.chain):
            Rewriter.erase_op(nest)
        for writers, _ in sources.values():
            _erase(writers)


def _parts(nest: NestOp, source: _Source | None) -> list[tuple[NestOp, IndexMapAttr, NestOp]]:
    """The nests that write what a nest of a destination writes, where each writes it, and that nest."""
    if source is None:
        return [(nest, nest.output_map, nest)]
    writers, places = source
    return [(writer, _composed(nest, places, writer.output_map), nest) for writer in writers]


def _erase(writers: list[NestOp]) -> None:
    """Erase the nests that made a tensor which nothing reads any more, and its destination."""
    first = writers[0].dest
    for op in (*reversed(writers), *([first.owner] if isinstance(first, OpResult) else [])):
        Rewriter.erase_op(op)


def _forwarded(copy: NestOp) -> _Source | None:
    """Return the nests that may write what a copy takes to its destination, and the dimensions that the copy walks."""
    if (places := _places(copy)) is None:
        return None
    writers = _writers(copy.inputs[0])
    alone = len(writers) == 1 and writers[0].dest is None
    if not (alone or _is_framed(writers)) or not all(w.parent is copy.parent and _may_write(w, copy) for w in writers):
        return None
    return writers, places


def _places(op: NestOp) -> dict[str, int] | None:
    """Return the dimension of its input that each loop of a copy walks, if it reads every element of it once."""
    if not is_copy(op) or hint_of(op) is not None:
        return None
    found, extents = dict[str, int](), op.space.extents
    for dim, (expr, extent) in enumerate(zip(op.input_maps[0].data, shape_of(op.inputs[0]), strict=True)):
        if extent == 1 and expr == LinearExpr():
            continue
        if len(expr.terms) != 1 or expr != LinearExpr.of(name := expr.terms[0][0]) or extents[name] != extent:
            return None
        if name in found:
            return None
        found[name] = dim
    return found if len(found) == len(op.space.data) and _keeps_lanes(op, found) else None


def _keeps_lanes(op: NestOp, places: dict[str, int]) -> bool:
    """Return whether a copy leaves the elements of the last dimension in their lanes, in whole sticks of their own."""
    source, result = shape_of(op.inputs[0]), shape_of(op.result)
    lane = next((name for name, dim in places.items() if dim == len(source) - 1), None)
    if lane is None or not op.output_map.data:
        return False
    last = op.output_map.data[-1]
    if last == LinearExpr.of(lane) and source[-1] == result[-1]:
        return True
    steps = dict(last.terms)
    others = (step for name, step in last.terms if name != lane)
    return steps.get(lane) == 1 and not any(n % LANES for n in (source[-1], last.const, *others))


def _may_write(writer: NestOp, copy: NestOp) -> bool:
    """Return whether a nest and a copy of its result round alike, to floats of one type."""
    element = element_of(copy.result)
    kinds = isinstance(element, AnyFloat) and not isinstance(element, Float8E4M3FNType)
    return kinds and element_of(writer.result) == element and (writer.wide is None) == (copy.wide is None)


def _composed(copy: NestOp, places: dict[str, int], written: IndexMapAttr) -> IndexMapAttr:
    """Where a copy puts the elements that a nest writes through a map."""
    at = {loop: written.data[dim] for loop, dim in places.items()}
    return IndexMapAttr(tuple(expr.at(at) for expr in copy.output_map.data))


def _rewritten(op: NestOp, index: IndexMapAttr, like: NestOp, dest: SSAValue | None) -> SSAValue:
    """Put a nest in place of another one that writes through a map into a tensor of the type of `like`."""
    space, maps = _joined_loops(op, index)
    made = nest_like(op, space, op.inputs, maps, like.result.type, dest)
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made.result


def _joined_loops(op: NestOp, index: IndexMapAttr) -> tuple[SpaceAttr, list[IndexMapAttr]]:
    """The loops and maps of a nest that writes through a map, where loops that all maps walk as one are joined.

    The copy may have parted rows that lie beside each other again: loops over parts need strides that nest in each
    other, which those of the rows around them do not.
    """
    maps = [m.data for m in op.input_maps]
    if op.combine is not None or hint_of(op) is not None:
        return op.space, [*op.input_maps, index]
    loops = NestLoops(tuple((d.name,) for d in op.space.data), tuple((d.extent,) for d in op.space.data), tuple(maps))
    loops, written = merged(loops, index.data)
    return loops.space(), [IndexMapAttr(m) for m in (*loops.maps, written)]
