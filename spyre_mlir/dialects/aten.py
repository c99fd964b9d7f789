"""The aten level: one op per ATen overload, its class made from the op table.

``aten.add.Tensor(%a, %b) {alpha = 2} : (tensor<…>, tensor<…>) -> tensor<…>``. Tensor arguments take the
operands in the order of the schema; every other argument is an attribute under its schema name.
A number in a tensor's place is an attribute under that tensor's name; `#aten.none` stands for an
absent tensor that has others behind it; `#aten.operands<n>` says how many operands a list takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import ClassVar, Self, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    StringAttr,
    TensorType,
    f32,
    i1,
)
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    attr_def,
    irdl_op_definition,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten_arguments import (
    HOST,
    UNROUNDED,
    NoneAttr,
    OperandsAttr,
    bound_arguments,
    is_argument,
    to_value,
)
from spyre_mlir.dialects.directives import Quoted
from spyre_mlir.dialects.tensors import ELEMENTS, TypedValue, as_tensor_type, element_of, shape_of
from spyre_mlir.errors import RegistrationError, SpyreError, UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.index_views import IndexView, NotAView
from spyre_mlir.ops.table import Family, Kind, OpEntry, Param

Value = object  # a Python value of an argument: number, bool, string, tuple, type, None, SSAValue or list of them


_FORMAT = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)"


class AtenOp(IRDLOperation):
    """Base of every aten op: syntax, argument binding, verification."""

    inputs = var_operand_def()
    outputs = var_result_def()

    traits = traits_def(Pure())

    ENTRY: ClassVar[OpEntry | None] = None

    def __init__(
        self, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute], results: Sequence[Attribute]
    ) -> None:
        """Makes the op from its tensor operands, its other arguments and its result types."""
        super().__init__(operands=[list(operands)], attributes=dict(attributes), result_types=[list(results)])

    @property
    def overload(self) -> str:
        """The ATen overload, ``.default`` dropped."""
        return self.name.removeprefix("aten.")

    @property
    def entry(self) -> OpEntry | None:
        """What the op table says of the op; None if it says nothing."""
        return self.ENTRY

    @property
    def on_host(self) -> bool:
        """Whether the host runs the op."""
        return HOST in self.attributes

    @property
    def is_wide(self) -> bool:
        """Whether a float32 result keeps more digits than float32 has."""
        return UNROUNDED in self.attributes

    def arguments(self) -> dict[str, Value]:
        """Every argument of the schema by name: SSA values, lists of them, or Python values.

        Raises:
            VerifyException: operands and attributes do not fit the schema.
        """
        if self.entry is None:
            return bound_arguments(self.attributes, list(self.operands))
        queue, bound = list(self.operands), dict[str, Value]()
        for param in self.entry.params:
            bound[param.name] = self._argument(param, queue)
        if queue:
            raise VerifyException(f"{len(queue)} operands more than the schema of {self.name} takes")
        for name in self.attributes:
            if self.entry.param(name) is None and is_argument(name):
                known = ", ".join(p.name for p in self.entry.params)
                raise VerifyException(f"{self.name} has no argument '{name}'; its arguments are {known}")
        return bound

    def _argument(self, param: Param, queue: list[SSAValue]) -> Value:
        attribute = self.attributes.get(param.name)
        if param.kind is Kind.TENSORS and isinstance(attribute, ArrayAttr):
            holes = [isinstance(item, NoneAttr) for item in cast(ArrayAttr[Attribute], attribute)]
            return [None if hole else queue.pop(0) for hole in holes]
        if attribute is not None and not isinstance(attribute, OperandsAttr):
            return self._checked(param, to_value(attribute))
        if param.kind is Kind.TENSORS:
            count = attribute.count.data if isinstance(attribute, OperandsAttr) else len(queue)
            taken, queue[:] = queue[:count], queue[count:]
            return taken
        if param.kind is Kind.TENSOR and queue:
            return queue.pop(0)
        if param.required:
            raise VerifyException(f"{self.name} needs the argument '{param.name}'")
        return param.default

    def _checked(self, param: Param, value: Value) -> Value:
        allowed: dict[Kind, tuple[type, ...]] = {
            Kind.INT: (int,),
            Kind.FLOAT: (float, int),
            Kind.NUMBER: (float, int),
            Kind.BOOL: (bool,),
            Kind.INTS: (tuple, int),
            Kind.STRING: (str,),
            Kind.DTYPE: (str,),
            Kind.TENSOR: (float, int),
            Kind.TENSORS: (),
            Kind.FLOATS: (tuple,),
            Kind.BOOLS: (tuple,),
        }
        if value is None and (not param.required or param.kind is Kind.TENSOR):
            return None
        if not isinstance(value, allowed[param.kind]):
            raise VerifyException(f"argument '{param.name}' of {self.name} is {value!r}, expected {param.kind.value}")
        return (value,) if param.kind is Kind.INTS and isinstance(value, int) else value

    def verify_(self) -> None:
        """Checks arguments against the schema, and the result shape against the declaration."""
        bound = self.arguments()
        if self.entry is None:
            return
        try:
            shapes = result_shapes(self.entry, bound)
        except RegistrationError:
            raise  # the plugin that is to blame is named
        except UnsupportedError:
            return  # no other ops say what this one means; whether that is an error is not for its types to decide
        except (SpyreError, IndexError, ValueError) as error:
            raise VerifyException(f"{self.name}: {getattr(error, 'message', error)}") from error
        if len(self.outputs) != len(shapes):
            wanted = "one result" if len(shapes) == 1 else f"{len(shapes)} results"
            raise VerifyException(f"{self.name} has {wanted}, got {len(self.outputs)}")
        for shape, output in zip(shapes, self.outputs, strict=True):
            result = as_tensor_type(output.type)
            if result is None:
                raise VerifyException(f"{self.name} gives a tensor, got {output.type}")
            if shape != result.get_shape():
                raise VerifyException(f"{self.name} gives shape {shape}, but its result is {result}")


def result_shapes(entry: OpEntry, bound: Mapping[str, Value]) -> list[tuple[int, ...]]:
    """Shapes of an entry's results for bound arguments; see `result_shape`."""
    if not entry.composed:
        return [result_shape(entry, bound)]
    from spyre_mlir.dialects.aten_build import result_types

    return [t.get_shape() for t in result_types(entry, bound)]


