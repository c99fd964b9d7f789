"""Reasons of layouts and of inserted kernels, as notes on nests and kernels that explanations read.

``{spyre.why = {by = "cost", legal = [#spyre.layout<lanes n, stick 1>, …]}}`` at a nest says how its layout was chosen;
at a kernel it adds the number of the op of the loop level whose result it writes, or says which reader a kernel was
inserted for. The notes are written on request alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre.layout_choices import WHY, LayoutAttr, LayoutChoice, layout_said
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopGatherOp, NestOp, body_function, combiner
from spyre_mlir.hw.sticks import UNIT, dim_text
from spyre_mlir.ops.hardware_functions import COPY, SELECT
from spyre_mlir.ops.native import contractions
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.choose_lane import legal_lanes
from spyre_mlir.transforms.loop_to_kernel.layout_planner import CONVERT_STEP, RESTICKIFY_STEP
from spyre_mlir.transforms.loop_to_kernel.layout_text.said_layouts import ChosenLayouts, lane_choice
from spyre_mlir.transforms.loop_to_kernel.operators.destinations import fillable_sticks
from spyre_mlir.transforms.loop_to_kernel.operators.gathers import gathered_lanes
from spyre_mlir.transforms.loop_to_kernel.operators.nests import COLUMNS
from spyre_mlir.transforms.loop_to_kernel.operators.reductions import is_product

BY_COST, BY_TRIAL, BY_HINT, BY_TEXT, FORCED, INSERTED = "cost", "trial", "hint", "text", "forced", "inserted"


@dataclass(frozen=True)
class LayoutReason:
    """Why a tensor lies as it does, or why a kernel was inserted.

    Attributes:
        by: who chose: the cost, trials, a hint, the text; or it is forced, or a reader needs a kernel that is inserted.
        text: what forces it, or what it is inserted for; empty where `by` says all.
        legal: the layouts that there were, if there were several.
        op: number of the op of the loop level that makes the tensor, in the order of a walk.
        chosen: the layout, at a kernel.
    """

    by: str
    text: str = ""
    legal: tuple[LayoutChoice, ...] = ()
    op: int | None = None
    chosen: LayoutChoice | None = None

    @property
    def attribute(self) -> DictionaryAttr:
        """The note that says it."""
        said: dict[str, Attribute] = {"by": StringAttr(self.by)}
        if self.text:
            said["text"] = StringAttr(self.text)
        if self.legal:
            said["legal"] = ArrayAttr([LayoutAttr(choice) for choice in self.legal])
        if self.op is not None:
            said["op"] = IntegerAttr(self.op, i64)
        if self.chosen is not None:
            said["chosen"] = LayoutAttr(self.chosen)
        return DictionaryAttr(said)

    def __str__(self) -> str:
        """A line about it."""
        match self.by:
            case "cost":
                return f"by cost, of {len(self.legal)} legal ones"
            case "trial":
                return f"quickest in trials, of {len(self.legal)} legal ones"
            case "hint":
                return "a hint asks for it"
            case "text":
                return "the text of the program says it"
            case _:
                return f"{self.by}: {self.text}"

    @staticmethod
    def taken_from(op: Operation) -> LayoutReason | None:
        """Return the reason that is noted at an op, and take the note away; None if there is none."""
        note = op.attributes.pop(WHY, None)
        return None if note is None else _read(note)


def _read(note: Attribute) -> LayoutReason | None:
    if not isinstance(note, DictionaryAttr):
        return None
    by, text, legal, op, chosen = (note.data.get(name) for name in ("by", "text", "legal", "op", "chosen"))
    listed = cast("ArrayAttr[Attribute]", legal).data if isinstance(legal, ArrayAttr) else ()
    return LayoutReason(
        by.data if isinstance(by, StringAttr) else "",
        text.data if isinstance(text, StringAttr) else "",
        tuple(one.data for one in listed if isinstance(one, LayoutAttr)),
        op.value.data if isinstance(op, IntegerAttr) else None,
        chosen.data if isinstance(chosen, LayoutAttr) else None,
    )


def reason_of(chosen: ChosenLayouts, op: Operation) -> LayoutReason:
    """Return why the result of an op lies as it does, before the choice is written into the text."""
    buffer = chosen.made.get(op)
    legal = () if buffer is None else tuple(legal_layouts(op, buffer))
    if op in chosen.hinted:
        return LayoutReason(BY_HINT, legal=legal)
    if op in chosen.tried and len(legal) > 1:
        return LayoutReason(BY_TRIAL, legal=legal)
    if layout_said(op) is not None:
        return LayoutReason(BY_TEXT, legal=legal)
    if len(legal) > 1:
        return LayoutReason(BY_COST, legal=legal)
    product = isinstance(op, NestOp) and is_product(op)
    return LayoutReason(FORCED, COLUMNS if product else "no other loop can walk the lanes")


def legal_layouts(op: Operation, buffer: PlannedBuffer) -> Iterable[LayoutChoice]:
    """Return the layouts that the result of an op may have, as far as they may be said.

    Args:
        op: at the loop level.
        buffer: that was planned for its result.
    """
    match op:
        case NestOp() if not is_product(op):
            return map(lane_choice, legal_lanes(op, buffer.format))
        case LoopGatherOp():
            return (LayoutChoice(lane, sticks[1]) for lane, sticks in gathered_lanes(op, buffer.format))
        case EmptyOp():
            return (LayoutChoice(stick=stick) for stick in fillable_sticks(op, buffer.format))
        case _:
            return ()


@dataclass
class KernelNotes:
    """Notes on the kernels of a function.

    Attributes:
        chosen: the layouts of the function.
        reasons: of these, by op, as the loop level has them.
        numbers: of the ops of the loop level.
    """

    chosen: ChosenLayouts
    reasons: Mapping[Operation, LayoutReason]
    numbers: Mapping[Operation, int]
    _makers: dict[PlannedBuffer, Operation] = field(default_factory=dict[PlannedBuffer, Operation])

    def __post_init__(self) -> None:
        self._makers = {buffer: op for op, buffer in self.chosen.made.items()}

    def of(self, step: PlannedKernel) -> LayoutReason | None:
        """Return the reason of what a kernel writes, or of the kernel itself; None if neither is known."""
        output, reader = step.output[0], _name(step.origin)
        (source, index), maker = step.inputs[-1], self._makers.get(output)
        if step.function == RESTICKIFY_STEP:
            if self._makers.get(source) is step.origin:
                return LayoutReason(INSERTED, f"the result of {reader} leaves the program with {_stick(output)}")
            return LayoutReason(INSERTED, f"{reader} reads it with {_stick(output)}, and it has {_stick(source)}")
        if step.function == CONVERT_STEP:
            return LayoutReason(INSERTED, f"{reader} wants it in {output.format}, and it is in {source.format}")
        if maker is not None and (step.function not in (COPY, SELECT) or step.origin is maker):
            return self._of_layout(maker)
        if step.function not in (COPY, SELECT) or maker is not None:
            return None if maker is None else self._of_layout(maker)
        if step.function == SELECT or (source.constant is not None and index == ()):
            return LayoutReason(INSERTED, f"{reader} reads beyond the elements, and finds this number there")
        if source.shape == output.shape:
            return LayoutReason(INSERTED, f"{reader} wants it in a place of its own: with other padding, or as placed")
        return LayoutReason(INSERTED, f"{reader} cannot read these elements where they lie")

    def note(self, step: PlannedKernel) -> Attribute | None:
        """Return the note on the kernel of a step."""
        reason = self.of(step)
        return None if reason is None else reason.attribute

    def _of_layout(self, op: Operation) -> LayoutReason | None:
        op = self.chosen.split.get(op, op)
        reason, number = self.reasons.get(op), self.numbers.get(op)
        return None if reason is None else replace(reason, op=number, chosen=layout_said(op))


def note_reasons(planned: Iterable[ChosenLayouts], module: ModuleOp, numbers: Mapping[Operation, int]) -> None:
    """Have the kernels of functions note their reasons when they are written.

    Args:
        planned: the layouts of the functions.
        module: at the loop level, with the notes of `choose-layouts`.
        numbers: of its ops.
    """
    reasons = {op: reason for op in module.walk() if (reason := LayoutReason.taken_from(op)) is not None}
    for chosen in planned:
        chosen.note = KernelNotes(chosen, reasons, numbers).note


def _stick(buffer: PlannedBuffer) -> str:
    stick = buffer.layout.stick
    return "one element per stick" if stick == UNIT else f"dimension {dim_text(stick)} in the sticks"


def _name(op: Operation | None) -> str:
    """The function and the line of the model that an op was made for, as far as they are known."""
    if op is None:
        return "the program"
    source = source_of(op.location)
    return _function(op) if source.file is None else f"{_function(op)} at {Path(source.file).name}:{source.line}"


def _function(op: Operation) -> str:
    if not isinstance(op, NestOp):
        return op.name
    if is_product(op):
        return str(contractions.matmul.opfunc)
    entry = body_function(op.body.block) if op.combine is None else combiner(op.combine.data)
    return COPY if entry is None else str(entry.opfunc)


__all__ = [
    "BY_COST",
    "BY_HINT",
    "BY_TEXT",
    "BY_TRIAL",
    "FORCED",
    "INSERTED",
    "KernelNotes",
    "LayoutReason",
    "legal_layouts",
    "note_reasons",
    "reason_of",
]
