"""Steps of a program at the spyre.loop level: what each nest has to compute, load and store, before any plan."""

from __future__ import annotations

from collections.abc import Collection, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import combinations
from math import prod

from xdsl.dialects import func
from xdsl.dialects.builtin import Float8E4M3FNType, IntegerAttr, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import SymbolTable

from spyre_mlir.dialects.boxes import Box, box_of, overlap
from spyre_mlir.dialects.spyre import host, loop
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, PutOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16, FP8
from spyre_mlir.planning.bounds import Step

ELEMENT_BYTES = DL16.bits // 8  # the least that the device stores an element in, but for weights of eight-bit floats


def steps_of(module: ModuleOp, function: str = "main") -> list[Step]:
    """Return the steps of a function of a module at the spyre.loop level, called regions included.

    A nest that only copies has no step: a plan may read what it copies where it lies. Host steps have none either;
    what they make comes from outside.
    """
    main = SymbolTable.lookup_symbol(module, function)
    if not isinstance(main, func.FuncOp):
        return []
    walk = _Walk()
    walk.function(main, [True] * len(main.function_type.outputs.data))
    return _joined_where_parts_overlap(walk.steps)


@dataclass(frozen=True)
class _Part:
    """A part of a tensor from outside that a nest reads; the box is None if only its size is known."""

    tensor: SSAValue
    box: Box | None = None


def _joined_where_parts_overlap(steps: Sequence[Step]) -> list[Step]:
    """Steps that load a tensor whole, or each a part that no other step loads but as this part."""
    boxes = dict[SSAValue, set[Box | None]]()
    for step in steps:
        for key in step.loads:
            if isinstance(key, _Part):
                boxes.setdefault(key.tensor, set()).add(key.box)
    apart = {tensor for tensor, found in boxes.items() if len(found) > 1 and _are_apart(found)}

    def key_of(part: Hashable) -> Hashable:
        return part if not isinstance(part, _Part) or part.tensor in apart else part.tensor

    joined = list[Step]()
    for step in steps:
        loads = dict[Hashable, int]()
        for part, size in step.loads.items():
            loads[key_of(part)] = max(size, loads.get(key_of(part), 0))
        joined.append(replace(step, loads=loads))
    return joined


def _are_apart(boxes: Collection[Box | None]) -> bool:
    known = [box for box in boxes if box is not None]
    return len(known) == len(boxes) and not any(overlap(one, other) for one, other in combinations(known, 2))


@dataclass(frozen=True)
class _Content:
    """What a value consists of.

    Attributes:
        outside: bytes of parts of tensors from outside.
        local: bytes that the program computes.
        made_by: numbers of the steps that compute them.
    """

    outside: Mapping[_Part, int] = field(default_factory=dict[_Part, int])
    local: int = 0
    made_by: frozenset[int] = frozenset()

    def joined(self, other: _Content) -> _Content:
        """Return the content of a value that consists of two, which may overlap."""
        outside = dict(self.outside)
        for part, size in other.outside.items():
            known = outside.get(part, 0)
            outside[part] = min(_bytes(part.tensor), known + size) if part.box is None else max(known, size)
        return _Content(outside, self.local + other.local, self.made_by | other.made_by)

    def part(self, touched: int) -> _Content:
        """Return the least content of a part of so many bytes."""
        if len(self.outside) == 1 and self.local == 0 and touched < max(self.outside.values()):
            return _Content({_Part(part.tensor): touched for part in self.outside})
        return self


