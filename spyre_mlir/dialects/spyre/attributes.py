"""Types and attributes of the `spyre` dialect: iteration spaces, index maps, device tensors.

Parsed and printed by hand: `assembly_format` of an attribute knows keywords only, and xDSL's own syntax of parameters
would write types behind numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.hw import formats
from spyre_mlir.hw.arrangement import block
from spyre_mlir.hw.hashed_once import hashed_once
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, StickError, StickLayout, dim_text, round_up


@hashed_once
@dataclass(frozen=True)
class IterDim:
    """One named loop: its extent, and over how many cores it is divided."""

    name: str
    extent: int
    split: int = 1


def parse_dim(parser: AttrParser) -> IterDim:
    """Reads ``name = extent`` or ``name = extent over split``."""
    name = parser.parse_identifier(": the name of an iteration dimension")
    parser.parse_punctuation("=")
    start = parser.pos
    extent = parser.parse_integer(allow_boolean=False)
    if extent < 1:
        parser.raise_error(f"extent of {name} is {extent}, expected at least 1", start, parser.pos)
    split = 1
    if parser.parse_optional_keyword("over") is not None:
        start = parser.pos
        split = parser.parse_integer(allow_boolean=False)
        if split < 1:
            parser.raise_error(f"{name} is divided over {split} cores, expected at least 1", start, parser.pos)
    return IterDim(name, extent, split)


def print_dim(printer: Printer, dim: IterDim) -> None:
    """Writes ``name = extent``, and the number of cores if it is divided."""
    printer.print_string(f"{dim.name} = {dim.extent}")
    if dim.split != 1:
        printer.print_string(f" over {dim.split}")


@hashed_once
@irdl_attr_definition
class SpaceAttr(Data[tuple[IterDim, ...]]):
    """A named iteration space: ``#spyre.space<m = 128 over 32, n = 256>``."""

    name = "spyre.space"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[IterDim, ...]:
        """Reads the dimensions between angle brackets."""
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_dim(parser)))

    def print_parameter(self, printer: Printer) -> None:
        """Writes the dimensions between angle brackets."""
        with printer.in_angle_brackets():
            printer.print_list(self.data, lambda d: print_dim(printer, d))

    def verify(self) -> None:
        """Names are unique."""
        names = [d.name for d in self.data]
        if len(set(names)) != len(names):
            raise VerifyException(f"an iteration dimension is named twice in {', '.join(names)}")

    @property
    def extents(self) -> dict[str, int]:
        """Extent by name."""
        return {d.name: d.extent for d in self.data}


@hashed_once
@irdl_attr_definition
class DivisionAttr(Data[tuple[tuple[str, int], ...]]):
    """Loops with the cores of each, the one that counts fastest first: ``#spyre.division<m over 32, n>``."""

    name = "spyre.division"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[tuple[str, int], ...]:
        """Reads the loops between angle brackets."""

        def parse_split() -> tuple[str, int]:
            name = parser.parse_identifier(": the name of a loop")
            divided = parser.parse_optional_keyword("over") is not None
            return name, parser.parse_integer(allow_boolean=False, allow_negative=False) if divided else 1

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_split))

    def print_parameter(self, printer: Printer) -> None:
        """Writes the loops between angle brackets."""
        loops = (name if split == 1 else f"{name} over {split}" for name, split in self.data)
        printer.print_string(f"<{', '.join(loops)}>")


def parse_expr(parser: AttrParser) -> LinearExpr:
    """Reads ``h * 64 + d + 3``."""
    const, terms = 0, dict[str, int]()
    sign = -1 if parser.parse_optional_punctuation("-") is not None else 1
    while True:
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        if number is not None:
            const += sign * number
        else:
            name = parser.parse_identifier(": an iteration dimension or a number")
            coefficient = 1
            if parser.parse_optional_punctuation("*") is not None:
                coefficient = parser.parse_integer(allow_boolean=False)
            terms[name] = terms.get(name, 0) + sign * coefficient
        if parser.parse_optional_punctuation("+") is not None:
            sign = 1
        elif parser.parse_optional_punctuation("-") is not None:
            sign = -1
        else:
            return LinearExpr(const, tuple(terms.items()))


