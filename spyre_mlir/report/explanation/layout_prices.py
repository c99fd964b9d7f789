"""Prices of a program with other layouts of one tensor: the program is lowered once with each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.debug.remaining_passes import lower_on
from spyre_mlir.dialects.ir.modules import copy_of
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice
from spyre_mlir.errors import SpyreError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.hw.sticks import UNIT, dim_text
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.report.explanation.choice_tables import ExplainedChoice, Price
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.loop_to_kernel.layout_reasons import LayoutReason
from spyre_mlir.universe import make_context

OTHERS = 2
MOST_LOWERED = 8  # of one explanation: the layouts of more tensors are listed without prices
MOST_KERNELS = 2000  # of all that are lowered


@dataclass
class LayoutPrices:
    """Prices of layouts in a program.

    Attributes:
        loop: the program before layouts are chosen.
        files: the program as it is compiled, at the last level.
        spec: the card.
        options: of passes.
    """

    loop: ModuleOp
    files: ModuleOp
    spec: SpyreSpec
    options: PassOptions
    _lowered: int = 0
    _known: dict[int, tuple[ExplainedChoice, ...]] = field(default_factory=dict[int, tuple[ExplainedChoice, ...]])

    def of(self, reason: LayoutReason) -> tuple[ExplainedChoice, ...]:
        """Return the chosen layout of a tensor and the next best, each with the price of the program.

        Args:
            reason: of the layout; nothing is returned if there is no other one.
        """
        others = [choice for choice in reason.legal if not _is_part(choice, reason.chosen)]
        if reason.op is None or reason.chosen is None or not others:
            return ()
        if reason.op not in self._known:
            self._known[reason.op] = self._priced(reason.op, reason.chosen, others)
        return self._known[reason.op]

    def _priced(self, number: int, chosen: LayoutChoice, others: Sequence[LayoutChoice]) -> tuple[ExplainedChoice, ...]:
        now = priced(str(chosen), self.files)
        self._lowered += len(others)
        if self._lowered > MOST_LOWERED or self._lowered * now.kernels > MOST_KERNELS:
            return (now, *(ExplainedChoice(str(other), asked_for(other, chosen)) for other in others[:OTHERS]))
        found = [self._with(number, other, chosen) for other in others]
        found.sort(key=lambda one: (one.price is None, 0.0 if one.price is None else one.price.total))
        return (now, *found[:OTHERS])

    def _with(self, number: int, other: LayoutChoice, chosen: LayoutChoice) -> ExplainedChoice:
        module = copy_of(self.loop)
        op = next(op for n, op in enumerate(module.walk()) if n == number)
        if (hint := hint_of(op)) is not None:
            replace(hint, layout=None).put(op)
        op.attributes[LAYOUT] = LayoutAttr(other)
        asked = asked_for(other, chosen)
        try:
            lower_on(module, make_context(self.spec), LEVELS[-1], self.options)
        except SpyreError as error:
            return ExplainedChoice(str(other), asked, refused=error.message)
        return replace(priced(str(other), module), hint=asked)


def priced(choice: str, files: ModuleOp) -> ExplainedChoice:
    """Return a choice with the price of a program at the last level that has it."""
    timed = module_timeline(files).kernels
    return ExplainedChoice(choice, "", len(timed), Price.total_of(timed))


def _is_part(choice: LayoutChoice, chosen: LayoutChoice | None) -> bool:
    """Return whether a legal layout is the chosen one, of which more may be said."""
    if chosen is None:
        return False
    return choice.lanes in ("", chosen.lanes) and choice.stick in (None, chosen.stick)


def asked_for(layout: LayoutChoice, chosen: LayoutChoice) -> str:
    """Return the hint in a model that asks for a layout instead of the chosen one."""
    if layout.stick is not None and layout.stick != chosen.stick:
        said = f'"stick": {dim_text(layout.stick)}' if layout.stick != UNIT else '"stick": "unit"'
    else:
        said = f'"lanes": "{layout.lanes}"'
    return f"hint(layout={{{said}}})"


__all__ = ["MOST_KERNELS", "LayoutPrices", "asked_for", "priced"]
