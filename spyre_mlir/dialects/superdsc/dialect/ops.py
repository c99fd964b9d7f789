"""The ops of the superdsc dialect: one per object of the file that deserves its own line.

Every op holds the fields of its object exactly as the file has them: those that decide the others as typed properties
and links, the remainder as JSON. The lists that its region holds as ops stand as an empty list (constants: an empty
object) in the fields. The custom syntax leaves out what follows from the rest; the generic form shows everything.

Decision: docs/decisions/0116-superdsc-mirrors-json.md
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import I64, ArrayAttr, DenseArrayBase, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, OpResult, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, NoTerminator, SymbolOpInterface

from spyre_mlir.dialects.superdsc.dialect import links, short_form, typed_fields, verify
from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr, parse_word, print_word
from spyre_mlir.dialects.superdsc.dialect.fields_op import FieldsOp
from spyre_mlir.dialects.superdsc.dialect.layouts import (
    AllocationType,
    DimsAttr,
    LabeledDsType,
    LayoutClassAttr,
    ScalarAttr,
)
from spyre_mlir.dialects.superdsc.dialect.skeleton import by_skeleton
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject, as_text
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.hw.spec import SpyreSpec


class InDsc(FieldsOp, ABC):
    """An op that mirrors an entry of one of a DSC's lists."""

    traits = lazy_traits_def(lambda: (HasParent(DscOp),))

    @override
    def context(self) -> FileContext:
        parent = self.parent_op()
        return parent.context() if isinstance(parent, DscOp) else FileContext()


@irdl_op_definition
class AllocateOp(InDsc):
    """An allocate node: where one operand lives, in which order, and where each core starts."""

    name = "superdsc.allocate"
    LEVEL: ClassVar[Level] = Level.ALLOCATE
    RESULTS: ClassVar[Sequence[Attribute]] = (AllocationType(),)

    index = opt_prop_def(IntegerAttr[I64])
    component = opt_prop_def(StringAttr)
    symbolic = opt_prop_def(UnitAttr)
    order = opt_prop_def(ArrayAttr[StringAttr])
    start = opt_prop_def(DenseArrayBase[I64])
    result = result_def(AllocationType)

    def __init__(self, fields: JsonObject) -> None:
        super().__init__(properties=typed_fields.split(self.LEVEL, fields), result_types=[AllocationType()])
        _name_result(self.result, "a")

    @override
    def verify_fields(self, rest: JsonObject) -> None:
        self.verify_start()
        held: JsonObject = {} if self.symbolic is None else {keys.SYMBOLIC: 1}
        if self.order is not None:
            held[keys.ORDER] = [dim.data for dim in self.order]
        verify.verify_allocate(rest | held)

    def verify_start(self) -> None:
        """Check that the start addresses are those of sticks, or symbols."""
        if self.start is not None:
            verify.verify_starts(self.start.get_values(), self.symbolic is not None or bool(self[keys.SYMBOLIC]))


@irdl_op_definition
class LabeledDsOp(InDsc):
    """An operand: its layout class, its scales and its format, and the allocations that hold it."""

    name = "superdsc.labeled_ds"
    LEVEL: ClassVar[Level] = Level.LABELED_DS
    RESULTS: ClassVar[Sequence[Attribute]] = (LabeledDsType(),)

    places = var_operand_def(AllocationType)
    index = opt_prop_def(IntegerAttr[I64])
    layout_class = opt_prop_def(StringAttr, prop_name="class")
    scale = opt_prop_def(DenseArrayBase[I64])
    format = opt_prop_def(StringAttr)
    result = result_def(LabeledDsType)

    def __init__(self, fields: JsonObject, places: Sequence[SSAValue] = ()) -> None:
        properties = typed_fields.split(self.LEVEL, fields)
        super().__init__(operands=[places], properties=properties, result_types=[LabeledDsType()])
        _name_result(self.result, "t")

    @override
    def linked(self) -> links.Links:
        return {links.PLACES: self.operands}

    @override
    def verify_fields(self, rest: JsonObject) -> None:
        links.verify_places(links.number_of(self.result), self.operands)


