"""Pass `decompose-aten`: rewrites composite aten ops until each has a lowering of its own.

```mlir
%1 = aten.softmax.int(%0) {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
```
becomes amax, sub, exp, sum and div. The rewrites are the `decompose` functions of the op table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType, bf16, f16, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.aten import AtenOp, is_bool, make_op, result_type
from spyre_mlir.dialects.aten_arguments import NoneAttr, OperandsAttr, to_attribute
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Kind
from spyre_mlir.transforms.rebuild import Emitter, functions, rebuild

_FLOATS: dict[str, Attribute] = {"f16": f16, "bf16": bf16, "f32": f32}


@dataclass
class _Builder:
    """What decompositions call: every op they make is decomposed in turn."""

    emitter: Emitter

    def call(self, overload: str, *tensors: Any, **attributes: Any) -> Any:
        """Adds an op of the table, or what it decomposes into; see `ops.composite.Build`."""
        entry = ATEN.find(overload)
        if entry is None:
            raise UnsupportedError(f"a decomposition uses aten.{overload}, which the op table lacks")
        names = [p.name for p in entry.params if p.is_tensor]
        bound: dict[str, Any] = {p.name: p.default for p in entry.params}
        bound |= dict(zip(names, tensors, strict=False)) | attributes
        rewritten = self.rewrite(overload, bound)
        if rewritten is not None:
            return rewritten
        operands, spelled = _spell(overload, bound)
        op = make_op(overload, operands, spelled, [result_type(entry, bound)])
        self.emitter.add(op)
        return op.results[0]

    def rewrite(self, overload: str, bound: dict[str, Any]) -> Any:
        """The value that replaces an op, or None if the op stays."""
        entry = ATEN.find(overload)
        if entry is None or entry.decompose is None:
            return None
        return entry.decompose(self, **bound)

    def shape(self, value: Any) -> tuple[int, ...]:
        """Shape of a value; numbers have none."""
        return shape_of(cast("SSAValue[Attribute]", value)) if isinstance(value, SSAValue) else ()

    def is_bool(self, value: Any) -> bool:
        """Whether a value holds truth values."""
        return isinstance(value, bool) or (isinstance(value, SSAValue) and is_bool(cast("SSAValue[Attribute]", value)))

    def cast(self, value: SSAValue, element: str = "", *, like: SSAValue | None = None) -> SSAValue:
        """A value in another element type; see `ops.composite.Build`."""
        wanted = _FLOATS[element] if like is None else element_of(like)
        if element_of(value) == wanted:
            return value
        shape = TensorType(wanted, self.shape(value))
        return self.emitter.add(make_op("_to_copy", [value], {"dtype": wanted}, [shape])).results[0]


def _spell(overload: str, bound: dict[str, Any]) -> tuple[list[SSAValue], dict[str, Attribute]]:
    """Operands and attributes that say what `bound` says."""
    entry = ATEN.find(overload)
    operands: list[SSAValue] = []
    attributes: dict[str, Attribute] = {}
    for param in entry.params if entry is not None else ():
        value = bound[param.name]
        if isinstance(value, SSAValue):
            operands.append(cast("SSAValue[Attribute]", value))
        elif param.kind is Kind.TENSORS:
            operands += value
            attributes[param.name] = OperandsAttr(len(value))
        elif param.is_tensor and value is None:
            attributes[param.name] = NoneAttr()
        elif param.is_tensor or param.required or value != param.default:
            attributes[param.name] = to_attribute(value)
    while attributes and isinstance(attributes[last := next(reversed(attributes))], NoneAttr):
        del attributes[last]
    return operands, attributes


@dataclass(frozen=True)
class DecomposeAtenPass(ModulePass):
    """Rewrites composite aten ops into ops that have a lowering."""

    name = "decompose-aten"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Decomposes every function of the module."""
        for function in functions(op):
            emitter = Emitter()
            builder = _Builder(emitter)
            value: dict[SSAValue, SSAValue] = {a: a for a in function.body.block.args}
            rebuild(function, lambda o, b=builder, v=value: _convert(o, b, v), emitter)


def _convert(op: Operation, builder: _Builder, value: dict[SSAValue, SSAValue]) -> list[SSAValue]:
    if isinstance(op, AtenOp) and op.ENTRY is not None and op.ENTRY.decompose is not None:
        bound = {name: _mapped(argument, value) for name, argument in op.arguments().items()}
        replacement = builder.rewrite(op.overload, bound)
        if replacement is not None:
            value[op.results[0]] = replacement
            return [replacement]
    new = op.clone(value_mapper=value)
    builder.emitter.add(new)
    value.update(zip(op.results, new.results, strict=True))
    return list(new.results)


def _mapped(argument: object, value: dict[SSAValue, SSAValue]) -> object:
    if isinstance(argument, SSAValue):
        return value[argument]
    if isinstance(argument, list):
        return [_mapped(a, value) for a in cast(list[object], argument)]
    return argument
