"""Pass `part-columns`: gives each reader of every other column of a product a product of its own.

```mlir
%y = aten.linear(%x, %w) : (tensor<512x2048xf16>, tensor<6144x2048xf16>) -> tensor<512x6144xf16>
%heads = aten.view(%y) {size = array<i64: 512, 32, 3, 64>} : (tensor<512x6144xf16>) -> tensor<512x32x3x64xf16>
%q = aten.select.int(%heads) {dim = 2, index = 0} : (tensor<512x32x3x64xf16>) -> tensor<512x32x64xf16>
```
becomes a product with a third of the weight, whose rows the host gathers at load:
```mlir
%parted = aten.view(%w) {size = array<i64: 32, 3, 64, 2048>} : (tensor<6144x2048xf16>) -> tensor<32x3x64x2048xf16>
%part = aten.slice.Tensor(%parted) {dim = 1, start = 0, end = 1} : (...) -> tensor<32x1x64x2048xf16>
%own = aten.view(%part) {size = array<i64: 2048, 2048>} : (tensor<32x1x64x2048xf16>) -> tensor<2048x2048xf16>
%y = aten.linear(%x, %own) : (tensor<512x2048xf16>, tensor<2048x2048xf16>) -> tensor<512x2048xf16>
```
Models interleave queries, keys and values by head, or a gate with its operand column by column. The device takes such
columns apart by laying the result out again. Results of few rows stay whole, as reading the weight takes most of the
time there.

Decision: docs/decisions/0137-columns-read-apart.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.aten_forms.recognition.taken_columns import (
    ADD,
    COLUMNS,
    LINEAR,
    SELECT,
    Taken,
    taken_columns,
)
from spyre_mlir.transforms.cut_nests.split_products import LEAST_ROWS
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread
from spyre_mlir.transforms.utils.function_pass import FunctionPass


@dataclass(frozen=True)
class PartColumnsPass(FunctionPass):
    """Takes the weights of products apart where readers take columns apart that lie between others."""

    name = "part-columns"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every product of enough rows."""
        for product in list(function.body.block.ops):
            if isinstance(product, AtenOp) and prod(shape_of(product.results[0])[:-1]) >= LEAST_ROWS:
                for taken in taken_columns(function, product):
                    _rewrite(product, taken)


def _rewrite(product: AtenOp, taken: Taken) -> None:
    """Replace a reader by the same steps on a product of its own columns."""
    writer, args = AtenWriter(taken.reader), arguments_of(product)
    args["weight"] = _columns(writer, args["weight"], COLUMNS[product.overload], taken)
    if product.overload == LINEAR and args["bias"] is not None:
        args["bias"] = _columns(writer, args["bias"], 0, taken)
    before, value = product.results[0], writer.call(product.overload, product, **args)
    for step in taken.steps:
        value, before = _step(writer, step, {before: value}, taken), step.results[0]
    if taken.reader.overload == SELECT:
        value = writer.call(SELECT, **{**arguments_of(taken.reader), "self": value, "index": 0})
    taken.reader.results[0].replace_all_uses_with(value)
    erase_unread(taken.reader)


def _step(writer: AtenWriter, step: AtenOp, made: dict[SSAValue, SSAValue], taken: Taken) -> SSAValue:
    """A step between the product and its reader, on the columns of this reader."""
    args = arguments_of(step)
    if step.overload == ADD:
        gather = next(v.owner for v in step.operands if v not in made)
        assert isinstance(gather, AtenOp)
        table = _columns(writer, gather.operands[0], 1, taken)
        made[gather.results[0]] = writer.call(gather.overload, gather, **{**arguments_of(gather), "self": table})
    for name, value in args.items():
        if isinstance(value, SSAValue):
            args[name] = made[value]
    if step.overload == "view":
        rows = shape_of(step.results[0])[: -len(taken.parts)]
        args["size"] = (*rows, *_of_part(taken))
    return writer.call(step.overload, step, **args)


def _of_part(taken: Taken) -> tuple[int, ...]:
    """The extents into which the columns taken are split."""
    return tuple(taken.count if n == taken.axis else extent for n, extent in enumerate(taken.parts))


def _columns(writer: AtenWriter, weight: SSAValue, dim: int, taken: Taken) -> SSAValue:
    """A weight of the columns taken, which it has along a dimension; the host makes it."""
    shape = shape_of(weight)
    before, behind = shape[:dim], shape[dim + 1 :]
    where: dict[str, Any] = {"start": taken.start, "end": taken.end, "step": taken.step}
    if len(taken.parts) == 1:
        return writer.moved("slice.Tensor", weight, dim=dim, **where)
    parted = writer.moved("view", weight, size=(*before, *taken.parts, *behind))
    part = writer.moved("slice.Tensor", parted, dim=dim + taken.axis, **where)
    return writer.moved("view", part, size=(*before, prod(_of_part(taken)), *behind))


__all__ = ["PartColumnsPass"]
