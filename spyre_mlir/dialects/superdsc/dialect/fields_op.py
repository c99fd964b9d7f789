"""The base of the ops of the superdsc dialect: one JSON object as properties, links and a remainder, and its text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Self

from typing_extensions import override
from xdsl.dialects.builtin import DenseArrayBase, i32
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import AttrSizedOperandSegments, IRDLOperation, opt_prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from spyre_mlir.dialects.superdsc.dialect import links, short_form, typed_fields, verify
from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.model.fields import Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject


class FieldsOp(IRDLOperation, ABC):
    """An op that mirrors one JSON object: its deciding fields are properties and links, the others one JSON value."""

    LEVEL: ClassVar[Level]
    RESULTS: ClassVar[Sequence[Attribute]] = ()

    rest = opt_prop_def(JsonAttr)
    key_order = opt_prop_def(JsonAttr)

    @property
    def fields(self) -> JsonObject:
        """The object as the file has it: a fresh value."""
        return typed_fields.join(self.LEVEL, self.properties, links.references(self.linked()))

    def __getitem__(self, key: str) -> Json:
        """Value of a field, by its key in the file; None where the file has no such key."""
        values = self.linked().get(key)
        if values:
            return links.references({key: values})[key]
        return typed_fields.field(self.LEVEL, self.properties, key)

    def pick(self, *wanted: str) -> JsonObject:
        """Return some of the fields; null where the file has no such key."""
        return {key: self[key] for key in wanted}

    def linked(self) -> links.Links:
        """Return the SSA values that stand for fields, by the fields' keys."""
        return {}

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
        short_form.print_fields(printer, self.LEVEL, self.fields, self.context(), self.linked())
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
        spelled = short_form.parse_fields(parser, cls.LEVEL)
        properties |= typed_fields.split(cls.LEVEL, spelled.fields)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        groups = [spelled.links.get(group, []) for group in links.GROUPS.get(cls.LEVEL, ())]
        op = cls.create(
            operands=[value for group in groups for value in group],
            result_types=cls.RESULTS,
            properties={**properties, **_segments(groups)},
            attributes={
                **(attributes.data if attributes else {}),
                short_form.PARTIAL: JsonAttr.of(spelled.partial),
            },
            regions=[_parse_body(parser)] if cls.LEVEL in (Level.SDSC, Level.DSC) else [],
        )
        op.finish()
        return op

    def finish(self) -> None:
        """Complete the op after parsing; only a whole file knows what its text leaves out."""

    def finish_fields(self) -> None:
        """Fill in the fields omitted from the text, now that the context is known."""
        partial = self.attributes.pop(short_form.PARTIAL, None)
        if isinstance(partial, JsonAttr):
            self._store(short_form.complete(self.LEVEL, self.fields, partial.object, self.context()))

    def _store(self, fields: JsonObject) -> None:
        """Replace the properties that hold fields."""
        ours = {typed.name for typed in typed_fields.TYPED[self.LEVEL].values()}
        for name in (*ours, typed_fields.REST, typed_fields.KEY_ORDER):
            self.properties.pop(name, None)
        linked = [key for key, values in self.linked().items() if values]
        self.properties |= typed_fields.split(self.LEVEL, fields, linked)

    @override
    def verify_(self) -> None:
        verify.verify_complete(self)
        rest = typed_fields.rest_of(self.properties)
        linked = [key for key, values in self.linked().items() if values]
        verify.verify_rest(self.rest, typed_fields.doubled(self.LEVEL, self.properties, linked, rest))
        verify.verify_kinds(self.LEVEL, rest)  # the other fields have types
        self.verify_fields(rest)

    def verify_fields(self, rest: JsonObject) -> None:
        """Check properties, links and the rest against each other."""


def _segments(groups: list[list[SSAValue]]) -> dict[str, Attribute]:
    """Sizes of the groups of operands, where an op has several."""
    if len(groups) < 2:
        return {}
    sizes = DenseArrayBase.from_list(i32, [len(group) for group in groups])
    return {AttrSizedOperandSegments.attribute_name: sizes}


def _parse_body(parser: Parser) -> Region:
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    return region
