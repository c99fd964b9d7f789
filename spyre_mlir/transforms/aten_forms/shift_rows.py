"""Pass `shift-rows`: moves each row of relative scores by its own number of places, by a product.

```mlir
%s = aten.matmul(%q, %p) : (tensor<4x200x64xf16>, tensor<4x64x399xf16>) -> tensor<4x200x399xf16>
%c = aten.cat(%zeros, %s) {dim = -1} : (tensor<4x200x1xf16>, tensor<4x200x399xf16>) -> tensor<4x200x400xf16>
%v = aten.view(%c) {size = array<i64: 4, 400, 200>} : (tensor<4x200x400xf16>) -> tensor<4x400x200xf16>
%r = aten.slice.Tensor(%v) {dim = 1, start = 1} : (tensor<4x400x200xf16>) -> tensor<4x399x200xf16>
%w = aten.view(%r) {size = array<i64: 4, 200, 399>} : (tensor<4x399x200xf16>) -> tensor<4x200x399xf16>
%y = aten.slice.Tensor(%w) {dim = 2, start = 0, end = 200} : (tensor<4x200x399xf16>) -> tensor<4x200x200xf16>
```
Column j of row i of `%y` is column j - i + 199 of `%s`. Rows i of one remainder modulo 64 have their columns equally
far from the edges of sticks, so one product with a matrix of ones and zeros moves them all: the sum is over the two
sticks that 64 neighbouring columns come from. A batch of 64 such products has all rows. The product that makes `%s`
gets rows and columns of zeros, so that a stick ends where the last row of 64 begins.

Decision: docs/decisions/0229-rows-of-relative-scores-are-moved-by-a-product.md
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.aten_forms.recognition.shifted_rows import Shift, shift_of
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_LANES = DL16.elements_per_stick()
_LEAST_ELEMENTS = 1 << 12  # of scores: copies of fewer take about as long as the kernels of this form


@dataclass(frozen=True)
class ShiftRowsPass(FunctionPass):
    """Moves rows of relative scores by products."""

    name = "shift-rows"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every shift of the rows of a product."""
        for op in list(function.body.block.ops):
            found = shift_of(op) if isinstance(op, AtenOp) else None
            if found is not None and prod(shape_of(found.scores)) >= _LEAST_ELEMENTS:
                _rewrite(found)


def _rewrite(found: Shift) -> None:
    """Replace the readers of shifted rows by columns of a product."""
    rows, columns = found.rows, max(end for _, _, end in found.readers)
    above, across = -(-rows // _LANES), -(-columns // _LANES)
    writer = AtenWriter(found.moved)
    made = _scores(writer, found, above, across)
    *lead, _, _ = shape_of(made)
    count = prod(lead)
    parted = writer.call("view", self=made, size=(count, above, _LANES, above + across, _LANES))
    blocks = [_windows(writer, parted, block, above, across) for block in range(above)]
    whole = blocks[0] if above == 1 else writer.call("cat", tensors=blocks, dim=1)
    ordered = writer.call("permute", self=whole, dims=(2, 0, 1, 3, 4))
    flat = writer.call("view", self=ordered, size=(_LANES, count * above * across, 2 * _LANES))
    value = writer.call("bmm", self=flat, other=_matrix(writer, found.scores))
    value = writer.call("view", self=value, size=(_LANES, count, above, across, _LANES))
    value = writer.call("permute", self=value, dims=(1, 2, 0, 3, 4))
    value = writer.call("view", self=value, size=(count, above * _LANES, across * _LANES))
    value = writer.call("slice.Tensor", self=value, dim=1, start=0, end=rows)
    for reader, start, end in found.readers:
        part = writer.call("slice.Tensor", reader, self=value, dim=2, start=start, end=end)
        part = writer.call("view", reader, self=part, size=shape_of(reader.results[0]))
        reader.results[0].replace_all_uses_with(part)
        erase_unread(reader)


def _scores(writer: AtenWriter, found: Shift, above: int, across: int) -> SSAValue:
    """The scores of whole blocks of rows, whose first column comes to the end of a stick in the last row of a block."""
    product, (rows, columns) = found.product, shape_of(found.scores)[-2:]
    first = above * _LANES - 1 - found.offset
    behind = (above + across) * _LANES - first - columns
    left, right = product.operands
    args = arguments_of(product)
    names = [name for name, given in args.items() if isinstance(given, SSAValue)]
    padded = {
        names[0]: writer.call("constant_pad_nd", product, self=left, pad=(0, 0, 0, above * _LANES - rows), value=0),
        names[1]: writer.call("constant_pad_nd", product, self=right, pad=(first, behind), value=0),
    }
    return writer.call(product.overload, product, **{**args, **padded})


def _windows(writer: AtenWriter, parted: SSAValue, block: int, above: int, across: int) -> SSAValue:
    """Of a block of 64 rows: for each 64 columns of the result the two sticks that they come from, side by side."""
    rows = writer.call("slice.Tensor", self=parted, dim=1, start=block, end=block + 1)
    first = above - 1 - block
    sticks = [
        writer.call("slice.Tensor", self=rows, dim=3, start=first + at, end=first + at + across) for at in range(2)
    ]
    return writer.call("cat", tensors=sticks, dim=-1)


def _matrix(writer: AtenWriter, like: SSAValue) -> SSAValue:
    """[row, column of two sticks, column of the result]: a one for row r where columns w and l have w = l - r + 63."""

    def numbers(start: int, dim: int, count: int = _LANES, step: int = 1) -> SSAValue:
        end = start + step * count
        made = writer.call("arange.start_step", start=start, end=end, step=step, dtype="i64")
        return writer.call("view", self=made, size=tuple(count if d == dim else 1 for d in range(3)))

    # Columns of the result are in the lanes of this sum, so that a comparison makes the matrix as a product reads it.
    from_column = writer.call("add.Tensor", self=numbers(0, 2), other=numbers(_LANES - 1, 0, step=-1))
    ones = writer.call("eq.Tensor", self=from_column, other=numbers(0, 1, 2 * _LANES))
    one, zero = (
        writer.call("full", size=(1, 1, 1), fill_value=number, dtype=str(element_of(like))) for number in (1.0, 0.0)
    )
    return writer.call("where.self", condition=ones, self=one, other=zero)


__all__ = ["ShiftRowsPass"]
