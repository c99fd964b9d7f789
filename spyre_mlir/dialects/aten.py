"""The aten level: one op per ATen overload, its class made from the op table.

``aten.add.Tensor(%a, %b) {alpha = 2} : (tensor<…>, tensor<…>) -> tensor<…>``. Tensor arguments take the
operands in the order of the schema; every other argument is in the property `arguments` under its schema name.
A number in a tensor's place is there under that tensor's name; `#aten.none` stands for an
absent tensor that has others behind it; `#aten.operands<n>` says how many operands a list takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    OpDef,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten_arguments import (
    NoneAttr,
    OperandsAttr,
    as_arguments,
    bound_arguments,
    said_arguments,
    to_value,
    verify_arguments,
)
from spyre_mlir.dialects.aten_build import result_shapes
from spyre_mlir.dialects.aten_sizes import ExtentsAttr, GuardOp, SizeAttr, has_symbols, is_symbolic, symbolic_extents
from spyre_mlir.dialects.aten_types import Value
from spyre_mlir.dialects.directives import Arguments, Quoted
from spyre_mlir.dialects.ir.call_effects import CallEffects
from spyre_mlir.dialects.ir.canonicalization import CanonicalPatterns
from spyre_mlir.dialects.tensors import as_tensor_type
from spyre_mlir.errors import RegistrationError, SpyreError, UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.parameters import ArgKind, Param
from spyre_mlir.ops.table import OpEntry

_FORMAT = (
    "`(` $inputs `)` custom<Arguments>($arguments) (`wide` $wide^)? (`host` $host^)? "
    "(`because` custom<Quoted>($reason)^)? attr-dict-with-keyword `:` functional-type($inputs, $outputs)"
)
# Python types that arguments of a kind may have.
_ALLOWED: dict[ArgKind, tuple[type, ...]] = {
    ArgKind.INT: (int,),
    ArgKind.FLOAT: (float, int),
    ArgKind.NUMBER: (float, int),
    ArgKind.BOOL: (bool,),
    ArgKind.INTS: (tuple, int),
    ArgKind.STRING: (str,),
    ArgKind.DTYPE: (str,),
    ArgKind.TENSOR: (float, int),
    ArgKind.TENSORS: (),
    ArgKind.FLOATS: (tuple,),
    ArgKind.BOOLS: (tuple,),
}


class AtenOp(IRDLOperation):
    """Base of every aten op: syntax, argument binding, verification.

    Attributes:
        given: the arguments that are no operands.
        wide: the float32 result is not rounded: the inside of a composition, or a program that has half precision.
        host: the host runs the op.
        reason: why the host runs it; none if it only follows other host steps.
    """

    given = opt_prop_def(DictionaryAttr, prop_name="arguments")
    wide = opt_prop_def(UnitAttr)
    host = opt_prop_def(UnitAttr)
    reason = opt_prop_def(StringAttr)
    inputs = var_operand_def()
    outputs = var_result_def()

    traits = traits_def(CallEffects(), CanonicalPatterns("spyre_mlir.dialects.aten_canonicalize"))
    custom_directives = (Arguments, Quoted)

    ENTRY: ClassVar[OpEntry | None] = None

    def __init__(
        self, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute], results: Sequence[Attribute]
    ) -> None:
        """Makes the op from its tensor operands, its other arguments and its result types."""
        super().__init__(
            operands=[list(operands)], properties={"arguments": as_arguments(attributes)}, result_types=[list(results)]
        )

    @property
    def overload(self) -> str:
        """The ATen overload, ``.default`` dropped."""
        return self.name.removeprefix("aten.")

    @property
    def operation(self) -> str:
        """The operation with its namespace: ``aten.relu``, ``acme::blend``, or a word of a plugin's own."""
        return self.name

    @property
    def entry(self) -> OpEntry | None:
        """The op-table entry of the op; None if there is none."""
        return self.ENTRY

    @property
    def on_host(self) -> bool:
        """Return whether the host runs the op."""
        return self.host is not None

    @property
    def is_wide(self) -> bool:
        """Return whether a float32 result keeps more digits than float32 has."""
        return self.wide is not None

    def arguments(self) -> dict[str, Value]:
        """Every argument of the schema by name: SSA values, lists of them, or Python values.

        Raises:
            VerifyException: operands and attributes do not fit the schema.
        """
        if self.entry is None:
            return bound_arguments(said_arguments(self.given), list(self.operands))
        queue, bound = list(self.operands), dict[str, Value]()
        for param in self.entry.params:
            bound[param.name] = self._argument(param, queue)
        if queue:
            raise VerifyException(f"{len(queue)} operands more than the schema of {self.name} takes")
        for name in said_arguments(self.given):
            if self.entry.param(name) is None:
                known = ", ".join(p.name for p in self.entry.params)
                raise VerifyException(f"{self.name} has no argument '{name}'; its arguments are {known}")
        return bound

    def _argument(self, param: Param, queue: list[SSAValue]) -> Value:
        attribute = said_arguments(self.given).get(param.name)
        if param.kind is ArgKind.TENSORS and isinstance(attribute, ArrayAttr):
            holes = [isinstance(item, NoneAttr) for item in cast(ArrayAttr[Attribute], attribute)]
            return [None if hole else queue.pop(0) for hole in holes]
        if attribute is not None and not isinstance(attribute, OperandsAttr):
            return self._checked(param, to_value(attribute))
        if param.kind is ArgKind.TENSORS:
            count = attribute.count.data if isinstance(attribute, OperandsAttr) else len(queue)
            taken, queue[:] = queue[:count], queue[count:]
            return taken
        if param.kind is ArgKind.TENSOR and queue:
            return queue.pop(0)
        if param.required:
            raise VerifyException(f"{self.name} needs the argument '{param.name}'")
        return param.default

    def _checked(self, param: Param, value: Value) -> Value:
        if (value is None and (not param.required or param.kind is ArgKind.TENSOR)) or isinstance(value, SizeAttr):
            return value
        if not isinstance(value, _ALLOWED[param.kind]):
            raise VerifyException(f"argument '{param.name}' of {self.name} is {value!r}, expected {param.kind.value}")
        return (value,) if param.kind is ArgKind.INTS and isinstance(value, int) else value

    def verify_(self) -> None:
        """Checks arguments against the schema, and the result shape against the declaration."""
        verify_arguments(self, said_arguments(self.given))
        if self.reason is not None and self.host is None:
            raise VerifyException(f"{self.name} has a reason for the host and is not on the host; try host because …")
        bound = self.arguments()
        if self._is_open() or self.entry is None:
            return
        try:
            shapes = result_shapes(self.entry, bound)
        except RegistrationError:
            raise  # the plugin that is to blame is named
        except UnsupportedError:
            return  # no other ops say what this one means; whether that is an error is not for its types to decide
        except (SpyreError, IndexError, ValueError) as error:
            raise VerifyException(f"{self.name}: {getattr(error, 'message', error)}") from error
        self._check_shapes(shapes)

    def _is_open(self) -> bool:
        """Return whether sizes are symbolic: shapes are checked once the symbols have values."""
        open_types = [v.type for v in (*self.operands, *self.results) if is_symbolic(v.type)]
        for type_ in open_types:
            symbolic_extents(cast("TensorType[Attribute]", type_))
        return bool(open_types) or (self.given is not None and has_symbols(self.given))

    def _check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        if len(self.outputs) != len(shapes):
            wanted = "one result" if len(shapes) == 1 else f"{len(shapes)} results"
            raise VerifyException(f"{self.name} has {wanted}, got {len(self.outputs)}")
        for shape, output in zip(shapes, self.outputs, strict=True):
            result = as_tensor_type(output.type)
            if result is None:
                raise VerifyException(f"{self.name} gives a tensor, got {output.type}")
            if shape != result.get_shape():
                raise VerifyException(f"{self.name} gives shape {shape}, but its result is {result}")


