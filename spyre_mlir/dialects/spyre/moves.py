"""Steps of the host before it lays a tensor out, as attributes: moves, words of digits, and indices of parts of rows.

`#spyre.move<[m = 4, n = 6] [n, m] -> [m * 6 + n] of [24]>`, `#spyre.words<8>` and `#spyre.row_parts<2>`.

Decision: docs/decisions/0138-weights-are-rearranged-at-load.md
Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
Decision: docs/decisions/0194-rows-are-gathered-in-parts.md
"""

from __future__ import annotations

from typing import assert_never

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, IterDim, SpaceAttr, parse_dim, parse_expr
from spyre_mlir.dialects.spyre.loop import check_map
from spyre_mlir.hw.few_bits import DIGITS, Words
from spyre_mlir.hw.hashed_once import hashed_once
from spyre_mlir.hw.moves import HostStep, Move, RowParts
from spyre_mlir.hw.sticks import IndexMap


def _parse_map(parser: AttrParser) -> IndexMap:
    return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser)))


@hashed_once
@irdl_attr_definition
class MoveAttr(Data[Move]):
    """Loops, the place that each point reads, the place that it writes, and the shape of the result.

    Constraints:
        C1: the target stays inside the shape, and every point writes a place of its own.
    """

    name = "spyre.move"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Move:
        """Reads the text between angle brackets."""
        with parser.in_angle_brackets():
            dims = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim(parser))
            source = _parse_map(parser)
            parser.parse_punctuation("->")
            target = _parse_map(parser)
            parser.parse_keyword("of")
            shape = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        return Move(tuple((d.name, d.extent) for d in dims), source, target, tuple(shape))

    def print_parameter(self, printer: Printer) -> None:
        """Writes it between angle brackets."""
        move = self.data
        loops = ", ".join(f"{name} = {extent}" for name, extent in move.loops)
        source, target = (", ".join(map(str, index)) for index in (move.source, move.target))
        printer.print_string(f"<[{loops}] [{source}] -> [{target}] of {list(move.shape)}>")

    @property
    def space(self) -> SpaceAttr:
        """Its loops."""
        return SpaceAttr(tuple(IterDim(name, extent) for name, extent in self.data.loops))

    def verify(self) -> None:
        """Checks C1."""
        check_map(IndexMapAttr(self.data.target), self.data.shape, self.space, "the target of a move")
        if self.data.overwrites:
            raise VerifyException(
                "a move writes some places twice: every loop belongs into the target, with a coefficient beyond the "
                "reach of those below it"
            )

    def shape_from(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the result; raise VerifyException unless the move stays inside a tensor of a shape."""
        check_map(IndexMapAttr(self.data.source), shape, self.space, "the source of a move")
        return self.data.shape


@hashed_once
@irdl_attr_definition
class WordsAttr(Data[Words]):
    """Words of digits of so many bits, of the first dimension of a tensor.

    Constraints:
        C1: kernels take digits of 8 or 4 bits out of words.
    """

    name = "spyre.words"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Words:
        """Reads the text between angle brackets."""
        with parser.in_angle_brackets():
            return Words(parser.parse_integer())

    def print_parameter(self, printer: Printer) -> None:
        """Writes it between angle brackets."""
        printer.print_string(f"<{self.data.bits}>")

    def verify(self) -> None:
        """Checks C1."""
        if self.data.bits not in DIGITS:
            raise VerifyException(f"words have digits of {' or '.join(map(str, DIGITS))} bits, here {self.data.bits}")

    def shape_from(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the words; raise VerifyException unless the first dimension makes whole ones."""
        try:
            return self.data.shape(shape)
        except ValueError as error:
            raise VerifyException(str(error)) from error


@hashed_once
@irdl_attr_definition
class RowPartsAttr(Data[RowParts]):
    """Indices of so many parts of each row, along a new first dimension of a tensor of indices.

    Constraints:
        C1: a row has two parts or more.
    """

    name = "spyre.row_parts"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RowParts:
        """Reads the text between angle brackets."""
        with parser.in_angle_brackets():
            return RowParts(parser.parse_integer())

    def print_parameter(self, printer: Printer) -> None:
        """Writes it between angle brackets."""
        printer.print_string(f"<{self.data.count}>")

    def verify(self) -> None:
        """Checks C1."""
        if self.data.count < 2:
            raise VerifyException(f"rows are taken apart in two parts or more, here in {self.data.count}")

    def shape_from(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the indices of parts."""
        return self.data.shape(shape)


StepAttr = MoveAttr | WordsAttr | RowPartsAttr


def step_attribute(step: HostStep) -> StepAttr:
    """Return the attribute of a step."""
    match step:
        case Move():
            return MoveAttr(step)
        case Words():
            return WordsAttr(step)
        case RowParts():
            return RowPartsAttr(step)
    assert_never(step)


__all__ = ["MoveAttr", "RowPartsAttr", "StepAttr", "WordsAttr", "step_attribute"]
