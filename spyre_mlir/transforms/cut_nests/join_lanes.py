"""Pass `join-lanes`: copies what a nest reads through a view that parts the lanes of its result.

```mlir
%y = spyre.loop.nest [h = 16, t = 256, p = 32, i = 2] ins(%x[h, t, p * 2 + i], %cos[t, p]) -> [h, t, p * 2 + i] : ...
```
becomes
```mlir
%both = spyre.loop.nest [t = 256, p = 32, i = 2] ins(%cos[t, p]) -> [t, p * 2 + i] : ...
%y = spyre.loop.nest [h = 16, t = 256, p = 64] ins(%x[h, t, p], %both[t, p]) -> [h, t, p] : ...
```
Neither of two loops that make up the last dimension of a result walks the lanes of a stick, so all that the nest reads
and writes would be laid out in another way. The copy is small if the nest reads it again and again, as it does factors
of rotary positions that neighbours share, and a weight's is made by the host. Where no loop at all walks the lanes of
every tensor, each element would have a stick of its own, and the copy pays even if it is as large as the result.

Decision: docs/decisions/0217-loops-in-the-lanes-are-joined.md
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, Float8E4M3FNType, TensorType
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import NestOp, YieldOp
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.legality import stick_for
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.nest_parts import is_copy, nest_like

_LANES = DL16.elements_per_stick()
# The nest reads what is copied so many times, or no loop walks the lanes of all that it reads and writes.
LEAST_READS = 4


@dataclass(frozen=True)
class JoinLanesPass(FunctionPass):
    """Joins loops that part the lanes of a result."""

    name = "join-lanes"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Join the loops of every nest of floats where the copies of what parts them are predicted to pay."""
        copies = dict[Hashable, SSAValue]()
        for nest in [o for o in function.body.block.ops if isinstance(o, NestOp)]:
            plain = nest.combine is None and not is_copy(nest) and hint_of(nest) is None
            if plain and (joined := _joined(nest)) is not None:
                _rewrite(nest, joined, copies)


class _Joined(NamedTuple):
    """Loops of a nest that are joined.

    Attributes:
        steps: of the loops in the last dimension of the result, the outermost first, which gives the new loop its name.
        parting: numbers of the inputs to be copied.
        space: the loops, joined.
        maps: of the inputs and of the result, over these loops.
    """

    steps: dict[str, int]
    parting: tuple[int, ...]
    space: SpaceAttr
    maps: tuple[IndexMap, ...]

    @property
    def name(self) -> str:
        """The name of the joined loop."""
        return next(iter(self.steps))

    def walking(self, index: IndexMap) -> list[IterDim]:
        """The loops that walk an input with a map over the loops before: dimensions of its copy."""
        names = {name for expr in index for name, _ in expr.terms} | {self.name}
        return [d for d in self.space.data if d.name in names]


def _joined(nest: NestOp) -> _Joined | None:
    """The loops that part the lanes of a result, where it pays to join them."""
    extents, maps = nest.space.extents, [index.data for index in (*nest.input_maps, nest.output_map)]
    if (steps := _parted_lanes(maps[-1], extents)) is None:
        return None
    parting = [n for n, m in enumerate(maps) if not all(_walks_as_one(e, steps) for e in m)]
    if not parting or len(maps) - 1 in parting or not all(_is_float(nest.inputs[n]) for n in parting):
        return None
    first = next(iter(steps))
    length = prod(extents[name] for name in steps)
    kept = [d for d in nest.space.data if d.name == first or d.name not in steps]
    space = SpaceAttr(tuple(IterDim(d.name, length) if d.name == first else d for d in kept))
    found = _Joined(steps, tuple(parting), space, ())
    after = [
        tuple(LinearExpr.of(d.name) for d in found.walking(m)) if n in parting else tuple(_as_one(e, steps) for e in m)
        for n, m in enumerate(maps)
    ]
    found = found._replace(maps=tuple(after))
    return found if _pays(nest, found) else None