def result_shape(entry: OpEntry, bound: Mapping[str, Value]) -> tuple[int, ...]:
    """Shape of an entry's result for bound arguments.

    Raises:
        ConstraintError, IndexError, ValueError: the arguments do not go together.
    """
    tensors = {p.name: _shapes(bound[p.name]) for p in entry.params if p.is_tensor}
    rest = {p.name: bound[p.name] for p in entry.params if not p.is_tensor}
    if entry.shape is not None:
        return tuple(entry.shape(**{k: v for k, v in tensors.items() if v is not None}, **rest))
    if entry.family is Family.VIEW:
        (shape,) = tensors.values()
        return view_of(entry, IndexView.identity(cast(tuple[int, ...], shape)), rest).shape
    return broadcast_shapes([cast(tuple[int, ...], s) for s in tensors.values() if s is not None])


def view_of(entry: OpEntry, base: IndexView, attributes: Mapping[str, Value]) -> IndexView:
    """Applies a view entry to `base`; a view that is no affine reading starts from a fresh copy.

    A reshape that cuts across the dimensions even of a fresh copy starts from one dimension of all elements.
    """
    fresh = IndexView.identity(base.shape)
    for start in (base, fresh):
        try:
            return cast(IndexView, entry.meaning(start, **attributes))
        except NotAView:
            continue
    return cast(IndexView, entry.meaning(IndexView.identity((prod(base.shape),)), **attributes))


