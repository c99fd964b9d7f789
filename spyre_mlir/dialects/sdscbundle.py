"""The public sdscbundle dialect: the order in which SuperDSC files run, and the addresses they run with.

Syntax as published with the SuperDSC bundle interface specification: one `func.func @sdsc_bundle`, arguments of type
`!sdscbundle.input_arg<index>`, and `arith`, `affine` and `scf` around the three ops here.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import cast

from typing_extensions import override
from xdsl.dialects.builtin import I64, ArrayAttr, IndexType, IntAttr, IntegerAttr, NoneAttr, StringAttr, i64
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ir.integers import i64_attribute
from spyre_mlir.dialects.superdsc.dialect.attributes import parse_optional_text, print_text
from spyre_mlir.dialects.target import spec_at

BUNDLE_FUNCTION = "sdsc_bundle"  # of a file; those of a program with several have a number behind it


class ArgField(Enum):
    """A readable field of an input argument."""

    VALUE = "value"
    GRANULARITY = "granularity"
    MAX_VALUE = "max_value"


@irdl_attr_definition
class InputArgType(ParametrizedAttribute, TypeAttribute):
    """A bundle argument: an address, or a size with the granularity and the largest value it can have."""

    name = "sdscbundle.input_arg"

    element: IndexType
    granularity: IntAttr | NoneAttr
    max_value: IntAttr | NoneAttr

    def __init__(self, granularity: int | None = None, max_value: int | None = None) -> None:
        super().__init__(IndexType(), _optional(granularity), _optional(max_value))

    @classmethod
    @override
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        limits: dict[str, int] = {}
        with parser.in_angle_brackets():
            parser.parse_keyword("index")
            while parser.parse_optional_punctuation(","):
                name = parser.parse_keyword_in([name for name in _LIMITS if name not in limits])
                parser.parse_punctuation("=")
                limits[name] = parser.parse_integer(allow_boolean=False, allow_negative=False)
        return [IndexType(), *(_optional(limits.get(name)) for name in _LIMITS)]

    @override
    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("index")
            for name, limit in zip(_LIMITS, (self.granularity, self.max_value), strict=True):
                if isinstance(limit, IntAttr):
                    printer.print_string(f", {name}={limit.data}")


_LIMITS = (ArgField.GRANULARITY.value, ArgField.MAX_VALUE.value)


def _optional(number: int | None) -> IntAttr | NoneAttr:
    return NoneAttr() if number is None else IntAttr(number)


# Attribute of a launch that was read from disk: which tensor each of its operands is, where the manifest says it.
TENSORS = "tensors"
# How it calls what is another tensor at every launch of a region: by the number of the bundle function's argument.
PARAMETER = "parameter "
# And what control flow hands from one launch to another.
CARRIED = "carried"


@irdl_custom_directive
class _Launched(CustomDirective):
    """``sdsc_filename="…", symbol_ids=[…]``, in either order; ids may be left out."""

    filename: AttributeVariable
    ids: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: self._parse_property(parser, state))
        if self.filename.name not in state.properties:
            parser.raise_error(f"expected {self.filename.name}")

    def _parse_property(self, parser: Parser, state: ParsingState) -> None:
        name = parser.parse_keyword_in((self.filename.name, self.ids.name))
        parser.parse_punctuation("=")
        if name == self.filename.name:
            file = parser.expect(lambda: parse_optional_text(parser), "expected a file name")
            self.filename.set(state, StringAttr(file))
        else:
            ids = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parser.parse_integer(False))
            self.ids.set(state, ArrayAttr([IntegerAttr(number, i64) for number in ids]))

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        assert isinstance(op, SdscExecuteOp)
        state.print_whitespace(printer)
        printer.print_string(f"{self.filename.name}=")
        print_text(printer, op.sdsc_filename.data)
        if op.symbol_ids is not None:
            printer.print_string(f", {self.ids.name}={list(op.ids)}")


@irdl_custom_directive
class _FieldWord(CustomDirective):
    """A word that `ArgField` knows."""

    field: AttributeVariable

    @override
    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.field.set(state, StringAttr(parser.parse_keyword_in([field.value for field in ArgField])))

    @override
    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        field = self.field.get(op)
        assert isinstance(field, StringAttr)
        state.print_whitespace(printer)
        printer.print_string(field.data)


@irdl_op_definition
class SdscExecuteOp(IRDLOperation):
    """Runs one SuperDSC file, with a value for each symbol id it uses."""

    name = "sdscbundle.sdsc_execute"

    addresses = var_operand_def(IndexType)
    sdsc_filename = prop_def(StringAttr)
    symbol_ids = opt_prop_def(ArrayAttr[IntegerAttr])

    custom_directives = (_Launched,)
    assembly_format = (
        "` ` `(` $addresses `)` `{` custom<_Launched>($sdsc_filename, $symbol_ids) `}` attr-dict-with-keyword"
    )

    def __init__(self, filename: str, addresses: Sequence[SSAValue | Operation] = (), ids: Sequence[int] = ()) -> None:
        given = ArrayAttr([i64_attribute(number) for number in ids]) if ids else None
        super().__init__(
            operands=[list(addresses)], properties={"sdsc_filename": StringAttr(filename), "symbol_ids": given}
        )

    @property
    def ids(self) -> tuple[int, ...]:
        """The symbol ids, in operand order."""
        return () if self.symbol_ids is None else tuple(number.value.data for number in self.symbol_ids)

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensor of each operand; empty if unknown."""
        names = self.attributes.get(TENSORS)
        given = cast("ArrayAttr[Attribute]", names) if isinstance(names, ArrayAttr) else ()
        return tuple(name.data for name in given if isinstance(name, StringAttr))

    @override
    def verify_(self) -> None:
        ids = self.ids
        if len(ids) != len(self.addresses):
            raise VerifyException(
                f"{self.sdsc_filename.data}: {len(self.addresses)} operands for {len(ids)} symbol ids; "
                "give one address per id"
            )
        if any(number >= 0 for number in ids) or len(set(ids)) != len(ids):
            raise VerifyException(f"symbol ids must be negative and differ, got {list(ids)}")