@irdl_op_definition
class SdscConstantOp(InDsc):
    """A named scalar; `key` is its number in `constantInfo_`."""

    name = "superdsc.constant"
    LEVEL: ClassVar[Level] = Level.CONSTANT

    key = prop_def(StringAttr | JsonAttr)
    format = opt_prop_def(StringAttr)
    label = opt_prop_def(StringAttr, prop_name="name")
    data = opt_prop_def(ScalarAttr)

    def __init__(self, key: str, fields: JsonObject) -> None:
        super().__init__(properties={"key": name_attribute(key), **typed_fields.split(self.LEVEL, fields)})

    @override
    def print_name(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_word(printer, name_text(self.key))

    @classmethod
    @override
    def parse_name(cls, parser: Parser) -> dict[str, Attribute]:
        return {"key": name_attribute(parse_word(parser))}


@irdl_op_definition
class SdscComputeOp(InDsc):
    """The hardware function that runs, and which operands it reads and writes."""

    name = "superdsc.compute"
    LEVEL: ClassVar[Level] = Level.COMPUTE

    inputs = var_operand_def(LabeledDsType)
    outputs = var_operand_def(LabeledDsType)
    indices = var_operand_def(LabeledDsType)
    unit = opt_prop_def(StringAttr)
    function = opt_prop_def(StringAttr)
    format = opt_prop_def(StringAttr)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(self, fields: JsonObject, operands: Mapping[int, SSAValue] | None = None) -> None:
        found = links.find_links(fields, operands or {})
        groups = [found.get(group, []) for group in links.GROUPS[self.LEVEL]]
        super().__init__(operands=groups, properties=typed_fields.split(self.LEVEL, fields, found))

    @override
    def linked(self) -> links.Links:
        return dict(zip(links.GROUPS[self.LEVEL], (self.inputs, self.outputs, self.indices), strict=True))

    @override
    def verify_fields(self, rest: JsonObject) -> None:
        links.verify_references(self.linked())


def _name_result(result: OpResult, letter: str) -> None:
    number = links.number_of(result)
    if number is not None and number >= 0:
        result.name_hint = f"{letter}{number}"


@irdl_op_definition
class DscOp(FieldsOp):
    """One design-space configuration: sizes, layout classes and, in its region, operands and the operation."""

    name = "superdsc.dsc"
    LEVEL: ClassVar[Level] = Level.DSC

    op_name = prop_def(StringAttr | JsonAttr)
    sizes = opt_prop_def(DimsAttr)
    classes = opt_prop_def(ArrayAttr[LayoutClassAttr])
    body = region_def("single_block")

    traits = lazy_traits_def(lambda: (HasParent(SdscOp), NoTerminator(), IsolatedFromAbove()))

    def __init__(self, op_name: str, fields: JsonObject, body: Sequence[InDsc]) -> None:
        properties = {"op_name": name_attribute(op_name), **typed_fields.split(self.LEVEL, fields)}
        super().__init__(properties=properties, regions=[Region(Block(body))])

    @override
    def own_body(self) -> Region:
        return self.body

    @override
    def context(self) -> FileContext:
        parent = self.parent_op()
        context = parent.context() if isinstance(parent, SdscOp) else FileContext()
        context.read_dsc(self.pick(keys.SIZES, keys.CLASSES))
        for op in self.body.block.ops:
            match op:
                case LabeledDsOp():
                    context.read_labeled_ds(op.pick(keys.INDEX, keys.CLASS, keys.SCALE, keys.FORMAT))
                case AllocateOp():
                    context.read_allocate(op.pick(keys.INDEX, keys.COMPONENT))
                case SdscConstantOp():
                    context.has_constants = True
                case _:
                    pass
        return context

    @override
    def print_name(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_word(printer, name_text(self.op_name))

    @classmethod
    @override
    def parse_name(cls, parser: Parser) -> dict[str, Attribute]:
        return {"op_name": name_attribute(parse_word(parser))}

    def items(self, kind: type[InDsc]) -> list[InDsc]:
        """Return the ops of one kind in the region, in order."""
        return [op for op in self.body.block.ops if isinstance(op, kind)]

    @override
    def verify_fields(self, rest: JsonObject) -> None:
        verify.verify_operands(
            [op[keys.INDEX] for op in self.items(AllocateOp)],
            [op[keys.INDEX] for op in self.items(LabeledDsOp)],
            [op.pick(*links.GROUPS[op.LEVEL]) for op in self.items(SdscComputeOp)],
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
    splits = opt_prop_def(DimsAttr)
    body = region_def("single_block")

    traits = traits_def(SymbolOpInterface(), NoTerminator())

    def __init__(self, root: str, fields: JsonObject, body: Sequence[DscOp], version: Version = Version.TS26) -> None:
        super().__init__(
            properties={
                **root_properties(root),
                **_version_property(version),
                **typed_fields.split(self.LEVEL, fields),
            },
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
        context.read_sdsc(self.pick(keys.SPLITS))
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

    @override
    def finish(self) -> None:
        """Fill in elided fields here and in every op of the region."""
        for op in self.mirrors():
            op.finish_fields()

    @override
    def verify(self, verify_nested_ops: bool = True) -> None:
        """Verify the op: its start addresses, and the rest unless a SuperDSC of the same skeleton verified."""
        # No skeleton knows the attributes of the op itself, or that it is the last of its block.
        if not verify_nested_ops or self.next_op is None or short_form.PARTIAL in self.attributes:
            super().verify(verify_nested_ops=False)
        if not verify_nested_ops:
            return
        _verify_whole(self, spec_at(self))
        for op in self.body.walk():
            if isinstance(op, AllocateOp):
                op.verify_start()

    def mirrors(self) -> Iterator[FieldsOp]:
        """The op and all inside it that mirror a JSON object, outermost first."""
        return (op for op in self.walk() if isinstance(op, FieldsOp))

    def dscs(self) -> list[DscOp]:
        """The DSCs, in order."""
        return [op for op in self.body.block.ops if isinstance(op, DscOp)]

    @override
    def verify_fields(self, rest: JsonObject) -> None:
        if self.version is not None:
            verify.verify_version(self.version.data)
        splits: JsonObject = {} if self.splits is None else {keys.SPLITS: dict(self.splits.data)}
        verify.verify_cores(rest | splits, spec_at(self))


@by_skeleton
def _verify_whole(op: SdscOp, spec: SpyreSpec) -> None:  # noqa: ARG001 - verifiers inside look it up
    FieldsOp.verify(op)


def name_attribute(name: str) -> StringAttr | JsonAttr:
    """Return the attribute of a name: a string, unless its spelling needs escapes."""
    return StringAttr(name) if typed_fields.plain_text(name) else JsonAttr.of(name)


def name_text(attribute: StringAttr | JsonAttr) -> str:
    """Return the name that an attribute holds."""
    return attribute.data if isinstance(attribute, StringAttr) else as_text(attribute.value) or ""


def root_properties(root: str) -> dict[str, Attribute]:
    """Return the symbol of a root key, plus the exact key where the symbol had to be spelled in ASCII."""
    symbol = root.encode("ascii", "backslashreplace").decode("ascii")
    exact: dict[str, Attribute] = {} if symbol == root else {"root": JsonAttr.of(root)}
    return {"sym_name": StringAttr(symbol), **exact}


def _version_property(version: Version) -> dict[str, Attribute]:
    return {} if version is Version.TS26 else {"version": StringAttr(version.value)}
