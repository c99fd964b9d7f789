"""Layouts of arguments and results, said in the text: what the host sends and fetches.

``func.func @main(%x: tensor<4x128xf16> {spyre.layout = #spyre.layout<stick 1, order [1, 0]>}, …)``. An argument that is
sent in several layouts has a list of them. Inputs and results that programs on the card place have the default layout;
other inputs lie as it is said, and are laid out again for readers that want them otherwise; a weight lies as its
readers read it, in the order that is said.

Decision: docs/decisions/0182-arguments-say-their-layouts.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.argument_notes import placed_arguments, placed_results
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice, LayoutError, listed
from spyre_mlir.transforms.loop_to_kernel.buffers import PlannedBuffer

_FREE = "it has the default layout, in which programs on the card hand it over; option inputs=free leaves it open"


@dataclass
class ArgumentLayouts:
    """Layouts of a function's arguments and results, as a text says them.

    Attributes:
        arguments: by argument, layouts in which it is sent.
        results: by number, the layout in which it is fetched.
    """

    arguments: Mapping[SSAValue, Sequence[LayoutChoice]] = field(
        default_factory=dict[SSAValue, "Sequence[LayoutChoice]"]
    )
    results: Mapping[int, LayoutChoice] = field(default_factory=dict[int, LayoutChoice])

    @staticmethod
    def of(function: FuncOp) -> ArgumentLayouts:
        """Read what is said.

        Raises:
            LayoutError: a note is no layout; a result has several.
        """
        arguments = _said(function.arg_attrs)
        results = _said(function.res_attrs)
        if several := [number for number, choices in results.items() if len(choices) > 1]:
            raise LayoutError(f"result {several[0]} has several layouts", hint="say one")
        values = function.body.block.args
        return ArgumentLayouts(
            {values[number]: choices for number, choices in arguments.items()},
            {number: choices[0] for number, choices in results.items()},
        )

    def sent_stick(self, host: SSAValue | None, stick: int, *, prepared: bool) -> int:
        """Return the stick dimension in which the host sends a tensor to a reader that wants it with another one."""
        said: Sequence[LayoutChoice] = () if host is None or prepared else self.arguments.get(host, ())
        sticks = [choice.stick for choice in said if choice.stick is not None]
        return stick if not sticks or stick in sticks else sticks[0]

    def order(self, buffer: PlannedBuffer) -> PlannedBuffer:
        """Order the dimensions of what the host sends as it is said; return the buffer.

        Of several orders for its stick dimension it keeps its own, or has the first.
        """
        said: Sequence[LayoutChoice] = ()
        if buffer.host is not None and not buffer.moves:
            said = self.arguments.get(buffer.host, ())
        fitting = [choice for choice in said if choice.order and choice.stick in (None, buffer.layout.stick)]
        layouts = [choice.in_order(buffer.layout) for choice in fitting]
        if layouts:
            buffer.layout, buffer.ordered = buffer.layout if buffer.layout in layouts else layouts[0], True
        return buffer

    def check(self, function: FuncOp, sent: Iterable[PlannedBuffer], results: Sequence[PlannedBuffer | None]) -> None:
        """Check that everything lies as it is said.

        Args:
            function: of the arguments and results.
            sent: buffers that the host fills.
            results: buffers that it fetches; None for a tensor of the host.

        Raises:
            LayoutError: it does not; with the layouts that it has.
        """
        found = layouts_sent(sent)
        for argument, said in self.arguments.items():
            name = f"%{argument.name_hint}" if argument.name_hint else f"argument {_number(function, argument)}"
            placed = _number(function, argument) in placed_arguments(function)
            _compare(name, said, found.get(argument, ()), placed=placed)
        for number, choice in self.results.items():
            buffer = results[number] if number < len(results) else None
            has = () if buffer is None else (LayoutChoice.of(buffer.layout),)
            _compare(f"result {number}", (choice,), has, placed=number in placed_results(function))


def layouts_sent(sent: Iterable[PlannedBuffer]) -> dict[SSAValue, tuple[LayoutChoice, ...]]:
    """Return the layouts in which the host sends each tensor, as a text says them.

    Weights that it rearranges are left out: their shapes are others.
    """
    found: dict[SSAValue, dict[LayoutChoice, None]] = {}
    for buffer in sent:
        if buffer.host is not None and not buffer.moves:
            found.setdefault(buffer.host, {})[LayoutChoice.of(buffer.layout)] = None
    return {host: tuple(choices) for host, choices in found.items()}


def say_layouts(function: FuncOp, sent: Iterable[PlannedBuffer], results: Sequence[PlannedBuffer | None]) -> None:
    """Write the layouts of arguments and results into the text."""
    found = layouts_sent(sent)
    arguments = {a.index: _attribute(found[a]) for a in function.body.block.args if a in found}
    fetched = {n: _attribute((LayoutChoice.of(b.layout),)) for n, b in enumerate(results) if b is not None}
    function.arg_attrs = _with_notes(function.arg_attrs, len(function.function_type.inputs), arguments)
    function.res_attrs = _with_notes(function.res_attrs, len(function.function_type.outputs), fetched)


def drop_layouts(function: FuncOp) -> None:
    """Take them out of the text, once kernels have them as types."""
    for name in ("arg_attrs", "res_attrs"):
        notes = cast("ArrayAttr[DictionaryAttr] | None", getattr(function, name))
        if notes is not None and any(LAYOUT in note.data for note in notes):
            kept = [{key: value for key, value in note.data.items() if key != LAYOUT} for note in notes]
            setattr(function, name, ArrayAttr([DictionaryAttr(note) for note in kept]) if any(kept) else None)


def _said(notes: ArrayAttr[DictionaryAttr] | None) -> dict[int, tuple[LayoutChoice, ...]]:
    found: dict[int, tuple[LayoutChoice, ...]] = {}
    for number, note in enumerate(() if notes is None else notes):
        if (said := note.data.get(LAYOUT)) is not None:
            parts = cast("ArrayAttr[Attribute]", said).data if isinstance(said, ArrayAttr) else (said,)
            choices = tuple(part.data for part in parts if isinstance(part, LayoutAttr))
            if len(choices) < len(parts) or not choices or any(choice.lanes for choice in choices):
                example = LayoutAttr(LayoutChoice(stick=1, order=(1, 0)))
                raise LayoutError(
                    f"{LAYOUT} of an argument or result is {said}", hint=f"write {example}, without lanes"
                )
            found[number] = choices
    return found


def _with_notes(
    notes: ArrayAttr[DictionaryAttr] | None, count: int, said: Mapping[int, Attribute]
) -> ArrayAttr[DictionaryAttr] | None:
    if not said:
        return notes
    entries = [DictionaryAttr({})] * count if notes is None else list(notes.data)
    for number, attribute in said.items():
        entries[number] = DictionaryAttr({**entries[number].data, LAYOUT: attribute})
    return ArrayAttr(entries)


def _attribute(choices: Sequence[LayoutChoice]) -> Attribute:
    listed_ = [LayoutAttr(choice) for choice in choices]
    return listed_[0] if len(listed_) == 1 else ArrayAttr(listed_)


def _compare(name: str, said: Sequence[LayoutChoice], found: Sequence[LayoutChoice], *, placed: bool) -> None:
    for choice in said:
        if not any(_agrees(choice, other) for other in found):
            has = listed(found) if found else "none, as no kernel reads it"
            hint = f"{_FREE}: {has}" if placed else f"legal is what its readers read: {has}"
            raise LayoutError(f"the layout of {name} cannot be {choice}", hint=hint)
    for other in found:
        if not any(_agrees(choice, other) for choice in said):
            raise LayoutError(
                f"{name} is read in another layout, too: {other}", hint=f"say all of them: {listed(found)}"
            )


def _agrees(said: LayoutChoice, found: LayoutChoice) -> bool:
    return said.stick in (None, found.stick) and said.order in ((), found.order)


def _number(function: FuncOp, argument: SSAValue) -> int:
    return next(number for number, other in enumerate(function.body.block.args) if other is argument)


__all__ = ["ArgumentLayouts", "drop_layouts", "layouts_sent", "say_layouts"]