@irdl_op_definition
class CallOp(AtenOp):
    """Any overload that has no class: ``aten.call "aten.topk"(%x) {self = #aten.operands<1>, k = 2} : …``."""

    name = "aten.call"

    callee = prop_def(StringAttr)

    assembly_format = f"custom<Quoted>($callee) {_FORMAT}"

    def __init__(
        self,
        callee: str,
        operands: Sequence[SSAValue],
        attributes: Mapping[str, Attribute],
        results: Sequence[Attribute],
    ) -> None:
        """Makes the call of an operator, named with its namespace."""
        super().__init__(operands, attributes, results)
        self.callee = StringAttr(callee)

    @property
    def overload(self) -> str:
        """The overload called, with its namespace unless that is aten."""
        return self.callee.data.removeprefix("aten.")

    @property
    def operation(self) -> str:
        """The operation called, with its namespace."""
        return self.callee.data

    @property
    def entry(self) -> OpEntry | None:
        """The op-table entry of a callee that has no class: of another namespace, or of a plugin."""
        return None if self.overload in OP_CLASSES else ATEN.find(self.overload)


@irdl_op_definition
class _TableOp(AtenOp):
    """Base of the ops with a class, which differ in name and entry alone: one definition and one format serve all."""

    name = "aten.of-the-table"

    assembly_format = _FORMAT


def _class_for(entry: OpEntry, overload: str) -> type[AtenOp]:
    camel = "".join(part[:1].upper() + part[1:] for part in overload.replace(".", "_").split("_"))
    name = f"aten.{overload}"
    definition = replace(_TableOp.get_irdl_definition(), name=name)

    def get_irdl_definition(_class: type[AtenOp]) -> OpDef:
        return definition

    body: dict[str, object] = {
        "name": name,
        "ENTRY": entry,
        "__doc__": entry.doc,
        "__module__": __name__,
        "get_irdl_definition": classmethod(get_irdl_definition),
    }
    return type(f"{camel}Op", (_TableOp,), body)


OP_CLASSES: dict[str, type[AtenOp]] = {o: _class_for(e, o) for e in ATEN for o in e.overloads if "::" not in o}

Aten = Dialect("aten", [*OP_CLASSES.values(), CallOp, GuardOp], [NoneAttr, OperandsAttr, SizeAttr, ExtentsAttr])


def make_op(
    overload: str, operands: Sequence[SSAValue], attributes: Mapping[str, Attribute], results: Sequence[Attribute]
) -> AtenOp:
    """Return the op of an overload: its class if the table has one, else `aten.call`."""
    cls = OP_CLASSES.get(overload)
    if cls is not None:
        return cls(operands, attributes, results)
    return CallOp(callee_of(overload), operands, attributes, results)


def callee_of(overload: str) -> str:
    """Return the text of a callee: an overload with its namespace."""
    return overload if "::" in overload else f"aten.{overload}"
