"""Groups of nests that compute each row of their results from the same row of what they read.

Rows that are appended to all tensors of a group at once reach no other row, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, FloatAttr
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopConstantOp, NestOp, body_function
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.ops.function_facts import HardwareFunction
from spyre_mlir.ops.hardware_functions import FUNCTIONS
from spyre_mlir.transforms.utils.nests.nest_parts import dim_of

# A tensor, and its dimension of rows.
Rows = tuple[SSAValue, int]


@dataclass
class SharedRows:
    """Nests that share their rows.

    Attributes:
        rows: how many.
        loops: the nests in order, each with its loop over rows.
        sources: tensors with these rows that the nests read and others make.
    """

    rows: int
    loops: dict[NestOp, str] = field(default_factory=dict[NestOp, str])
    sources: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    @property
    def reductions(self) -> list[NestOp]:
        """The nests that reduce each row, without products."""
        return [op for op in self.loops if op.combine is not None and body_function(op.body.block) is None]


def shared_rows(function: func.FuncOp, wanted: Callable[[int], bool]) -> list[SharedRows]:
    """Return the groups of a function, those whose number of rows is wanted."""
    found: dict[Rows, str] = {}
    for op in function.body.block.ops:
        if isinstance(op, NestOp) and (rows := _rows_of(op, wanted)) is not None:
            found[op.result, rows[0]] = rows[1]
    while lost := [key for key, loop in found.items() if not all(_may_be_read(r, found) for r in _read(key[0], loop))]:
        for key in lost:
            del found[key]
    return _connected(found)


def filled_parts(value: SSAValue) -> list[NestOp]:
    """Return the nests that fill a tensor one after the other, if only nests read it; none for another tensor."""
    parts, last = list[NestOp](), value
    while isinstance(op := value.owner, NestOp) and op.dest is not None and (value is last or value.has_one_use()):
        parts.append(op)
        value = op.dest
    made = isinstance(value.owner, EmptyOp) and value.has_one_use() and _is_read_by_nests(last)
    return parts[::-1] if made else []


def _rows_of(op: NestOp, wanted: Callable[[int], bool]) -> tuple[int, str] | None:
    """The only dimension but the last that may be rows, and the loop over it; None if there is none, or several."""
    if op.dest is not None or hint_of(op) is not None or not _is_read_by_nests(op.result):
        return None
    found = list[tuple[int, str]]()
    for dim, (expr, extent) in enumerate(zip(op.output_map.data[:-1], shape_of(op.result)[:-1], strict=True)):
        if len(expr.terms) != 1 or dim_of(op.output_map, name := expr.terms[0][0]) != dim or not wanted(extent):
            continue
        maps = [index for index in op.input_maps if any(n == name for e in index.data for n, _ in e.terms)]
        if op.space.extents[name] == extent and all(dim_of(i, name) is not None for i in maps) and _is_safe(op, name):
            found.append((dim, name))
    return found[0] if len(found) == 1 else None


def _read(value: SSAValue, loop: str) -> Iterator[Rows]:
    """What the nest of a tensor reads along a loop."""
    if isinstance(op := value.owner, NestOp):
        for given, index in zip(op.inputs, op.input_maps, strict=True):
            if (dim := dim_of(index, loop)) is not None:
                yield given, dim


def _may_be_read(rows: Rows, found: dict[Rows, str]) -> bool:
    """Whether rows are those of a group, known numbers, or could be copied into a longer tensor of floats."""
    value, dim = rows
    copied = isinstance(element_of(value), AnyFloat) and dim < len(shape_of(value)) - 1
    return rows in found or isinstance(value.owner, LoopConstantOp) or copied


def _is_read_by_nests(value: SSAValue) -> bool:
    """Whether all users of a tensor are nests that read it."""
    users = [(use.operation, use.index) for use in value.uses]
    return bool(users) and all(isinstance(op, NestOp) and index < len(op.inputs) for op, index in users)


def _connected(found: dict[Rows, str]) -> list[SharedRows]:
    """Groups of nests that read one another, or one source, each in order."""
    first = dict[Rows, Rows]()

    def root(key: Rows) -> Rows:
        while (above := first.get(key, key)) != key:
            key = above
        return key

    for key, loop in found.items():
        for read in _read(key[0], loop):
            first[root(read)] = root(key)
    groups = dict[Rows, SharedRows]()
    for key, loop in found.items():
        value, dim = key
        group = groups.setdefault(root(key), SharedRows(shape_of(value)[dim]))
        group.sources |= {v: d for v, d in _read(value, loop) if (v, d) not in found}
        if isinstance(value.owner, NestOp):
            group.loops[value.owner] = loop
    return list(groups.values())


def _is_safe(op: NestOp, loop: str) -> bool:
    """Whether a nest computes numbers of rows of zeros: what it divides by is kept away from 0, or has no rows."""
    function = _function(op)
    if function is None or not function.pole:
        return True
    index, divisor = op.input_maps[len(op.inputs) - 1], op.inputs[-1]
    return dim_of(index, loop) is None or _is_positive(divisor)


def _is_positive(value: SSAValue) -> bool:
    """Whether a tensor is a sum with a positive number, at least that, or a sum of exponentials."""
    if not isinstance(op := value.owner, NestOp):
        return False
    function = _function(op)
    if op.combine is not None and function is None:
        made = op.inputs[0].owner
        inner = _function(made) if isinstance(made, NestOp) else None
        return op.combine.data == "arith.addf" and inner is not None and inner.positive
    numbers = [o.value for v in op.inputs if isinstance(o := v.owner, LoopConstantOp)]
    positive = any(isinstance(n, FloatAttr) and n.value.data > 0 for n in numbers)
    return function is not None and function.lifts and positive


def _function(op: NestOp) -> HardwareFunction | None:
    """The hardware function of a nest; None of one that adds up."""
    entry = body_function(op.body.block)
    return None if entry is None or entry.opfunc is None else FUNCTIONS.get(entry.opfunc)


__all__ = ["SharedRows", "filled_parts", "shared_rows"]