@hashed_once
@irdl_attr_definition
class IndexMapAttr(Data[IndexMap]):
    """Element read or written by an operand: ``#spyre.map<b, h * 64 + d>``, one expression per dimension."""

    name = "spyre.map"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> IndexMap:
        """Reads the expressions between angle brackets."""
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: parse_expr(parser)))

    def print_parameter(self, printer: Printer) -> None:
        """Writes the expressions between angle brackets."""
        with printer.in_angle_brackets():
            printer.print_string(", ".join(map(str, self.data)))

    @cached_property
    def names(self) -> frozenset[str]:
        """The iteration dimensions the map mentions."""
        return frozenset([n for e in self.data for n, _ in e.terms])


@hashed_once
@dataclass(frozen=True)
class DeviceTensor:
    """Contents of a device tensor's type.

    Attributes:
        shape: logical extents, as the model sees them.
        format: number format, by its name in files, e.g. ``SEN169_FP16``.
        layout: where the elements lie.
        space: ``hbm`` or ``lx``.
        arrangement: order of the elements inside the sticks; ``standard`` unless a width change permuted them.
    """

    shape: tuple[int, ...]
    format: str
    layout: StickLayout
    space: str = "hbm"
    arrangement: str = "standard"

    @cached_property
    def lanes(self) -> int:
        """Elements per stick."""
        return formats.FORMATS[self.format].elements_per_stick()

    @property
    def block(self) -> int:
        """Elements along the stick dimension that stay together, whatever the order in the sticks."""
        return block(self.lanes, self.arrangement)

    @property
    def sticks(self) -> int:
        """Number of sticks of the tensor."""
        return self.layout.sticks(self.lanes)

    @cached_property
    def in_hbm(self) -> DeviceTensor:
        """The same tensor in device memory: all that does not follow from the place is the same."""
        return self if self.space == "hbm" else replace(self, space="hbm")

    @property
    def is_default(self) -> bool:
        """Return whether it lies as torch-spyre places a tensor."""
        standard = self.arrangement == "standard"
        return standard and self.layout.lies_as(StickLayout.default(self.shape, self.lanes), self.lanes)

    def shorter(self, dim: int, extent: int) -> DeviceTensor:
        """Return a tensor of its own with fewer elements along a dimension, and room for whole blocks of them."""
        reserved = round_up(extent, self.block if dim == self.layout.stick else 1)
        extents = (*self.layout.extents[:dim], reserved, *self.layout.extents[dim + 1 :])
        shape = (*self.shape[:dim], extent, *self.shape[dim + 1 :])
        return replace(self, shape=shape, layout=replace(self.layout, extents=extents))


SPACES = ("hbm", "lx")
ARRANGEMENTS = ("standard", "dl16_to_fp32", "fp32_to_dl16", "qfp8ch", "qfp8wt", "exx2")


