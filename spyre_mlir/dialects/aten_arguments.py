"""Attributes of the aten dialect, and their conversion from Python arguments of an op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

OperandT = TypeVar("OperandT")

# Discardable, while a program is lowered: the number of the aten op that an op comes from, for errors to name it.
ORIGIN = "spyre.origin"
# Discardable, of a sum: how many of the numbers that a result adds up may be other than 0, if that is known.
TERMS = "spyre.terms"
# Discardable, of a step that only moves a weight's elements: the host makes what it gives, however large that is.
WIDENED = "spyre.widened"
# Discardable, of an `index_select` by one number that the host has: the host says where kernels read the row.
PLACED = "spyre.placed"
# Spelling of two properties when they were discardable attributes, which would be ignored now.
OLD_MARKS = ("spyre.host", "spyre.wide")


@irdl_attr_definition
class NoneAttr(ParametrizedAttribute):
    """An argument that is None: an absent tensor, or a hole in a list."""

    name = "aten.none"


@irdl_attr_definition
class OperandsAttr(ParametrizedAttribute):
    """The number of operands of an argument."""

    name = "aten.operands"

    count: IntAttr = param_def(IntAttr.constr(), converter=IntAttr.get)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Reads ``<n>``."""
        with parser.in_angle_brackets():
            return (IntAttr(parser.parse_integer(allow_boolean=False, allow_negative=False)),)

    def print_parameters(self, printer: Printer) -> None:
        """Writes ``<n>``."""
        with printer.in_angle_brackets():
            printer.print_int(self.count.data)


def to_attribute(value: object) -> Attribute:
    """Return the attribute for a Python argument other than an `SSAValue`.

    Raises:
        TypeError: a value of a kind no argument has.
    """
    match value:
        case None:
            return NoneAttr()
        case Attribute():
            return value
        case bool():
            return IntegerAttr(int(value), i1)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case list() | tuple():
            items = cast(Sequence[object], value)
            if all(isinstance(i, int) and not isinstance(i, bool) for i in items):
                return DenseArrayBase.from_list(i64, cast(Sequence[int], items))
            return ArrayAttr([to_attribute(i) for i in items])
        case _:
            raise TypeError(f"no attribute spells {value!r} of type {type(value).__name__}")


def to_value(attribute: Attribute) -> object:
    """Return the Python argument for an attribute; types become their MLIR text."""
    match attribute:
        case NoneAttr():
            return None
        case IntegerAttr():
            is_bool = isinstance(attribute.type, IntegerType) and attribute.type.width.data == 1
            return bool(attribute.value.data) if is_bool else attribute.value.data
        case FloatAttr():
            return attribute.value.data
        case StringAttr():
            return attribute.data
        case DenseArrayBase():
            return tuple(cast(DenseArrayBase[IntegerType], attribute).iter_values())
        case ArrayAttr():
            return tuple(to_value(a) for a in attribute)
        case TypeAttribute():
            return str(attribute)
        case _:
            return attribute


def said_arguments(given: DictionaryAttr | None) -> Mapping[str, Attribute]:
    """Return the arguments in the property of an op, in the order given."""
    return {} if given is None else given.data


def as_arguments(attributes: Mapping[str, Attribute]) -> DictionaryAttr | None:
    """Return arguments as the property of an op, which is absent if there are none."""
    return DictionaryAttr(attributes) if attributes else None


def verify_marks(op: Operation) -> None:
    """Check that the marks of an op are properties.

    Raises:
        VerifyException: one is a discardable attribute, as in an older spelling.
    """
    if old := [name for name in OLD_MARKS if name in op.attributes]:
        raise VerifyException(
            f"'{old[0]}' of {op.name} is a discardable attribute, expected the property "
            f"'{old[0].removeprefix('spyre.')}'; try tools/respell.py"
        )


def verify_arguments(op: Operation, given: Mapping[str, Attribute]) -> None:
    """Check that arguments are among the properties of an op, and nothing else is among its arguments.

    Raises:
        VerifyException: an argument is a discardable attribute, which passes may drop, or has no name of an argument.
    """
    verify_marks(op)
    if lost := [name for name in op.attributes if "." not in name]:
        raise VerifyException(
            f"'{lost[0]}' of {op.name} is a discardable attribute, expected an argument; "
            f"try <{{arguments = {{{lost[0]} = …}}}}> in the generic form"
        )
    if strange := [name for name in given if "." in name]:
        raise VerifyException(
            f"'{strange[0]}' is no argument of {op.name}; try {strange[0].rpartition('.')[2]} behind the arguments"
        )


def bound_arguments(attributes: Mapping[str, Attribute], operands: Sequence[OperandT]) -> dict[str, object]:
    """Return arguments by name; attributes in schema order assign the operands.

    Args:
        attributes: as `aten.call` spells them.
        operands: what the arguments take; lists of them where an argument is a list.
    """
    queue = list(operands)

    def take(attribute: Attribute) -> object:
        if isinstance(attribute, OperandsAttr):
            taken, queue[:] = queue[: attribute.count.data], queue[attribute.count.data :]
            return taken[0] if attribute.count.data == 1 else taken
        if isinstance(attribute, ArrayAttr):
            return [take(a) for a in cast("ArrayAttr[Attribute]", attribute)]
        return to_value(attribute)

    return {name: take(attribute) for name, attribute in attributes.items()}


def spell_arguments(
    arguments: Mapping[str, object], operand: type[OperandT]
) -> tuple[list[OperandT], dict[str, Attribute]]:
    """Return operands and attributes in the form of `aten.call`: the reverse of `bound_arguments`.

    Args:
        arguments: values by name; those that are None are left out.
        operand: the class of what stands for a tensor.
    """
    operands: list[OperandT] = []

    def take(value: object) -> Attribute:
        if isinstance(value, operand):
            operands.append(value)
            return OperandsAttr(1)
        if isinstance(value, list):
            items = cast("list[object]", value)
            if len(items) != 1 and all(isinstance(i, operand) for i in items):
                operands.extend(cast("list[OperandT]", items))
                return OperandsAttr(len(items))
            return ArrayAttr([take(i) for i in items])
        return to_attribute(value)

    return operands, {name: take(value) for name, value in arguments.items() if value is not None}
