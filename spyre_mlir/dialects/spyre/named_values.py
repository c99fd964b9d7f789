"""Values of constant tensors that are named, not listed: rising numbers, ones at the front, matrices that resample.

Decision: docs/decisions/0060-interpolation-by-named-matrices.md
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer


@irdl_attr_definition
class IotaAttr(ParametrizedAttribute):
    """The numbers start, start + step, … along the last dimension: ``#spyre.iota<0.0, 1.0>``."""

    name = "spyre.iota"

    start: FloatAttr = param_def()
    step: FloatAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Reads ``<start, step>``."""
        with parser.in_angle_brackets():
            start = parser.parse_number()
            parser.parse_punctuation(",")
            return (FloatAttr(float(start), f64), FloatAttr(float(parser.parse_number()), f64))

    def print_parameters(self, printer: Printer) -> None:
        """Writes ``<start, step>``."""
        with printer.in_angle_brackets():
            printer.print_string(f"{self.start.value.data!r}, {self.step.value.data!r}")


@irdl_attr_definition
class FirstOnesAttr(ParametrizedAttribute):
    """1 for the first `count` elements of the last dimension, 0 behind them: ``#spyre.first_ones<33>``."""

    name = "spyre.first_ones"

    count: IntegerAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Reads ``<count>``."""
        with parser.in_angle_brackets():
            return (IntegerAttr(parser.parse_integer(allow_boolean=False, allow_negative=False), 64),)

    def print_parameters(self, printer: Printer) -> None:
        """Writes ``<count>``."""
        with printer.in_angle_brackets():
            printer.print_int(self.count.value.data)


@irdl_attr_definition
class ResampleAttr(ParametrizedAttribute):
    """The matrix that resamples a dimension to another size: ``#spyre.resample<"linear", 0.5, -0.25>``.

    New element i lies at place scale * i + offset of the old ones; the op `spyre::resample` says what the modes do.
    """

    name = "spyre.resample"

    mode: StringAttr = param_def()
    scale: FloatAttr = param_def()
    offset: FloatAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Reads ``<mode, scale, offset>``."""
        with parser.in_angle_brackets():
            mode = parser.parse_str_literal()
            parser.parse_punctuation(",")
            scale = parser.parse_number()
            parser.parse_punctuation(",")
            offset = parser.parse_number()
        return (StringAttr(mode), FloatAttr(float(scale), f64), FloatAttr(float(offset), f64))

    def print_parameters(self, printer: Printer) -> None:
        """Writes ``<mode, scale, offset>``."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.mode.data)
            printer.print_string(f", {self.scale.value.data!r}, {self.offset.value.data!r}")
