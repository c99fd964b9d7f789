"""The ops of the superdsc dialect: one per object of the file that deserves its own line.

Every op holds the fields of its object exactly as the file has them, except the lists that its region holds as ops:
those stand as an empty list (constants: an empty object) in the fields. The custom syntax leaves out what follows
from the rest; the generic form shows everything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from typing_extensions import override
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Block, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, NoTerminator, SymbolOpInterface

from spyre_mlir.dialects.superdsc.dialect import short_form, verify
from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr, parse_word, print_word
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject, as_text
from spyre_mlir.dialects.target import spec_at


class FieldsOp(IRDLOperation, ABC):
    """An op that mirrors one JSON object."""

    LEVEL: ClassVar[Level]

    fields = prop_def(JsonAttr)

    def __getitem__(self, key: str) -> Json:
        """Value of a field, by its key in the file; None where the file has no such key."""
        return self.fields.object.get(key)

    @abstractmethod
    def context(self) -> FileContext:
        """Facts from the rest of the file that this op needs."""

    def own_body(self) -> Region | None:
        """The region that holds the op's lists, if it has one."""
        return None

    def print_name(self, printer: Printer) -> None:
        """Print the part in front of the head."""

    @classmethod
    def parse_name(cls, parser: Parser) -> dict[str, Attribute]:  # noqa: ARG003 - overrides read it
        """Parse the part in front of the head, as properties."""
        return {}

    @override
    def print(self, printer: Printer) -> None:
        self.print_name(printer)
        short_form.print_fields(printer, self.LEVEL, self.fields.object, self.context())
        shown = {key: value for key, value in self.attributes.items() if key != short_form.PARTIAL}
        printer.print_op_attributes(shown, print_keyword=True)
        body = self.own_body()
        if body is not None:
            printer.print_string(" ")
            printer.print_region(body, print_empty_block=False)

    @classmethod
    @override
    def parse(cls, parser: Parser) -> Self:
        properties = cls.parse_name(parser)
        fields, partial = short_form.parse_fields(parser, cls.LEVEL)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls.create(
            properties={**properties, "fields": fields},
            attributes={**(attributes.data if attributes else {}), short_form.PARTIAL: partial},
            regions=[_parse_body(parser)] if cls.LEVEL in (Level.SDSC, Level.DSC) else [],
        )
        if isinstance(op, SdscOp):
            op.finish()
        return op

    def finish_fields(self) -> None:
        """Fill in the fields omitted from the text, now that the context is known."""
        partial = self.attributes.pop(short_form.PARTIAL, None)
        if isinstance(partial, JsonAttr):
            fields = short_form.complete(self.LEVEL, self.fields.object, partial.object, self.context())
            self.properties["fields"] = JsonAttr.of(fields)

    @override
    def verify_(self) -> None:
        verify.verify_complete(self)
        verify.verify_kinds(self.LEVEL, self.fields)


def _parse_body(parser: Parser) -> Region:
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    return region


class _InDsc(FieldsOp, ABC):
    """An op that mirrors an entry of one of a DSC's lists."""

    traits = lazy_traits_def(lambda: (HasParent(DscOp),))

    def __init__(self, fields: JsonObject) -> None:
        super().__init__(properties={"fields": JsonAttr.of(fields)})

    def context(self) -> FileContext:
        parent = self.parent_op()
        return parent.context() if isinstance(parent, DscOp) else FileContext()

    @property
    def index(self) -> Json:
        """`ldsIdx_`, whatever the file has there."""
        return self[keys.INDEX]


@irdl_op_definition
class AllocateOp(_InDsc):
    """An allocate node: where one operand lives, in which order, and where each core starts."""

    name = "superdsc.allocate"
    LEVEL: ClassVar[Level] = Level.ALLOCATE

    @override
    def verify_(self) -> None:
        super().verify_()
        verify.verify_allocate(self.fields.object)


@irdl_op_definition
class LabeledDsOp(_InDsc):
    """An operand: its layout class, its scales and its format."""

    name = "superdsc.labeled_ds"
    LEVEL: ClassVar[Level] = Level.LABELED_DS