def broadcast_shapes(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape of broadcast operands.

    Raises:
        ValueError: two extents differ and neither is 1.
    """
    rank = max((len(s) for s in shapes), default=0)
    out = [1] * rank
    for shape in shapes:
        for at, extent in enumerate(shape, start=rank - len(shape)):
            if extent != 1 and out[at] not in (1, extent):
                raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
            out[at] = out[at] if extent == 1 else extent
    return tuple(out)


def _shapes(value: Value) -> object:
    match value:
        case None:
            return None
        case SSAValue() | TypedValue():
            return shape_of(value)
        case list():
            return [_shapes(v) for v in cast(list[Value], value)]
        case _:
            return ()


@irdl_op_definition
class CallOp(AtenOp):
    """Any overload that has no class: ``aten.call "aten.topk"(%x) {self = #aten.operands<1>, k = 2} : …``."""

    name = "aten.call"

    callee = attr_def(StringAttr)

    custom_directives = (Quoted,)
    assembly_format = f"custom<Quoted>($callee) {_FORMAT}"

    @property
    def overload(self) -> str:
        """The overload called, with its namespace unless that is aten."""
        return self.callee.data.removeprefix("aten.")

    @property
    def entry(self) -> OpEntry | None:
        """What the op table says of a callee that has no class: of another namespace, or of a plugin."""
        return None if self.overload in OP_CLASSES else ATEN.find(self.overload)


class _TableOp(AtenOp):
    """Base of the ops with a class: hundreds, which share one program of their format; imports must be fast."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Reads ``(%a, …) {…} : (types) -> types``."""
        return _program().parse(parser, cls)

    def print(self, printer: Printer) -> None:
        """Writes ``(%a, …) {…} : (types) -> types``."""
        _program().print(printer, self)


@cache
def _program() -> FormatProgram:
    return FormatProgram.from_str(_FORMAT, next(iter(OP_CLASSES.values())).get_irdl_definition())


def _class_for(entry: OpEntry, overload: str) -> type[AtenOp]:
    camel = "".join(part[:1].upper() + part[1:] for part in overload.replace(".", "_").split("_"))
    body = {
        "name": f"aten.{overload}",
        "ENTRY": entry,
        "__doc__": entry.doc,
        "__module__": __name__,
        "__annotations__": {"ENTRY": ClassVar[OpEntry]},
    }
    return irdl_op_definition(type(f"{camel}Op", (_TableOp,), body))


OP_CLASSES: dict[str, type[AtenOp]] = {o: _class_for(e, o) for e in ATEN for o in e.overloads if "::" not in o}

Aten = Dialect("aten", [*OP_CLASSES.values(), CallOp], [NoneAttr, OperandsAttr])


def make_op(
    overload: str, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute], results: Sequence[Attribute]
) -> AtenOp:
    """The op of an overload: its class if the table has one, else `aten.call`."""
    cls = OP_CLASSES.get(overload)
    if cls is not None:
        return cls(operands, attributes, results)
    callee = overload if "::" in overload else f"aten.{overload}"
    return CallOp(operands, {"callee": StringAttr(callee), **attributes}, results)


def is_bool(value: SSAValue) -> bool:
    """Whether a tensor holds truth values."""
    found = as_tensor_type(value.type)
    return found is not None and found.get_element_type() == i1


def result_type(entry: OpEntry, bound: Mapping[str, Value]) -> TensorType:
    """Type of an entry's result: its shape, and the element type of its tensor operands.

    Booleans meet numbers as numbers; an op without tensor operands gives f32 unless it says what.
    """
    said = bound.get("dtype") if entry.family in (Family.CREATION, Family.MOVEMENT) else None
    if entry.boolean:
        element: Attribute = i1
    elif isinstance(said, str):
        element = ELEMENTS[said]
    else:
        elements = elements_of(entry, bound)
        # A number in a tensor's place says a float only where no tensor of numbers says which.
        numbers = any(isinstance(bound[p.name], float) for p in entry.params if p.is_tensor)
        element = next((t for t in elements if t != i1), f32 if numbers or not elements else i1)
    return TensorType(element, result_shape(entry, bound))


def elements_of(entry: OpEntry, bound: Mapping[str, Value]) -> list[Attribute]:
    """Element types of the tensors that a result takes its own from: all but positions, which only say where."""
    holders = [p for p in entry.params if p.is_tensor and p.name not in ("index", "indices")]
    return [t for p in holders for t in _elements(bound[p.name])]


def _elements(value: Value) -> list[Attribute]:
    match value:
        case SSAValue() | TypedValue():
            return [element_of(value)]
        case list():
            return [t for v in cast(list[Value], value) for t in _elements(v)]
        case _:
            return []
