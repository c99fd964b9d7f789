"""Proof that padding never reaches a result, by what the padding of each value holds.

The first elements of a growing dimension, `size` of them or a multiple of it, are the caller's, the rest is padding.
Every nest is looked at where one of its growing loops is in the padding and the other ones are not: a loop of the
result makes padding of the result, and a loop that is reduced must add nothing to it. So a sum over keys is allowed if
a mask has made their weights 0.

Padding is taken to be finite. What is not shows: 0 times infinity is no number, and neither is the result.

Decision: docs/decisions/0125-padding-is-proved-away.md
Decision: docs/decisions/0208-control-flow-has-symbols.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import i1
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.ir.control import CondOp, ControlOp, ForLoopOp, WhileLoopOp
from spyre_mlir.dialects.ir.functions import returned_by
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.loop import (
    EmptyOp,
    LoopConstantOp,
    LoopGatherOp,
    NestOp,
    body_function,
    combiner,
)
from spyre_mlir.dialects.spyre.scalars import body_numbers
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.moves import map_view
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.machine.levels.loop import known_numbers
from spyre_mlir.ops.native import pointwise
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.padding.contents import EXTREMES, Content, Limits, Operand, applied, is_neutral, reduced
from spyre_mlir.padding.growth import Growth, Pair, growth, refusal

Array = NDArray[Any]
Held = Mapping[SSAValue, Mapping[int, Content]]

# Elements of a value that is computed from constants.
_MOST_FOLDED = 1 << 25

_TRUTH: Limits = (0.0, 1.0)


def prove(pair: Pair, constants: Mapping[SSAValue, tuple[Array, Array]], least: int) -> Growth:
    """Prove that a program gives the same first elements whatever the length of its inputs before padding.

    Args:
        pair: the function for the padded length and for a smaller one, at the loop level.
        constants: of the larger function's arguments those with values that the program fixes, with their values for
            both lengths; other arguments are padded with zeros.
        least: smallest length that a caller may have.

    Raises:
        UnsupportedError: padding may reach a result, or the program is another one for another length.
    """
    grown = growth(pair)
    walk = _Walk(grown, least)
    for value in pair.function.body.block.args:
        if value in constants:
            walk.constant(value, *constants[value])
        else:
            walk.hold(value, dict.fromkeys(grown.of(value), 0.0))
    for op in pair.function.body.block.ops:
        walk.step(op)
    return grown


@dataclass
class _Walk:
    """What padding holds, value by value.

    Attributes:
        grown: what grows.
        least: smallest length of a caller.
        padding: content of the padding by dimension, where the other dimensions are not in the padding.
        everywhere: the same, wherever the other dimensions are.
        arrays: values that follow from constants alone.
        limits: of values that have some.
    """

    grown: Growth
    least: int
    padding: dict[SSAValue, dict[int, Content]] = field(default_factory=dict[SSAValue, dict[int, Content]])
    everywhere: dict[SSAValue, dict[int, Content]] = field(default_factory=dict[SSAValue, dict[int, Content]])
    arrays: dict[SSAValue, Array] = field(default_factory=dict[SSAValue, Array])
    limits: dict[SSAValue, Limits] = field(default_factory=dict[SSAValue, Limits])

    def constant(self, value: SSAValue, larger: Array, smaller: Array) -> None:
        """Note a constant of the program.

        Raises:
            UnsupportedError: its first elements depend on the length.
        """
        if not np.array_equal(larger[tuple(map(slice, smaller.shape))], smaller):
            raise refusal(f"the constant '{value.name_hint}' has other numbers for another length")
        self._known(value, larger)

    def _known(self, value: SSAValue, array: Array) -> None:
        dims = self.grown.of(value)
        self.arrays[value] = array
        alone = {dim: _held(array, dim, dims) for dim in dims}
        self.hold(value, alone, {dim: _held(array, dim, {dim: each}) for dim, each in dims.items()})
        if array.size and not np.isnan(array).any():
            self.limits[value] = float(array.min()), float(array.max())

    def hold(self, value: SSAValue, alone: dict[int, Content], everywhere: dict[int, Content] | None = None) -> None:
        """Note what the padding of a value holds; everywhere the same if no other is given."""
        self.padding[value] = alone
        self.everywhere[value] = alone if everywhere is None else everywhere

    def step(self, op: Operation) -> None:
        """Follow padding through an op.

        Raises:
            UnsupportedError: it may reach a result.
        """
        match op:
            case LoopConstantOp():
                self._known(op.result, known_numbers(op.value, shape_of(op.result), op))
            case EmptyOp():
                self.hold(op.result, {})
            case NestOp():
                self._check_reads(op)
                if not self._fold(op):
                    self._nest(op)
            case LoopGatherOp():
                self._gather(op)
            case ForLoopOp() | WhileLoopOp():
                self._loop(op)
            case CondOp():
                self._branches(op)
            case func.ReturnOp():
                pass
            case _ if any(map(self.grown.of, (*op.operands, *op.results))):
                raise refusal("a step of the host reads what is padded", op)
            case _:
                pass

    def _loop(self, op: ForLoopOp | WhileLoopOp) -> None:
        """Follow padding through a loop with a body of its own, until what it carries holds the same each trip."""
        functions, carried = op.functions(), op.carried_inputs
        for function in functions:
            self._hand(function, op, carried, op.varying_inputs)
        *conditions, body = functions
        block, returned = body.body.block, returned_by(body)
        pairs, changes = list(zip(block.args, returned[:carried], strict=False)), True
        while changes:
            before = [self._held(value) for value, _ in pairs]
            for inner in block.ops:
                self.step(inner)
            for value, end in pairs:
                self.hold(value, *(_common(a, b) for a, b in zip(self._held(value), self._held(end), strict=True)))
            changes = before != [self._held(value) for value, _ in pairs]
        for condition in conditions:
            for value, (other, _) in zip(condition.body.block.args, pairs, strict=False):
                self.hold(value, *self._held(other))
            for inner in condition.body.block.ops:
                self.step(inner)
        for number, (result, end) in enumerate(zip(op.outputs, returned, strict=True)):
            self.hold(result, *self._held(block.args[number] if number < carried else end))

    def _branches(self, op: CondOp) -> None:
        """Follow padding through both branches: a result holds what both give it."""
        ends: list[list[tuple[dict[int, Content], dict[int, Content]]]] = []
        for function in op.functions():
            self._hand(function, op)
            for inner in function.body.block.ops:
                self.step(inner)
            ends.append([self._held(value) for value in returned_by(function)])
        for result, one, other in zip(op.outputs, *ends, strict=True):
            self.hold(result, *(_common(a, b) for a, b in zip(one, other, strict=True)))

    def _hand(self, function: func.FuncOp, op: ControlOp, carried: int = 0, varying: int = 0) -> None:
        """Note on the arguments of a function what is known of the values that control flow hands it.

        Args:
            function: which is called.
            op: which calls it.
            carried: how many of the first arguments have other numbers in each trip.
            varying: how many of the first arguments are other values in each trip.
        """
        for number, (value, given) in enumerate(zip(function.body.block.args, op.inputs, strict=True)):
            self.hold(value, *self._held(given))
            if given in self.limits and number >= carried:
                self.limits[value] = self.limits[given]
            if given in self.arrays and number >= varying:
                self.arrays[value] = self.arrays[given]

    def _held(self, value: SSAValue) -> tuple[dict[int, Content], dict[int, Content]]:
        """What padding of a value holds, alone and everywhere."""
        return self.padding.get(value, {}), self.everywhere.get(value, {})

    def _fold(self, op: NestOp) -> bool:
        """Compute a nest whose inputs all follow from constants; return whether it is one."""
        arrays = [self.arrays.get(value) for value in op.inputs]
        shape, extents, names = shape_of(op.result), op.space.extents, [d.name for d in op.space.data]
        if (
            op.combine is not None
            or op.dest is not None
            or prod(shape) > _MOST_FOLDED
            or any(a is None for a in arrays)
        ):
            return False
        views = [
            map_view(a, m.data, extents, names) for a, m in zip(arrays, op.input_maps, strict=True) if a is not None
        ]
        entry = body_function(op.body.block)
        made = views[0] if entry is None else entry.meaning(*views, **body_numbers(op.body.block))
        result = np.empty(shape, np.asarray(made).dtype)
        map_view(result, op.output_map.data, extents, names)[...] = made
        self._known(op.result, result)
        return True

    def _check_reads(self, op: NestOp) -> None:
        for value, index in zip(op.inputs, op.input_maps, strict=True):
            self._check(op, value, index, first=True)
        self._check(op, op.result, op.output_map)

    def _nest(self, op: NestOp) -> None:
        reads = list(zip(op.inputs, op.input_maps, strict=True))
        entry, numbers = body_function(op.body.block), body_numbers(op.body.block)
        reduction = None if op.combine is None else combiner(op.combine.data)
        loops = self.grown.loops[op]
        if reduction is not None and len(loops.keys() & set(op.reduced)) > 1:
            raise refusal("a reduction takes in what is padding of two dimensions, of which nothing is known", op)
        limits = self._limits(op, entry)
        found, everywhere = dict[str, Content](), dict[str, Content]()
        for loop in sorted(loops):
            content, always = (
                applied(entry, [self._operand(v, m, loop, held) for v, m in reads], numbers)
                for held in (self.padding, self.everywhere)
            )
            if loop not in op.reduced:
                found[loop] = content if reduction is None else reduced(reduction, content)
                everywhere[loop] = always if reduction is None else reduced(reduction, always)
            elif reduction is None or not is_neutral(reduction, content, limits):
                held = "any numbers" if content is None else f"{content:g}"
                raise refusal(f"{op.combine and op.combine.data} takes in padding, which holds {held}", op)
        if any(loop in op.reduced for loop in loops):
            found = everywhere  # elements that are reduced lie where two loops are in the padding, too
        self.hold(
            op.result,
            *(
                self._result(op, held, before)
                for held, before in ((found, self.padding), (everywhere, self.everywhere))
            ),
        )
        if limits is not None and op.dest is None and (reduction is None or reduction in EXTREMES):
            self.limits[op.result] = limits

    def _limits(self, op: NestOp, entry: OpEntry | None) -> Limits | None:
        """The limits of what a nest makes of each element, in front of a reduction."""
        given = [self._limits_of(value) for value in op.inputs]
        if entry is None:
            (value,) = op.inputs
            return given[0] if element_of(value) in (i1, element_of(op.result)) else None
        if entry is not pointwise.where:
            return _TRUTH if element_of(op.result) == i1 else None
        yes, no = given[1:]
        return None if yes is None or no is None else (min(yes[0], no[0]), max(yes[1], no[1]))

    def _limits_of(self, value: SSAValue) -> Limits | None:
        return _TRUTH if element_of(value) == i1 else self.limits.get(value)

    def _operand(self, value: SSAValue, index: IndexMapAttr, loop: str, padding: Held) -> Operand:
        """What a nest reads of a value where a loop is in the padding; nothing is known where two dimensions are."""
        dims = [dim for dim, expr in enumerate(index.data) if any(name == loop for name, _ in expr.terms)]
        if dims:
            return padding[value].get(dims[0]) if len(dims) == 1 else None
        array = self.arrays.get(value)
        if array is None or array.size == 0 or (array != array.flat[0]).any():
            return array
        return float(array.flat[0])

    def _result(self, op: NestOp, found: Mapping[str, Content], padding: Held) -> dict[int, Content]:
        """The padding of a nest's result by dimension."""
        held: dict[int, Content] = {}
        for dim in self.grown.of(op.result):
            loops = [name for name, _ in op.output_map.data[dim].terms if name in found]
            held[dim] = found[loops[0]] if loops else None
        if op.dest is not None:
            before = padding[op.dest]
            held = {dim: content if before.get(dim, content) == content else None for dim, content in held.items()}
        return held

    def _gather(self, op: LoopGatherOp) -> None:
        indices, table, result = op.maps.data
        for value, index in ((op.indices, indices), (op.table, table), (op.result, result)):
            self._check(op, value, index, op.axis.value.data if value is op.table else None)
        if op.axis.value.data in self.grown.of(op.table):
            raise refusal("an index may name a padded row", op)
        self.hold(op.result, dict.fromkeys(self.grown.of(op.result)))

    def _check(
        self,
        op: NestOp | LoopGatherOp,
        value: SSAValue,
        index: IndexMapAttr,
        axis: int | None = None,
        *,
        first: bool = False,
    ) -> None:
        """Each growing dimension has a growing loop of its own, or one of the first elements.

        Args:
            op: reads or writes the value.
            value: the value.
            index: where.
            axis: the indexed dimension of a table.
            first: whether a growing loop may walk the first elements of a dimension that does not grow, as `table[:n]`
                does. Behind the elements of the caller are other ones of the table then.

        Raises:
            UnsupportedError: elements are counted from the end, or dimensions are merged.
        """
        loops, dims, extents = self.grown.loops[op], self.grown.of(value), op.space.extents
        for dim, expr in enumerate(index.data):
            if dim == axis:
                continue
            each = dims.get(dim)
            used = [name for name, _ in expr.terms if name in loops]
            walked = _walked(expr, used[0], loops[used[0]], extents) if len(used) == 1 else None
            if used and (walked is None or walked != each) and not (first and each is None and walked is not None):
                raise refusal("a growing dimension is shifted, or merged with another one", op)
            if each is not None and not used and expr.last(extents) >= self.least * each:
                raise refusal("an element is read whose place depends on the length, or lies beyond the shortest", op)


