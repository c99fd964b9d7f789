"""Rows of kernel ops that can run in blocks of rows: they share a loop that none of them reduces, but perhaps the last.

What an op of the group writes for some rows depends on these rows of what the group has written, and on whole tensors
that the group does not write. So the group may run on some rows from its first op to its last, then on the next rows.
A step of one op's loop may be several rows of another's, as with heads of queries that share keys. Of what the group
does not write an op may read rows beside its own, as the taps of a window do.

Decision: docs/decisions/0240-pages-stay-in-the-scratchpads.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import gcd

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, buffer_behind
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.transforms.kernel_loops.row_loops import Rows, pieces_of, reads_beside, row_loops
from spyre_mlir.transforms.kernel_loops.running_sums import may_grow, summed_rows
from spyre_mlir.transforms.utils.hints import hinted_place
from spyre_mlir.transforms.utils.kernels.widened_weights import widens_given

MOST_KERNELS = 160  # of a group; causal attention in eight blocks has about as many


@dataclass(frozen=True, slots=True, kw_only=True)
class OpRows:
    """Facts of an op that every group asks to which it may belong.

    Attributes:
        operands: of the op, the result last.
        buffers: behind each of them.
        loops: its row loops.
        beside: see `reads_beside`.
        extents: of all its loops.
        result: extents of the result's dimensions.
        pieces: by row loop, into how many blocks of rows it can be cut.
        distinct: its operands, each once.
        read: its inputs, each once.
        asked: operands that a hint asks to be in the scratchpads.
        is_product: whether it sums products.
        widens: whether it reads a weight of few bits as the host sends it.
    """

    operands: tuple[SSAValue, ...]
    buffers: tuple[SSAValue, ...]
    loops: Mapping[str, Rows]
    beside: Mapping[str, frozenset[int]]
    extents: Mapping[str, int]
    result: tuple[int, ...]
    pieces: Mapping[str, int]
    distinct: tuple[SSAValue, ...]
    read: tuple[SSAValue, ...]
    asked: tuple[SSAValue, ...]
    is_product: bool
    widens: bool

    @staticmethod
    def of(op: kernel.KernelOp) -> OpRows:
        """Return the facts of an op."""
        operands, loops = tuple(op.operands), row_loops(op)
        distinct = tuple(dict.fromkeys(operands))
        return OpRows(
            operands=operands,
            buffers=tuple([buffer_behind(value) for value in operands]),
            loops=loops,
            beside=reads_beside(op),
            extents=op.space.extents,
            result=tuple(kernel.device_tensor(operands[-1]).shape),
            pieces={name: pieces_of(op, name, rows) for name, rows in loops.items()},
            distinct=distinct,
            read=tuple(dict.fromkeys(operands[:-1])),
            asked=tuple([value for value in distinct if hinted_place(value) == "lx"]),
            is_product=op.is_product,
            widens=widens_given(op),
        )


KnownRows = dict[Operation, OpRows]


@dataclass
class RowGroup:
    """Kernel ops that share a loop over rows.

    Attributes:
        ops: in the order they run.
        loops: per op, the name of its loop over rows.
        rows: per op, what the rows walk in its operands.
        known: facts of ops, perhaps shared with other groups; their operands have not changed since.
    """

    ops: list[kernel.KernelOp] = field(default_factory=list[kernel.KernelOp])
    loops: list[str] = field(default_factory=list[str])
    rows: list[Rows] = field(default_factory=list[Rows])
    known: KnownRows = field(default_factory=dict[Operation, OpRows], repr=False, compare=False)
    _written: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    _read: dict[SSAValue, set[int | None]] = field(default_factory=dict[SSAValue, set[int | None]])
    _extents: set[int] = field(default_factory=set[int])
    _buffers: dict[SSAValue, bool] = field(default_factory=dict[SSAValue, bool])  # whether the group writes them
    _values: dict[SSAValue, set[SSAValue]] = field(default_factory=dict[SSAValue, set[SSAValue]])  # tiles, by buffer
    _beside: set[SSAValue] = field(default_factory=set[SSAValue])  # buffers of which rows beside an op's own are read
    _internal: list[SSAValue] | None = None

    @property
    def pieces(self) -> int:
        """Blocks of rows that can be told apart: their number divides all loops, and whole sticks in the lanes."""
        return gcd(*[self.pieces_at(number) for number in range(len(self.ops))])

    def pieces_at(self, number: int) -> int:
        """Return into how many blocks of rows an op of the group can be cut."""
        op, loop, rows = self.ops[number], self.loops[number], self.rows[number]
        facts = self.facts(op)
        return facts.pieces[loop] if facts.loops.get(loop) == rows else pieces_of(op, loop, rows)

    def facts(self, op: kernel.KernelOp) -> OpRows:
        """Return the facts of an op, in the group or not."""
        if (known := self.known.get(op)) is None:
            known = self.known[op] = OpRows.of(op)
        return known

    @staticmethod
    def of(ops: Iterable[kernel.KernelOp], loops: Iterable[str]) -> RowGroup:
        """Return the group of ops by a row loop of each, which fit each other."""
        made = RowGroup()
        for op, name in zip(ops, loops, strict=True):
            made.add(op, name, made.facts(op).loops[name])
        return made

    def take(self, op: kernel.KernelOp, over: str | None = None) -> bool:
        """Append an op, if it has a loop that fits the group; only the loop `over`, if it is given."""
        facts, written = self.facts(op), self._written
        for name, rows in facts.loops.items():
            if (
                over in (None, name)
                and (
                    facts.extents[name] in self._extents
                    or any(d is not None and written.get(v) == d for v, d in zip(facts.operands, rows, strict=True))
                )
                and self._fits(facts, name, rows)
            ):
                self.add(op, name, rows)
                return True
        return False

    def close(self, op: kernel.KernelOp) -> bool:
        """Append a sum over the rows as the last op, if a loop can add it up from trip to trip."""
        found = summed_rows(op)
        if found is None or self._written.get(op.inputs[0]) != found[1] or not may_grow(op):
            return False
        name, rows = found[0], (found[1], None)
        if buffer_behind(op.output) in self._buffers or not self._fits(self.facts(op), name, rows):
            return False
        self.add(op, name, rows)
        return True

    @property
    def is_summed(self) -> bool:
        """Return whether the last op sums over the rows."""
        return self.rows[-1][-1] is None

    @property
    def totals(self) -> set[SSAValue]:
        """Return the sums of the group over its rows."""
        return {self.ops[-1].output} if self.is_summed else set()

    def add(self, op: kernel.KernelOp, name: str, rows: Rows) -> None:
        """Append an op with the loop `name` over rows."""
        facts = self.facts(op)
        self.ops.append(op)
        self.loops.append(name)
        self.rows.append(rows)
        self._extents.add(facts.extents[name])
        operands, buffers = facts.operands, facts.buffers
        for value, buffer in zip(operands, buffers, strict=True):
            self._values.setdefault(buffer, set()).add(value)
        for value, buffer, dim in zip(operands[:-1], buffers, rows, strict=False):
            self._read.setdefault(value, set()).add(dim)
            self._buffers.setdefault(buffer, False)
        self._beside.update([buffers[number] for number in facts.beside.get(name, ())])
        if (dim := rows[-1]) is not None:
            self._written[operands[-1]] = dim
            self._buffers[buffers[-1]] = True
            self._extents.add(facts.result[dim])  # a step may be several rows
        self._internal = None

    def _fits(self, facts: OpRows, name: str, rows: Rows) -> bool:
        """Return whether all ops walk what the group writes along one dimension, and read no rows beside their own."""
        operands, buffers, written = facts.operands, facts.buffers, self._written
        if name in facts.beside and any(self._buffers.get(buffers[number]) for number in facts.beside[name]):
            return False
        if buffers[-1] in self._beside:
            return False
        if any(written.get(value, dim) != dim for value, dim in zip(operands, rows, strict=True)):
            return False
        result = operands[-1]
        for value, buffer in zip(operands, buffers, strict=True):
            if self._is_seen_otherwise(value, buffer, written=value is result):
                return False
        read = self._read.get(result)
        return read is None or read == {rows[-1]}

    def _is_seen_otherwise(self, value: SSAValue, buffer: SSAValue, *, written: bool) -> bool:
        """Return whether the group writes a part of a buffer and uses another: rows of one are no rows of the other."""
        seen = self._values.get(buffer)
        if seen is None or (len(seen) == 1 and value in seen):
            return False
        return written or self._buffers[buffer]

    def is_independent(self, op: kernel.KernelOp) -> bool:
        """Return whether an op may run before the group: neither touches what the other writes."""
        *read, written = self.facts(op).buffers
        return written not in self._buffers and not any(self._buffers.get(buffer, False) for buffer in read)

    @property
    def written(self) -> list[SSAValue]:
        """Return the written buffers, in order of first write."""
        return list(self._written)

    def internal(self) -> list[SSAValue]:
        """Return buffers used only inside the group, written before they are read."""
        if self._internal is None:
            own, read, made = set[Operation](self.ops), set[SSAValue](), set[SSAValue]()
            for op in self.ops:
                *inputs, output = self.facts(op).operands
                read.update(inputs)
                if output not in read:
                    made.add(output)
            own_buffers = (v for v in self._written if v in made and isinstance(v.owner, kernel.AllocOp))
            self._internal = [v for v in own_buffers if all(u.operation in own for u in v.uses)]
        return self._internal

    def first(self, number: int) -> RowGroup:
        """Return the group of the first so many ops."""
        made = RowGroup(known=self.known)
        for op, loop, rows in list(zip(self.ops, self.loops, self.rows, strict=True))[:number]:
            made.add(op, loop, rows)
        return made


# Ops that only make buffers or see them otherwise, and do not end a group.
PASSED = (kernel.AllocOp, kernel.ToDeviceOp, kernel.KernelConstantOp, arith.ConstantOp, TileOp, ViewOp)


def grow(op: kernel.KernelOp, following: Iterable[Operation], known: KnownRows | None = None) -> list[RowGroup]:
    """Return the groups that begin with an op, one for each of its loops, each as long as possible.

    Args:
        op: the first op.
        following: what stands behind it. Ops that only make buffers do not end a group.
        known: facts of ops, to which more are added; see `RowGroup`.
    """
    groups, known = list[RowGroup](), {} if known is None else known
    behind = _Replayed(other for other in following if not isinstance(other, PASSED))
    for name, rows in row_loops(op).items():
        group = RowGroup(known=known)
        group.add(op, name, rows)
        groups += _grown(group, behind)
    return groups


def _grown(group: RowGroup, behind: _Replayed, since: int = 0) -> list[RowGroup]:
    """A group with what stands behind it, from one op on; several if a gather may join by one loop or another."""
    for number, other in enumerate(behind):
        if number < since:
            continue
        if len(group.ops) == MOST_KERNELS or not isinstance(other, kernel.KernelOp):
            break
        if isinstance(other, GatherOp) and (joined := _with_gather(group, other)):
            return [one for start in joined for one in _grown(start, behind, number + 1)]
        if not (group.take(other) or group.is_independent(other)):
            group.close(other)
            break
    return [group]


def _with_gather(group: RowGroup, op: GatherOp) -> list[RowGroup]:
    """The group with a gather by each of its loops that fit, as it reads nothing of the group that tells them apart."""
    found = list[RowGroup]()
    for name in row_loops(op):
        longer = group.first(len(group.ops))
        if longer.take(op, name):
            found.append(longer)
    return found


class _Replayed:
    """Ops to go through several times, each time no further than needed."""

    def __init__(self, ops: Iterator[Operation]) -> None:
        self._rest, self._seen = ops, list[Operation]()

    def __iter__(self) -> Iterator[Operation]:
        for number in count():
            if number == len(self._seen):
                if (op := next(self._rest, None)) is None:
                    return
                self._seen.append(op)
            yield self._seen[number]


def ops_from(op: Operation | None) -> Iterator[Operation]:
    """Yield an op and all behind it in its block."""
    while op is not None:
        yield op
        op = op.next_op


__all__ = [
    "PASSED",
    "KnownRows",
    "OpRows",
    "RowGroup",
    "grow",
    "ops_from",
]
