"""Pass `split-products`: computes each part of a result that readers slice off as a product of its own.

```mlir
%y = spyre.loop.nest [m = 512, n = 768, k = 256] ins(%x[m, k], %w[n, k]) -> [m, n] : ... reduce "arith.addf" {...}
%q = spyre.loop.nest [m = 512, d = 256] ins(%y[m, d]) -> ...
%k = spyre.loop.nest [m = 512, d = 256] ins(%y[m, d + 256]) -> ...
```
Models compute queries, keys and values, or a gate and its operand, in one product, and slice the result. With one
product per slice, each reads its own columns of the weight, each result has the layout that its readers want, and the
smaller results fit the scratchpads. Bias and scale between the product and its readers are split as well. Results of
few rows stay whole: reading the weight takes most of the time there, and a wider product divides over more cores.

Decision: docs/decisions/0137-columns-read-apart.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import SSAValue, Use
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.boxes import box_of
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr
from spyre_mlir.dialects.spyre.hints import hint_of
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.nests.contractions import is_contraction, is_weight
from spyre_mlir.transforms.utils.nests.nest_parts import dim_of, part_of

# With fewer rows the time of a product is that of reading its weight.
LEAST_ROWS = 64


@dataclass(frozen=True)
class SplitProductsPass(FunctionPass):
    """Splits products, and what is computed from them element by element, where readers take columns apart."""

    name = "split-products"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Split the nests of a function, readers before producers."""
        nests = [o for o in function.body.block.ops if isinstance(o, NestOp)]
        columns: dict[SSAValue, list[str]] = {}
        for nest in nests:
            columns[nest.result] = [name for name in _kept_loops(nest) if _is_column(nest, name, columns)]
        for nest in reversed(nests):
            found = ((name, _parts(nest, name)) for name in columns[nest.result])
            if split := next(((name, parts) for name, parts in found if len(parts) > 1), None):
                _split(nest, *split)


def _kept_loops(nest: NestOp) -> list[str]:
    """Loops that each walk a dimension of what a nest makes by themselves, beside rows enough."""
    if nest.dest is not None or hint_of(nest) is not None:
        return []
    names = [expr.terms[0][0] for expr in nest.output_map.data if len(expr.terms) == 1]
    elements, extents = prod(shape_of(nest.result)), nest.space.extents
    return [n for n in names if dim_of(nest.output_map, n) is not None and elements >= LEAST_ROWS * extents[n]]


def _is_column(nest: NestOp, name: str, columns: Mapping[SSAValue, Sequence[str]]) -> bool:
    """Whether a loop walks columns of a product with a weight, which other nests take element by element."""
    operands = list(zip(nest.inputs, nest.input_maps, strict=True))
    if is_contraction(nest):
        walked = [value for value, index in operands if name in index.names]
        return len(walked) == 1 and is_weight(walked[0])
    return nest.combine is None and any(_reads_columns(value, index, name, columns) for value, index in operands)


def _reads_columns(value: SSAValue, index: IndexMapAttr, name: str, columns: Mapping[SSAValue, Sequence[str]]) -> bool:
    """Whether a loop reads all columns of such a nest, of which everything else reads a part."""
    made, dim = value.owner, dim_of(index, name)
    if not isinstance(made, NestOp) or dim is None or not columns.get(value):
        return False
    whole = (0, shape_of(value)[dim] - 1)
    own = [n for n in columns[value] if dim_of(made.output_map, n) == dim]
    return bool(own) and _read(made, dim).count(whole) == 1


def _parts(nest: NestOp, name: str) -> list[slice]:
    """Columns that are read together, in order; none if a reader is no nest, or parts are not whole sticks."""
    dim = dim_of(nest.output_map, name)
    if dim is None:
        return []
    found = list[slice]()
    for first, last in sorted(_read(nest, dim)):
        if found and first < found[-1].stop:
            found[-1] = slice(found[-1].start, max(found[-1].stop, last + 1))
        else:
            found.append(slice(first, last + 1))
    lanes = DL16.elements_per_stick()
    return found if all(p.start % lanes == 0 and p.stop % lanes == 0 for p in found) else []


def _read(nest: NestOp, dim: int) -> list[tuple[int, int]]:
    """First and last index of a dimension of a result that each reader takes; all of it if that is no nest."""
    whole = (0, shape_of(nest.result)[dim] - 1)
    return [_taken(use, dim) or whole for use in nest.result.uses]


def _taken(use: Use, dim: int) -> tuple[int, int] | None:
    reader = use.operation
    if not isinstance(reader, NestOp) or use.index >= len(reader.inputs):
        return None
    return box_of(reader, reader.input_maps[use.index])[dim]


def _split(nest: NestOp, name: str, parts: list[slice]) -> None:
    """Put a nest for each part in the place of a nest."""
    dim, block = dim_of(nest.output_map, name), nest.parent_block()
    if dim is None or block is None:
        raise ValueError("a nest to split has a loop that walks its result, and a place")
    uses = [(use, taken) for use in nest.result.uses if (taken := _taken(use, dim)) is not None]
    for part in parts:
        made = part_of(nest, name, part, {})
        block.insert_op_before(made, nest)
        for use, (first, last) in uses:
            if part.start <= first and last < part.stop:
                _read_part(use, made.result, dim, part.start)
    Rewriter.erase_op(nest)


def _read_part(use: Use, part: SSAValue, dim: int, start: int) -> None:
    """Let a nest read a part in the place of the whole, whose dimension begins there."""
    reader = use.operation
    if not isinstance(reader, NestOp):
        raise ValueError("only nests read parts")
    index = reader.input_maps[use.index].data
    shifted = IndexMapAttr(tuple(e.shifted(-start) if d == dim else e for d, e in enumerate(index)))
    reader.maps = ArrayAttr([shifted if n == use.index else m for n, m in enumerate(reader.maps.data)])
    reader.operands[use.index] = part