def _common(one: Mapping[int, Content], other: Mapping[int, Content]) -> dict[int, Content]:
    """What two values hold by dimension, where it is the same."""
    return {dim: content if other.get(dim) == content else None for dim, content in one.items()}


def _walked(expr: LinearExpr, loop: str, each: int, extents: Mapping[str, int]) -> int | None:
    """How many elements for each a place walks along a growing loop; None if another loop or an offset shifts them.

    Loops inside of the growing one may walk its blocks, as those of a row's pixels do.
    """
    (factor,) = (f for name, f in expr.terms if name == loop)
    inner = [(name, f) for name, f in expr.terms if name != loop]
    if expr.const or any(f < 0 for _, f in inner) or sum((extents[name] - 1) * f for name, f in inner) >= factor:
        return None
    return each * factor


def _held(values: Array, dim: int, dims: Mapping[int, int]) -> Content:
    """The number that a constant holds wherever one dimension is in the padding and the other ones are not."""
    places = np.indices(values.shape, sparse=True)
    of = {d: places[d] // each for d, each in dims.items()}
    last_of_others = reduce(np.maximum, [of[d] for d in dims if d != dim], np.zeros((), int))
    found: Array = np.unique(values[np.broadcast_to(of[dim] > last_of_others, values.shape)])
    return float(found[0]) if found.size == 1 else None
