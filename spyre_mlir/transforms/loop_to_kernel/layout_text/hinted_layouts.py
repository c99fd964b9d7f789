"""Layouts that hints ask for, said at the ops that make the results of the hinted operations.

An operation becomes several nests. Its hint concerns those whose results other operations read: for a nest that fills
a part of a tensor, the tensor.

Decision: docs/decisions/0140-hints-are-notes.md
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre.hints import HINT, Hint, HintError, hint_of
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice, layout_said
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopGatherOp, NestOp
from spyre_mlir.dialects.tensors import shape_of


def say_hinted_layouts(module: ModuleOp) -> dict[Operation, LayoutChoice]:
    """Write the layouts that hints ask for where `choose-layouts` would write its own; return them by op.

    Args:
        module: at the loop level; what its text says of the layouts already stays, if hints agree with it.

    Raises:
        HintError: the text or another hint says something else, or no result of the operation has these dimensions.
    """
    groups: dict[Attribute, list[Operation]] = {}
    for op in module.walk():
        if (said := op.attributes.get(HINT)) is not None and isinstance(op, NestOp | LoopGatherOp):
            groups.setdefault(said, []).append(op)
    found = dict[Operation, LayoutChoice]()
    for said, group in groups.items():
        hint = hint_of(group[0])
        if hint is not None and hint.layout is not None:
            _say(hint, hint.layout, [op for op in group if _is_read_elsewhere(op, said)], found)
    return found


def _say(hint: Hint, layout: LayoutChoice, makers: Iterable[Operation], found: dict[Operation, LayoutChoice]) -> None:
    for op in makers:
        rank = len(shape_of(op.results[0]))
        if hint.rank not in (None, rank) and (layout.stick is not None or layout.order):
            loops = ", ".join(d.name for d in op.space.data) if isinstance(op, NestOp | LoopGatherOp) else ""
            raise HintError(
                f"a hint says {layout} of a result of {hint.rank} dimensions, which is made as "
                f"{'x'.join(map(str, shape_of(op.results[0])))}",
                where=placed(op.name, op.location),
                hint=f'name the loop in the lanes instead, layout={{"lanes": …}}, of {loops}',
            )
        maker = _tensor_of(op)
        wanted = replace(layout, lanes="") if isinstance(maker, EmptyOp) else layout
        if (others := found.get(maker) or layout_said(maker)) is not None:
            wanted = _both(wanted, others, maker)
        found[maker] = wanted
        maker.attributes[LAYOUT] = LayoutAttr(wanted)


def _both(hinted: LayoutChoice, said: LayoutChoice, op: Operation) -> LayoutChoice:
    """A layout with the parts of both.

    Raises:
        HintError: they contradict each other.
    """
    pairs = ((hinted.lanes, said.lanes, ""), (hinted.stick, said.stick, None), (hinted.order, said.order, ()))
    if any(one != other and empty not in (one, other) for one, other, empty in pairs):
        raise HintError(
            f"a hint says {hinted}, and the program says {said}",
            where=placed(op.name, op.location),
            hint=f"take away one of them: the hint, or {LAYOUT}",
        )
    lanes, stick = hinted.lanes or said.lanes, said.stick if hinted.stick is None else hinted.stick
    return LayoutChoice(lanes, stick, hinted.order or said.order)


def _tensor_of(op: Operation) -> Operation:
    """The op that makes the tensor of a result: for a nest that fills a part of one, what it fills."""
    while isinstance(op, NestOp) and op.dest is not None and isinstance(op.dest.owner, NestOp | EmptyOp):
        op = op.dest.owner
    return op


def _is_read_elsewhere(op: Operation, said: Attribute) -> bool:
    """Return whether an op without this hint reads the result."""
    return any(use.operation.attributes.get(HINT) != said for use in op.results[0].uses)


__all__ = ["say_hinted_layouts"]