def _parted_lanes(result: IndexMap, extents: Mapping[str, int]) -> dict[str, int] | None:
    """The loops, the outermost first, that walk the last dimension of a result by less than a stick, and their steps.

    None if there are less than two, or they do not walk it element by element.
    """
    terms = sorted(result[-1].terms, key=lambda term: -term[1]) if result else []
    steps = {name: step for name, step in terms if step % _LANES}
    walked = 1
    for name in reversed(steps):
        if steps[name] != walked:
            return None
        walked *= extents[name]
    return steps if len(steps) > 1 else None


def _walks_as_one(expr: LinearExpr, steps: Mapping[str, int]) -> bool:
    """Whether loops walk a dimension as one, the innermost of them by 1, or not at all."""
    found = {name: step for name, step in expr.terms if name in steps}
    return not found or found == steps


def _as_one(expr: LinearExpr, steps: Mapping[str, int]) -> LinearExpr:
    first = next(iter(steps))
    terms = ((n, 1 if n == first else c) for n, c in expr.terms if n == first or n not in steps)
    return LinearExpr(expr.const, tuple(terms))


def _is_float(value: SSAValue) -> bool:
    element = element_of(value)
    return isinstance(element, AnyFloat) and not isinstance(element, Float8E4M3FNType)


def _pays(nest: NestOp, joined: _Joined) -> bool:
    """Whether a nest has a loop for the lanes with its loops joined, and the copies are small or it has none before."""
    if not _walks_lanes(joined.name, joined.maps):
        return False
    extents, maps = nest.space.extents, [index.data for index in (*nest.input_maps, nest.output_map)]
    copied = sum(prod(d.extent for d in joined.walking(maps[number])) for number in joined.parting)
    if LEAST_READS * copied <= prod(extents.values()):
        return True
    return not any(_walks_lanes(name, maps) for name, extent in extents.items() if extent > 1)


def _walks_lanes(loop: str, maps: Sequence[IndexMap]) -> bool:
    """Whether a loop may walk the lanes of a result, and of all inputs that it walks."""
    sticks = [stick_for(index, loop, _LANES) for index in maps]
    return None not in sticks and sticks[-1] != UNIT


def _rewrite(nest: NestOp, joined: _Joined, copies: dict[Hashable, SSAValue]) -> None:
    """Put a nest of joined loops, behind copies of what parts them, in the place of another one."""
    inputs = list(nest.inputs)
    for number in joined.parting:
        index = nest.input_maps[number].data
        key = inputs[number], index, *joined.steps.items(), *joined.walking(index), nest.wide is None
        if key not in copies:
            copy = _copied(nest, joined, number)
            Rewriter.insert_op(copy, InsertPoint.before(nest))
            copies[key] = copy.result
        inputs[number] = copies[key]
    maps = [IndexMapAttr(index) for index in joined.maps]
    made = nest_like(nest, joined.space, inputs, maps, nest.result.type, nest.dest)
    Rewriter.replace_op(nest, [made], [made.result])


def _copied(nest: NestOp, joined: _Joined, number: int) -> NestOp:
    """A copy of an input with the joined loops as its dimensions."""
    value, index, extents = nest.inputs[number], nest.input_maps[number], nest.space.extents
    dims, places = list[IterDim](), list[LinearExpr]()
    kept = joined.walking(index.data)
    for d in kept:
        steps = joined.steps if d.name == joined.name else {d.name: 1}
        dims += [IterDim(name, extents[name]) for name in steps]
        places.append(LinearExpr(0, tuple(steps.items())))
    body = Block(arg_types=[element_of(value)])
    body.add_op(YieldOp(operands=[[body.args[0]]]))
    kind = TensorType(element_of(value), [d.extent for d in kept])
    made = NestOp(SpaceAttr(tuple(dims)), [value], [index, IndexMapAttr(tuple(places))], kind, Region(body))
    made.wide, made.location = nest.wide, nest.location
    return made


__all__ = ["LEAST_READS", "JoinLanesPass"]
