"""Pass `decompose-aten`: rewrites composite aten ops until each has a lowering of its own.

```mlir
%1 = aten.softmax.int(%0) {dim = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
```
becomes amax, sub, exp, sum and div. The rewrites are the `decompose` functions of the op table. What they made for a
result that nobody uses, as the positions of `sort` where only the values are read, is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.aten import AtenOp, make_op
from spyre_mlir.dialects.aten_build import AtenBuild, spelled
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.transforms.rebuild import Emitter, functions, rebuild


@dataclass
class _Builder(AtenBuild):
    """Writes ops; every op a decomposition makes is decomposed in turn."""

    emitter: Emitter
    made: list[Operation] = field(default_factory=list[Operation])

    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> SSAValue:
        """Adds one op."""
        operands, attributes = spelled(entry, bound)
        op = make_op(overload, operands, attributes, [result])
        self.emitter.add(op)
        self.made.append(op)
        return op.results[0]

    def drop_unused(self) -> None:
        """Erases the ops that were made and whose results nobody uses; those they alone used go with them."""
        for op in reversed(self.made):
            if not any(result.uses for result in op.results):
                op.detach()
                op.erase()


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
            builder.drop_unused()


def _convert(op: Operation, builder: _Builder, value: dict[SSAValue, SSAValue]) -> list[SSAValue]:
    if isinstance(op, AtenOp) and op.entry is not None and op.entry.decompose is not None:
        bound = {name: _mapped(argument, value) for name, argument in op.arguments().items()}
        replacement = builder.rewrite(op.entry, bound)
        if replacement is not None:
            made = list(cast("tuple[SSAValue, ...]", replacement)) if isinstance(replacement, tuple) else [replacement]
            value.update(zip(op.results, made, strict=True))
            return made
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