@irdl_op_definition
class InputArgExtractOp(IRDLOperation):
    """Reads the value, the granularity or the largest value of an input argument."""

    name = "sdscbundle.input_arg_extract"

    arg = operand_def(InputArgType)
    field = prop_def(StringAttr)
    result = result_def(IndexType)

    traits = traits_def(Pure())
    custom_directives = (_FieldWord,)
    assembly_format = "custom<_FieldWord>($field) `from` $arg attr-dict `:` type($arg) `->` type($result)"

    def __init__(self, arg: SSAValue | Operation, field: ArgField = ArgField.VALUE) -> None:
        super().__init__(operands=[arg], properties={"field": StringAttr(field.value)}, result_types=[IndexType()])

    @override
    def verify_(self) -> None:
        fields = [field.value for field in ArgField]
        if self.field.data not in fields:
            raise VerifyException(f"field must be one of {', '.join(fields)}, got {self.field.data}")
        kind = self.arg.type
        if isinstance(kind, InputArgType) and self.field.data in _LIMITS:
            limit = kind.granularity if self.field.data == ArgField.GRANULARITY.value else kind.max_value
            if not isinstance(limit, IntAttr):
                raise VerifyException(f"the argument's type has no {self.field.data}; write it in the type")


@irdl_op_definition
class DeviceMemAllocateOp(IRDLOperation):
    """Scratch memory on the device that lives as long as the bundle runs; its contents are undefined."""

    name = "sdscbundle.device_mem_allocate"

    size = prop_def(IntegerAttr[I64])
    result = result_def(IndexType)

    assembly_format = "$size `bytes` attr-dict `:` type($result)"

    def __init__(self, size: int) -> None:
        super().__init__(properties={"size": IntegerAttr(size, i64)}, result_types=[IndexType()])

    @override
    def verify_(self) -> None:
        size, most = self.size.value.data, spec_at(self).pool_bytes
        if not 0 < size <= most:
            raise VerifyException(f"{size} bytes asked for, a bundle can have 1 to {most}")


Sdscbundle = Dialect("sdscbundle", [SdscExecuteOp, InputArgExtractOp, DeviceMemAllocateOp], [InputArgType])