@dataclass
class _Walk:
    """A walk through the functions of a program.

    Attributes:
        contents: of every value so far.
        steps: those of the nests so far.
    """

    contents: dict[SSAValue, _Content] = field(default_factory=dict[SSAValue, _Content])
    steps: list[Step] = field(default_factory=list[Step])

    def function(self, function: func.FuncOp, stored: Sequence[bool]) -> list[_Content]:
        """Walk through a function of whose results some are stored outside; return what its results consist of."""
        ops = list(function.body.block.ops)
        returned = list(ops[-1].operands)
        results = _results(ops, {value for value, kept in zip(returned, stored, strict=True) if kept})
        for op in ops:
            if isinstance(op, func.CallOp):
                self._call(op, results)
            elif isinstance(op, loop.NestOp):
                self._nest(op, results)
            elif isinstance(op, BlockOp):
                self.contents[op.result] = self._content(op.source).part(_bytes(op.result))
            elif isinstance(op, PutOp):
                self.contents[op.result] = self._content(op.dest).joined(self._content(op.block))
        return [self._content(value) for value in returned]

    def _call(self, op: func.CallOp, results: Container[SSAValue]) -> None:
        callee = SymbolTable.lookup_symbol(op, op.callee)
        if not isinstance(callee, func.FuncOp):
            return
        for argument, value in zip(callee.body.block.args, op.arguments, strict=True):
            self.contents[argument] = self._content(value)
        made = self.function(callee, [result in results for result in op.results])
        self.contents.update(zip(op.results, made, strict=True))

    def _nest(self, op: loop.NestOp, results: Container[SSAValue]) -> None:
        before = _Content() if op.dest is None else self._content(op.dest)
        read = [self._part(op, value, index) for value, index in zip(op.inputs, op.input_maps, strict=True)]
        entry = loop.body_function(op.body.block)
        if entry is None and op.combine is None:
            self.contents[op.result] = before.joined(read[0])
            return
        points = prod(d.extent for d in op.space.data)
        macs = points if op.combine is not None and entry is not None else 0
        made = _touched(op, op.result, op.output_map)
        stores = made if op.result in results else 0
        whole = reduce(_Content.joined, read, _Content(local=made - stores))
        loads: dict[Hashable, int] = {t: max(c.outside.get(t, 0) for c in read) for t in whole.outside}
        self.contents[op.result] = before.joined(_Content(local=made, made_by=frozenset({len(self.steps)})))
        self.steps.append(
            Step(
                macs=macs,
                elements=points - macs,
                loads=loads,
                stores=stores,
                local=whole.local,
                after=whole.made_by,
            )
        )

    def _part(self, op: loop.NestOp, value: SSAValue, index: IndexMapAttr) -> _Content:
        content, touched = self._content(value), _touched(op, value, index)
        if content.outside == {_Part(value): _bytes(value)}:
            return _Content({_Part(value, box_of(op, index)): touched})
        return content.part(touched)

    def _content(self, value: SSAValue) -> _Content:
        if value not in self.contents:
            outside = isinstance(value, BlockArgument) or isinstance(value.owner, host.HostOp)
            self.contents[value] = _Content({_Part(value): _bytes(value)} if outside else {})
        return self.contents[value]


def _results(ops: Sequence[Operation], returned: set[SSAValue]) -> set[SSAValue]:
    """Values whose elements leave the function: what it returns, what that copies, and what it was filled from."""
    found = set(returned)
    for op in reversed(ops):
        if isinstance(op, loop.NestOp) and op.result in found:
            found.update([] if op.dest is None else [op.dest])
            if loop.body_function(op.body.block) is None and op.combine is None:
                found.add(op.inputs[0])
        if isinstance(op, PutOp) and op.result in found:
            found.add(op.block)
    return found


def _bytes(tensor: SSAValue) -> int:
    return prod(shape_of(tensor)) * _element_bytes(tensor)


def _element_bytes(tensor: SSAValue) -> int:
    return FP8.bits // 8 if isinstance(element_of(tensor), Float8E4M3FNType) else ELEMENT_BYTES


def _touched(op: loop.NestOp, value: SSAValue, index: IndexMapAttr) -> int:
    """Bytes of a tensor that a nest touches, as far as extents and steps of its map say."""
    extents = op.space.extents
    sizes = zip(shape_of(value), index.data, strict=False)
    elements = prod(min(size, e.last(extents) - e.first(extents) + 1) for size, e in sizes)
    digits = op.attributes.get(loop.DIGITS)
    return elements * digits.value.data // 8 if isinstance(digits, IntegerAttr) else elements * _element_bytes(value)


__all__ = ["steps_of"]