@irdl_op_definition
class SdscConstantOp(_InDsc):
    """A named scalar; `key` is its number in `constantInfo_`."""

    name = "superdsc.constant"
    LEVEL: ClassVar[Level] = Level.CONSTANT

    key = prop_def(JsonAttr)

    def __init__(self, key: str, fields: JsonObject) -> None:
        super(FieldsOp, self).__init__(properties={"key": JsonAttr.of(key), "fields": JsonAttr.of(fields)})

    @override
    def print_name(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_word(printer, as_text(self.key.value) or "")

    @classmethod
    @override
    def parse_name(cls, parser: Parser) -> dict[str, Attribute]:
        return {"key": JsonAttr.of(parse_word(parser))}


@irdl_op_definition
class SdscComputeOp(_InDsc):
    """The hardware function that runs, and which operands it reads and writes."""

    name = "superdsc.compute"
    LEVEL: ClassVar[Level] = Level.COMPUTE


@irdl_op_definition
class DscOp(FieldsOp):
    """One design-space configuration: sizes, layout classes and, in its region, operands and the operation."""

    name = "superdsc.dsc"
    LEVEL: ClassVar[Level] = Level.DSC

    op_name = prop_def(JsonAttr)
    body = region_def("single_block")

    traits = lazy_traits_def(lambda: (HasParent(SdscOp), NoTerminator()))

    def __init__(self, op_name: str, fields: JsonObject, body: Sequence[_InDsc]) -> None:
        super().__init__(
            properties={"op_name": JsonAttr.of(op_name), "fields": JsonAttr.of(fields)}, regions=[Region(Block(body))]
        )

    @override
    def own_body(self) -> Region:
        return self.body

    @override
    def context(self) -> FileContext:
        parent = self.parent_op()
        context = parent.context() if isinstance(parent, SdscOp) else FileContext()
        context.read_dsc(self.fields.object)
        for op in self.body.block.ops:
            match op:
                case LabeledDsOp():
                    context.read_labeled_ds(op.fields.object)
                case AllocateOp():
                    context.read_allocate(op.fields.object)
                case SdscConstantOp():
                    context.has_constants = True
                case _:
                    pass
        return context

    @override
    def print_name(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_word(printer, as_text(self.op_name.value) or "")

    @classmethod
    @override
    def parse_name(cls, parser: Parser) -> dict[str, Attribute]:
        return {"op_name": JsonAttr.of(parse_word(parser))}

    def items(self, kind: type[_InDsc]) -> list[_InDsc]:
        """Return the ops of one kind in the region, in order."""
        return [op for op in self.body.block.ops if isinstance(op, kind)]

    @override
    def verify_(self) -> None:
        super().verify_()
        verify.verify_operands(
            [op.index for op in self.items(AllocateOp)],
            [op.index for op in self.items(LabeledDsOp)],
            [op.fields.object for op in self.items(SdscComputeOp)],
            spec_at(self),
        )
        verify.verify_division(self.context())


@irdl_op_definition
class SdscOp(FieldsOp):
    """One SuperDSC file: one operation on all its cores. The symbol is the file's root key."""

    name = "superdsc.sdsc"
    LEVEL: ClassVar[Level] = Level.SDSC

    sym_name = prop_def(StringAttr)
    root = opt_prop_def(JsonAttr)
    version = opt_prop_def(StringAttr)
    body = region_def("single_block")

    traits = traits_def(SymbolOpInterface(), NoTerminator())

    def __init__(self, root: str, fields: JsonObject, body: Sequence[DscOp], version: Version = Version.TS26) -> None:
        super().__init__(
            properties={**root_properties(root), **_version_property(version), "fields": JsonAttr.of(fields)},
            regions=[Region(Block(body))],
        )

    @property
    def root_key(self) -> str:
        """The file's root key."""
        exact = as_text(self.root.value) if self.root is not None else None
        return self.sym_name.data if exact is None else exact

    @property
    def generation(self) -> Version:
        """The generation of files that this one follows."""
        return Version.TS26 if self.version is None else Version(self.version.data)

    @property
    def file_name(self) -> str:
        """Return the name of the file in its bundle: its number, and in older generations its function."""
        index, _, function = self.root_key.partition("_")
        return self.generation.file_name(index, function)

    @override
    def own_body(self) -> Region:
        return self.body

    @override
    def context(self) -> FileContext:
        context = FileContext(version=self.generation)
        context.read_sdsc(self.fields.object)
        return context

    @override
    def print_name(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        if self.root is not None:
            printer.print_string(" root ")
            print_word(printer, self.root_key)
        if self.version is not None:
            printer.print_string(f" version {self.version.data}")

    @classmethod
    @override
    def parse_name(cls, parser: Parser) -> dict[str, Attribute]:
        properties: dict[str, Attribute] = {"sym_name": parser.parse_symbol_name()}
        if parser.parse_optional_keyword("root"):
            properties["root"] = JsonAttr.of(parse_word(parser))
        if parser.parse_optional_keyword("version"):
            word = parser.parse_keyword_in([version.value for version in Version])
            properties["version"] = StringAttr(word)
        return properties

    def finish(self) -> None:
        """Fill in elided fields here and in every op of the region."""
        self.finish_fields()
        for op in self.body.walk():
            if isinstance(op, FieldsOp):
                op.finish_fields()

    def dscs(self) -> list[DscOp]:
        """The DSCs, in order."""
        return [op for op in self.body.block.ops if isinstance(op, DscOp)]

    @override
    def verify_(self) -> None:
        super().verify_()
        if self.version is not None:
            verify.verify_version(self.version.data)
        verify.verify_cores(self.fields.object, spec_at(self))


def root_properties(root: str) -> dict[str, Attribute]:
    """Return the symbol of a root key, plus the exact key where the symbol had to be spelled in ASCII."""
    symbol = root.encode("ascii", "backslashreplace").decode("ascii")
    exact: dict[str, Attribute] = {} if symbol == root else {"root": JsonAttr.of(root)}
    return {"sym_name": StringAttr(symbol), **exact}


def _version_property(version: Version) -> dict[str, Attribute]:
    return {} if version is Version.TS26 else {"version": StringAttr(version.value)}
