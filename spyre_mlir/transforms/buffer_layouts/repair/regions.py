"""Parts of a function around changes of layout, as programs of their own.

A region has the ops near a change of layout whose layouts are open, and what these read and hand on: products of
matrices are at its edge. What it takes from outside lies as it does in the function, and what it hands on ends as it is
read there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from spyre_mlir.dialects.argument_notes import DEFAULT, KIND, MUTATES, NAME, placed_results
from spyre_mlir.dialects.argument_notes import LAYOUT as PLACED
from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.dialects.ir.modules import copy_on
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopConstantOp, LoopGatherOp, NestOp
from spyre_mlir.dialects.target import TARGET, TargetAttr, spec_at
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.transforms.buffer_layouts.repair.followers import tensor_of
from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import PlannedLayouts
from spyre_mlir.transforms.loop_to_kernel.buffers import stored_format
from spyre_mlir.transforms.loop_to_kernel.moved_weights import fillers
from spyre_mlir.transforms.regions.isomorphism import signature

MOST_OPS = 28
ENDS = 2  # groups of ops from which a region grows whatever they are: the two sides of a change of layout


@dataclass(frozen=True)
class LayoutRegion:
    """A part of a function as a program of its own.

    Attributes:
        module: the program, which says no layouts of its open ops.
        ops: the ops of the function, in the order of those in the program.
        open: numbers of the ops whose layouts are open, with the layouts that they may have.
        present: their layouts in the function.
        whole: whether the function has no other nests.
    """

    module: ModuleOp
    ops: tuple[Operation, ...]
    open: Mapping[int, Sequence[LayoutChoice]]
    present: Mapping[int, LayoutChoice]
    whole: bool

    @property
    def key(self) -> Hashable:
        """Key that equal regions share."""
        values, ops = dict[SSAValue, int](), list[Hashable]()
        for op in self.module.walk():
            ops.append((signature(op), *[values[v] for v in op.operands]))
            for made in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
                values[made] = len(values)
        return *ops, *self.present.items()


def region_around(seeds: Iterable[Operation], planned: PlannedLayouts) -> LayoutRegion | None:
    """Return the part of a function around ops; None if it cannot be a program of its own.

    Args:
        seeds: between which a tensor is laid out again.
        planned: the layouts of the function.
    """
    ops = _near(seeds, planned)
    return _Writer(planned, ops).region() if any(op in planned.open for op in ops) else None


def _near(seeds: Iterable[Operation], planned: PlannedLayouts) -> list[Operation]:
    """Ops around others, the nearest first, up to `MOST_OPS` of them; in the order of the function."""
    found, queue = dict[Operation, None](), [_group(op) for op in seeds]
    for at, group in enumerate(queue):
        if not group or group[0] in found or len(found) + len(group) > MOST_OPS:
            continue
        found |= dict.fromkeys(group)
        if at < ENDS or any(op in planned.open for op in group):
            queue += [_group(near) for op in group for near in _neighbours(op, planned)]
    return sorted(found, key=lambda op: planned.numbers[op])


def _group(op: Operation) -> list[Operation]:
    """An op with those that fill the same tensor; empty if that comes from elsewhere, or the op makes no tensor."""
    root = tensor_of(op)
    if isinstance(root, EmptyOp):
        return [root, *fillers(root.result)]
    fills = isinstance(root, NestOp) and root.dest is not None
    return [root] if isinstance(root, NestOp | LoopGatherOp) and not fills else []


def _neighbours(op: Operation, planned: PlannedLayouts) -> list[Operation]:
    """Ops that make what an op reads, those that read its result, and those that read the same inputs."""
    makers = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
    sent = [v for v in op.operands if planned.is_sent(v)]
    readers = {use.operation for value in (*op.results, *sent) for use in value.uses}
    return [*makers, *sorted(readers, key=lambda one: planned.numbers[one])]


@dataclass
class _Writer:
    """Writes a region."""

    planned: PlannedLayouts
    ops: Sequence[Operation]
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    notes: list[DictionaryAttr] = field(default_factory=list[DictionaryAttr])
    block: Block = field(default_factory=Block)
    constants: list[Operation] = field(default_factory=list[Operation])

    def region(self) -> LayoutRegion | None:
        """Write all of it; None if something that it takes cannot be said."""
        inside, planned = set(self.ops), self.planned
        for op in self.ops:
            for value in op.operands:
                if value.owner not in inside and value not in self.values and not self._take(value):
                    return None
        copies = [self._copy(op) for op in self.ops]
        given = list(dict.fromkeys(self._given(inside)))
        self.block.add_ops([*self.constants, *copies, func.ReturnOp(*[self.values[v] for v, _ in given])])
        types = [a.type for a in self.block.args], [v.type for v, _ in given]
        notes = ArrayAttr(self.notes), ArrayAttr([note for _, note in given])
        made = func.FuncOp("main", types, Region(self.block), arg_attrs=notes[0], res_attrs=notes[1])
        module = ModuleOp([made])
        module.attributes[TARGET] = TargetAttr(spec_at(planned.function))
        open_ = {n: planned.open[op] for n, op in enumerate(self.ops) if op in planned.open}
        nests = [op for op in planned.numbers if isinstance(op, EmptyOp | NestOp | LoopGatherOp)]
        present = {n: planned.choices[self.ops[n]] for n in open_}
        return LayoutRegion(module, tuple(self.ops), open_, present, len(nests) == len(self.ops))

    def _copy(self, op: Operation) -> Operation:
        made = copy_on(op, self.values)
        made.attributes.pop(ORIGIN, None)
        if op in self.planned.choices and op not in self.planned.open:
            made.attributes[LAYOUT] = LayoutAttr(self.planned.choices[op])
        for old, new in zip(op.results, made.results, strict=True):
            self.values[old], new.name_hint = new, None
        return made

    def _take(self, value: SSAValue) -> bool:
        """Let the region have a value from outside; return False if it cannot."""
        if isinstance(value.owner, LoopConstantOp):
            made = copy_on(value.owner, {})
            made.attributes.pop(ORIGIN, None)
            self.constants.append(made)
            self.values[value], made.results[0].name_hint = made.results[0], None
            return True
        if (note := self._note(value)) is None:
            return False
        self.values[value] = self.block.insert_arg(value.type, len(self.block.args))
        self.notes.append(DictionaryAttr(note))
        return True

    def _note(self, value: SSAValue) -> dict[str, Attribute] | None:
        """How a value from outside comes to the region: as it does to the function, or as it lies there."""
        planner, forms = self.planned.planner, self.planned.planner.versions.get(value)
        if value in planner.carried:
            return None
        if value in planner.hosts and isinstance(value, BlockArgument):
            if (noted := self.planned.function.arg_attrs) is None:
                return {}
            return {n: note for n, note in noted.data[value.index].data.items() if n not in (NAME, MUTATES)}
        if forms is None:
            return None
        if forms.free_layout:
            return {KIND: StringAttr("parameter")} if forms.prepared else None
        if not forms.buffers or forms.format != stored_format(element_of(value), keep_float32=planner.keep_float32):
            return None
        # Those that are laid out for ops of the region alone are not there.
        first, *others = forms.buffers
        lies = [first, *(b for b in others if self.planned.relaid_for.get(b) not in self.ops)]
        said = [LayoutAttr(LayoutChoice.of(b.layout)) for b in lies]
        return {LAYOUT: said[0] if len(said) == 1 else ArrayAttr(said)}

    def _given(self, inside: set[Operation]) -> Iterable[tuple[SSAValue, DictionaryAttr]]:
        """What the region hands on, with notes on how it ends."""
        for value in [v for op in self.ops for v in op.results]:
            if not value.uses.get_length():
                yield value, DictionaryAttr({})
            for use in value.uses:
                if use.operation not in inside:
                    yield from ((value, DictionaryAttr(note)) for note in self._ends(value, use.operation, use.index))

    def _ends(self, value: SSAValue, reader: Operation, index: int) -> list[dict[str, Attribute]]:
        if isinstance(reader, func.ReturnOp):
            placed = index in placed_results(self.planned.function)
            return [{PLACED: StringAttr(DEFAULT)} if placed else {}]
        return [{LAYOUT: LayoutAttr(LayoutChoice(stick=one.stick))} for one in self.planned.read(value, reader)]


__all__ = ["MOST_OPS", "LayoutRegion", "region_around"]
