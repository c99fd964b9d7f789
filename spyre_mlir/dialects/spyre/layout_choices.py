"""`spyre.layout`: the layout that a nest's result gets on the device, said while tensors have no layouts yet.

``%0 = spyre.loop.nest … attributes {spyre.layout = #spyre.layout<lanes n, stick 1, order [1, 0]>}``. Pass
`choose-layouts` writes it, a reader may change it, and the conversion to kernels follows it. A layout changes no
result, so the attribute is discardable.

Decision: docs/decisions/0175-layouts-are-said-in-the-text.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre.attributes import parse_dim_name
from spyre_mlir.errors import InputError
from spyre_mlir.hw.hashed_once import hashed_once
from spyre_mlir.hw.sticks import UNIT, StickError, StickLayout, dim_text

LAYOUT = "spyre.layout"
WHY = "spyre.why"  # who chose it; see `spyre_mlir.transforms.loop_to_kernel.layout_reasons`
NO_LOOP = "none"


class LayoutError(InputError):
    """A layout that cannot be followed."""


@hashed_once
@dataclass(frozen=True)
class LayoutChoice:
    """A layout or a part of it; the rest is left to the planner.

    Attributes:
        lanes: the loop in the lanes, `NO_LOOP` of a nest that computes one element per stick; empty if it is not said.
        stick: the stick dimension of the result, `UNIT` of a sparse one; None if it is not said.
        order: the dimensions of the result, outermost first; empty if it is not said.
    """

    lanes: str = ""
    stick: int | None = None
    order: tuple[int, ...] = ()

    @staticmethod
    def of(layout: StickLayout, lanes: str = "") -> LayoutChoice:
        """Return all that can be said of a layout."""
        kept = (d for d in layout.order if d != UNIT or layout.stick == UNIT)
        return LayoutChoice(lanes, layout.stick, tuple(kept))

    def __str__(self) -> str:
        parts = [f"lanes {self.lanes}"] if self.lanes else []
        parts += [] if self.stick is None else [f"stick {dim_text(self.stick)}"]
        parts += [f"order [{', '.join(map(dim_text, self.order))}]"] if self.order else []
        return ", ".join(parts)

    def in_order(self, layout: StickLayout) -> StickLayout:
        """Return a layout with its dimensions in the order that is said.

        Raises:
            LayoutError: the order does not list every dimension once.
        """
        if not self.order:
            return layout
        try:
            return StickLayout(self.order, layout.stick, layout.extents, layout.unit_extent)
        except StickError as error:
            example = LayoutChoice.of(layout)
            raise LayoutError(f"{error}, with stick {dim_text(layout.stick)}", hint=f"for example {example}") from error


def _parsed_part(parser: AttrParser) -> tuple[str, object]:
    """Reads one part and its name."""
    read: dict[str, Callable[[], object]] = {
        "lanes": lambda: parser.parse_identifier(": a loop, or none"),
        "stick": lambda: parse_dim_name(parser),
        "order": lambda: tuple(
            parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim_name(parser))
        ),
    }
    start = parser.pos
    name = parser.parse_identifier(": lanes, stick or order")
    if name not in read:
        parser.raise_error(f"a layout has no part '{name}', expected lanes, stick or order", start, parser.pos)
    return name, read[name]()


@hashed_once
@irdl_attr_definition
class LayoutAttr(Data[LayoutChoice]):
    """The loop in the lanes, the stick dimension, and the order of the dimensions: each may be left out."""

    name = "spyre.layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> LayoutChoice:
        """Reads the text between angle brackets."""
        start = parser.pos
        parts = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _parsed_part(parser))
        said = dict(parts)
        if len(said) < len(parts) or not said:
            parser.raise_error(
                "a layout says lanes, stick and order once each, one of them at least", start, parser.pos
            )
        return LayoutChoice(**said)  # pyright: ignore[reportArgumentType]  # each part is read as its type

    def print_parameter(self, printer: Printer) -> None:
        """Writes it between angle brackets."""
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def layout_said(op: Operation) -> LayoutChoice | None:
    """Return the layout that the text gives the result of an op; None if it gives none.

    Raises:
        LayoutError: the attribute is no layout.
    """
    if (said := op.attributes.get(LAYOUT)) is None:
        return None
    if isinstance(said, LayoutAttr):
        return said.data
    example = LayoutAttr(LayoutChoice("n", 1, (1, 0)))
    raise LayoutError(f"{LAYOUT} is {said}", where=placed(op.name, op.location), hint=f"write {example}")


def listed(choices: Sequence[LayoutChoice]) -> str:
    """Return layouts as a list for messages."""
    return "; ".join(dict.fromkeys(map(str, choices)))


__all__ = ["LAYOUT", "NO_LOOP", "WHY", "LayoutAttr", "LayoutChoice", "LayoutError", "layout_said", "listed"]
