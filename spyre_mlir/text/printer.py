"""The printer of IR text: xDSL's, with exact floats, and each distinct type formatted once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from io import StringIO
from typing import IO, cast

from xdsl.dialects.builtin import AnyFloat, ComplexType, DenseArrayBase, DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, TypeAttribute

from spyre_mlir.text.internals import InternalsPrinter
from spyre_mlir.text.literals import bits_text

_INLINE_ELEMENTS = 100  # longer literals are a hexadecimal string, as in xDSL


class SpyrePrinter(InternalsPrinter):
    """A printer of MLIR text that `SpyreParser` reads back to the same IR.

    Args:
        stream: where the text goes.
        print_generic_format: whether ops are printed in the generic format.
        print_properties_as_attributes: whether properties are printed among the attributes.
        print_debuginfo: whether every op's `loc(...)` is printed.
    """

    def __init__(
        self,
        stream: IO[str],
        *,
        print_generic_format: bool = False,
        print_properties_as_attributes: bool = False,
        print_debuginfo: bool = False,
    ) -> None:
        super().__init__(
            stream,
            print_generic_format=print_generic_format,
            print_properties_as_attributes=print_properties_as_attributes,
            print_debuginfo=print_debuginfo,
        )
        self._write = stream.write
        self._type_texts: dict[Attribute, str] = {}

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Write text; single-line text goes straight to the stream."""
        if "\n" in text:
            super().print_string(text, indent=indent)
            return
        self._write(text)
        self.advance_column(len(text))

    def print_attribute(self, attribute: Attribute) -> None:
        """Print an attribute or a type."""
        if isinstance(attribute, TypeAttribute):
            text = self._type_texts.get(attribute)
            if text is None:
                text = self._type_texts[attribute] = self._type_text(attribute)
            self.print_string(text)
        elif isinstance(attribute, DenseIntOrFPElementsAttr):
            self._print_dense(cast(DenseIntOrFPElementsAttr, attribute))
        elif isinstance(attribute, DenseArrayBase):
            self._print_array(cast(DenseArrayBase, attribute))
        else:
            super().print_attribute(attribute)

    def _type_text(self, type_: TypeAttribute) -> str:
        buffer = StringIO()
        # A printer of its own, so that the text does not depend on the place it is first printed at.
        InnerPrinter(buffer).print_attribute(type_)
        return buffer.getvalue()

    def print_float(self, value: float, type: AnyFloat) -> None:
        """Print a float; values without a decimal spelling are printed as bits."""
        if math.isfinite(value):
            super().print_float(value, type)
        else:
            self.print_string(bits_text(type.pack((value,))))

    def _print_raw_float(self, raw: bytes, type_: AnyFloat) -> None:
        """Print a float from its bytes: they know which NaN it is, a Python float need not."""
        value = type_.unpack(raw, 1)[0]
        if math.isfinite(value):
            super().print_float(value, type_)
        else:
            self.print_string(bits_text(raw))

    def _print_array(self, attribute: DenseArrayBase) -> None:
        type_ = attribute.elt_type
        if not isinstance(type_, AnyFloat):
            super().print_attribute(attribute)
            return
        self.print_string("array<")
        self.print_attribute(type_)
        raw = attribute.data.data
        if raw:
            self.print_string(": ")
            self.print_list(_split(raw, type_.compile_time_size), lambda one: self._print_raw_float(one, type_))
        self.print_string(">")

    def _print_dense(self, attribute: DenseIntOrFPElementsAttr) -> None:
        """Print a dense literal: splat, elements or bytes, decided on the bytes.

        Comparing values would take 0.0 and -0.0 for a splat, and a list of NaNs for none.
        """
        element_type = attribute.get_element_type()
        raw, size, count = attribute.data.data, element_type.compile_time_size, len(attribute)
        self.print_string("dense<")
        if isinstance(element_type, ComplexType) and _has_non_finite(attribute):
            self.print_string(f'"0x{raw.hex().upper()}"')
        elif count and raw == raw[:size] * count:
            self._print_element(raw[:size], attribute)
        elif count > _INLINE_ELEMENTS:
            self.print_string(f'"0x{raw.hex().upper()}"')
        elif count:
            self._print_elements(_split(raw, size), attribute.get_shape(), attribute)
        self.print_string("> : ")
        self.print_attribute(attribute.get_type())

    def _print_elements(self, parts: Sequence[bytes], shape: Sequence[int], owner: DenseIntOrFPElementsAttr) -> None:
        self.print_string("[")
        if len(shape) > 1:
            step = len(parts) // shape[0]
            rows = (parts[start : start + step] for start in range(0, len(parts), step))
            self.print_list(rows, lambda row: self._print_elements(row, shape[1:], owner))
        else:
            self.print_list(parts, lambda part: self._print_element(part, owner))
        self.print_string("]")

    def _print_element(self, raw: bytes, owner: DenseIntOrFPElementsAttr) -> None:
        type_ = owner.get_element_type()
        if isinstance(type_, AnyFloat):
            self._print_raw_float(raw, type_)
        elif isinstance(type_, ComplexType):
            self.print_complex(type_.unpack(raw, 1)[0], type_)
        else:
            self.print_int(type_.unpack(raw, 1)[0], type_)


class InnerPrinter(SpyrePrinter):
    """A printer of one type, without a cache."""

    def print_attribute(self, attribute: Attribute) -> None:
        """Print a type as xDSL does, its parameters as `SpyrePrinter` does."""
        if isinstance(attribute, TypeAttribute):
            super(SpyrePrinter, self).print_attribute(attribute)
        else:
            super().print_attribute(attribute)


def _split(raw: bytes, size: int) -> list[bytes]:
    return [raw[start : start + size] for start in range(0, len(raw), size)]


def _has_non_finite(attribute: DenseIntOrFPElementsAttr) -> bool:
    values = attribute.get_values()
    return not all(math.isfinite(part) for pair in values if isinstance(pair, tuple) for part in pair)