@hashed_once
@irdl_attr_definition
class DeviceTensorType(Data[DeviceTensor], TypeAttribute):
    """A tensor in device memory: ``!spyre.tensor<[128, 200] x SEN169_FP16, order [1, 0], stick 1, hbm>``.

    ``unit`` names the implicit last dimension: ``stick unit`` is a sparse tensor. ``extents [...]`` is
    there when more elements are reserved than rounding to sticks asks for.
    """

    name = "spyre.tensor"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> DeviceTensor:
        """Reads shape, format, layout, memory space."""
        start = parser.pos
        with parser.in_angle_brackets():
            shape = tuple(
                parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False, allow_negative=False)
                )
            )
            parser.parse_keyword("x")
            at = parser.pos
            form = parser.parse_identifier(": a number format")
            if form not in formats.FORMATS:
                parser.raise_error(
                    f"unknown format '{form}', expected one of {', '.join(formats.FORMATS)}", at, parser.pos
                )
            layout, space = _parse_layout(parser, shape, formats.FORMATS[form].elements_per_stick())
            arrangement = "standard"
            if parser.parse_optional_punctuation(",") is not None:
                arrangement = parser.parse_identifier(": an element arrangement")
        tensor = DeviceTensor(shape, form, layout, space, arrangement)
        if (problem := _problem(tensor)) is not None:
            parser.raise_error(problem, start, parser.pos)
        return tensor

    def print_parameter(self, printer: Printer) -> None:
        """Writes shape, format, layout, memory space."""
        t = self.data
        text = f"{list(t.shape)} x {t.format}, order [{', '.join(map(dim_text, t.layout.order))}], "
        text += f"stick {dim_text(t.layout.stick)}"
        if t.layout.extents != _least_extents(t.shape, t.layout.stick, t.lanes):
            text += f", extents {list(t.layout.extents)}"
        if t.layout.unit_extent != 1:
            text += f", unit {t.layout.unit_extent}"
        text += f", {t.space}" + ("" if t.arrangement == "standard" else f", {t.arrangement}")
        with printer.in_angle_brackets():
            printer.print_string(text)

    def verify(self) -> None:
        """The layout covers the shape; space and arrangement are known."""
        if (problem := _problem(self.data)) is not None:
            raise VerifyException(problem)


def _least_extents(shape: Sequence[int], stick: int, lanes: int) -> tuple[int, ...]:
    return tuple(-(-e // lanes) * lanes if d == stick else e for d, e in enumerate(shape))


def _problem(t: DeviceTensor) -> str | None:
    """Return why a device tensor type is illegal, or None."""
    if len(t.shape) != len(t.layout.extents):
        return f"{len(t.layout.extents)} extents for a tensor of rank {len(t.shape)}"
    if t.layout.stick != UNIT and not 0 <= t.layout.stick < len(t.shape):
        return f"the stick dimension is {t.layout.stick}, the tensor has rank {len(t.shape)}"
    least = _least_extents(t.shape, t.layout.stick, t.lanes)
    for dim, (have, need) in enumerate(zip(t.layout.extents, least, strict=True)):
        if have < need:
            return f"dimension {dim} reserves {have} elements, needs {need}"
    if t.layout.stick != UNIT and t.layout.extents[t.layout.stick] % t.block:
        return f"the stick dimension reserves {t.layout.extents[t.layout.stick]} elements, no whole sticks of {t.block}"
    if t.space not in SPACES:
        return f"unknown memory space '{t.space}', expected one of {', '.join(SPACES)}"
    if t.arrangement not in ARRANGEMENTS:
        return f"unknown element arrangement '{t.arrangement}', expected one of {', '.join(ARRANGEMENTS)}"
    return None


def parse_dim_name(parser: AttrParser) -> int:
    """Reads a dimension as layouts name it."""
    if parser.parse_optional_keyword("unit") is not None:
        return UNIT
    return parser.parse_integer(allow_boolean=False, allow_negative=False)


def _parse_layout(parser: AttrParser, shape: tuple[int, ...], lanes: int) -> tuple[StickLayout, str]:
    """Reads the layout and the memory space behind it."""
    parser.parse_punctuation(",")
    parser.parse_keyword("order")
    start = parser.pos
    order = tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_dim_name(parser)))
    parser.parse_punctuation(",")
    parser.parse_keyword("stick")
    stick = parse_dim_name(parser)
    extents, unit_extent = _least_extents(shape, stick, lanes), 1
    while True:
        parser.parse_punctuation(",")
        if parser.parse_optional_keyword("extents") is not None:
            extents = tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer))
        elif parser.parse_optional_keyword("unit") is not None:
            unit_extent = parser.parse_integer(allow_boolean=False, allow_negative=False)
        else:
            space = parser.parse_identifier(": a memory space")
            break
    try:
        return StickLayout(order, stick, extents, unit_extent), space
    except StickError as error:
        parser.raise_error(str(error), start, parser.pos)
