"""The linalg and tensor ops of KTIR on whole arrays.

A region of scalar ops is run once, on arrays that hold all points; only a `linalg.generic` that sums runs its region
once per point of the summed dimensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, cast

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.ktdp.arithmetic import ELEMENTWISE, elementwise
from spyre_mlir.machine.ktdp.values import Array, Data, dtype_of, known, shape_of, undefined

# Runs a region on arguments; the third gives the results of ops of the region that its surroundings know.
RunRegion = Callable[[Region, Sequence[Data], Mapping[Operation, Data]], list[Data]]


def numbers(attribute: object) -> list[int]:
    """Return a dense array of integers."""
    return [int(one) for one in cast(DenseArrayBase[Any], attribute).get_values()]


# --- linalg -------------------------------------------------------------------------------------------------------


def fill(op: Operation, data: list[Data], _run: RunRegion) -> Data:
    """One scalar everywhere."""
    return Data(np.full(data[1].values.shape, data[0].values, dtype_of(op.results[0].type)), _spread(data[0], data[1]))


def _spread(one: Data, like: Data) -> Array | None:
    return None if one.defined is None else np.broadcast_to(one.defined, like.values.shape)


def broadcast(op: linalg.BroadcastOp, data: list[Data], _run: RunRegion) -> Data:
    """The input repeated along new dimensions."""
    at, shape = tuple(numbers(op.dimensions)), shape_of(op.results[0].type)
    values = np.array(np.broadcast_to(np.expand_dims(data[0].values, at), shape))
    mask = data[0].defined
    return Data(values, None if mask is None else np.broadcast_to(np.expand_dims(mask, at), shape))


def transpose(op: linalg.TransposeOp, data: list[Data], _run: RunRegion) -> Data:
    """The input with its dimensions in another order."""
    order = numbers(op.permutation)
    mask = data[0].defined
    return Data(np.ascontiguousarray(data[0].values.transpose(order)), None if mask is None else mask.transpose(order))


def matmul(op: Operation, data: list[Data], _run: RunRegion) -> Data:
    """Return the matmul, accumulated wider than half precision, plus the destination; rounded once."""
    a, b = (known(one, op, f"operand {number}") for number, one in enumerate(data[:2]))
    kind = dtype_of(op.results[0].type)
    start = np.zeros((), kind) if _unfilled(data[2]) else known(data[2], op, "operand 2")
    wide = np.result_type(kind, np.float32) if kind.kind not in "iub" else kind
    with np.errstate(all="ignore"):
        total = np.matmul(a.astype(wide), b.astype(wide)) + start.astype(wide)
        return Data(total.astype(kind))


def _unfilled(start: Data) -> bool:
    """Return whether an accumulator is a `tensor.empty`, from which a sum starts as from its neutral element.

    torch-spyre leaves accumulators unfilled for the scheduler (#3764; certain). One with some elements missing is a
    fault, as anywhere.
    """
    return start.defined is not None and not start.defined.any()


def reduce(op: linalg.ReduceOp, data: list[Data], run: RunRegion) -> Data:
    """Combine halves along the reduced dimensions, then with the destination."""
    values = known(data[0], op, "the input")
    start = None if _unfilled(data[1]) else known(data[1], op, "the start")
    summed = numbers(op.dimensions)
    rest = [place for place in range(values.ndim) if place not in summed]
    flat = values.transpose([*summed, *rest]).reshape((-1, *(values.shape[place] for place in rest)))

    def combine(one: Array, other: Array) -> Array:
        (result,) = run(op.region, [Data(one), Data(other)], {})
        return known(result, op, "the combiner")

    while flat.shape[0] > 1:
        half = flat.shape[0] // 2
        folded = combine(flat[:half], flat[half : 2 * half])
        flat = np.concatenate([folded, flat[2 * half :]]) if flat.shape[0] % 2 else folded
    if start is None:
        return Data(np.array(flat[0]))
    return Data(np.array(combine(flat[0], start)) if flat.shape[0] else start)


def generic(op: linalg.GenericOp, data: list[Data], run: RunRegion) -> list[Data]:
    """Evaluate the region on all points of the parallel dimensions at once, and step by step over the summed ones."""
    maps = [one.data for one in op.indexing_maps]
    extents = _extents(maps, data)
    kinds = [str(one.data.value) for one in op.iterator_types]
    summed = [place for place, kind in enumerate(kinds) if kind != "parallel"]
    count = len(op.inputs)
    outs = [Data(np.array(one.values), None if one.defined is None else np.array(one.defined)) for one in data[count:]]
    for point in product(*(range(extents[place]) for place in summed)):
        fixed = dict(zip(summed, point, strict=True))
        read = [_aligned(one, how, extents, fixed) for one, how in zip([*data[:count], *outs], maps, strict=True)]
        results = run(op.body, read, _places(op, extents, fixed))
        outs = [
            _placed(one, how, extents, fixed, out) for one, how, out in zip(results, maps[count:], outs, strict=True)
        ]
    return outs


def _places(op: linalg.GenericOp, extents: Sequence[int], fixed: Mapping[int, int]) -> dict[Operation, Data]:
    """Return the value of every `linalg.index` of the region: the position of each point along a dimension."""
    found = dict[Operation, Data]()
    for index in op.body.walk():
        if isinstance(index, linalg.IndexOp):
            dim = index.dim.value.data
            walk = np.asarray(fixed[dim]) if dim in fixed else np.arange(extents[dim])
            found[index] = Data(walk.reshape([-1 if d == dim else 1 for d in range(len(extents))]).astype(np.int64))
    return found


def _dims(map_: AffineMap) -> list[int]:
    found = [one.position for one in map_.results if isinstance(one, AffineDimExpr)]
    if len(found) != len(map_.results) or len(set(found)) != len(found):
        raise UnsupportedError(f"linalg.generic with the map {map_} does not run here yet", hint="use projections")
    return found


def _extents(maps: Sequence[AffineMap], data: Sequence[Data]) -> list[int]:
    extents = [1] * maps[0].num_dims
    for map_, one in zip(maps, data, strict=True):
        for place, extent in zip(_dims(map_), one.values.shape, strict=True):
            extents[place] = extent
    return extents


def _aligned(one: Data, map_: AffineMap, extents: Sequence[int], fixed: Mapping[int, int]) -> Data:
    """An operand as the region sees it: one axis per dimension, of extent 1 where it does not vary."""
    dims = _dims(map_)

    def view(array: Array) -> Array:
        array = array[tuple(slice(fixed[d], fixed[d] + 1) if d in fixed else slice(None) for d in dims)]
        order = sorted(range(len(dims)), key=lambda place: dims[place])
        array = array.transpose(order)
        return np.expand_dims(array, [d for d in range(len(extents)) if d not in dims])

    return Data(view(one.values), None if one.defined is None else view(one.defined))


def _placed(result: Data, map_: AffineMap, extents: Sequence[int], fixed: Mapping[int, int], out: Data) -> Data:
    """Put what the region gave where the map says."""
    dims = _dims(map_)
    full = [1 if d in fixed else extent for d, extent in enumerate(extents)]
    values = out.values

    def view(array: Array) -> Array:
        array = np.broadcast_to(array, [n if d in dims else 1 for d, n in enumerate(full)])
        kept = array.transpose([*dims, *(d for d in range(len(extents)) if d not in dims)])
        return kept.reshape([full[d] for d in dims])

    at = tuple(slice(fixed[d], fixed[d] + 1) if d in fixed else slice(None) for d in dims)
    values[at] = view(result.values)
    if result.defined is None and out.defined is None:
        return out
    mask = np.ones(values.shape, np.bool_) if out.defined is None else out.defined
    mask[at] = True if result.defined is None else view(result.defined)
    return Data(values, None if mask.all() else mask)


# --- tensor -------------------------------------------------------------------------------------------------------


def _reshaped(op: Operation, data: list[Data], _run: RunRegion) -> Data:
    shape, mask = shape_of(op.results[0].type), data[0].defined
    return Data(data[0].values.reshape(shape), None if mask is None else mask.reshape(shape))


def _slices(op: tensor.ExtractSliceOp | tensor.InsertSliceOp, data: Sequence[Data]) -> tuple[slice, ...]:
    given = iter(data)
    offsets, sizes, strides = (
        [next(given).number if number == DYNAMIC_INDEX else number for number in numbers(attribute)]
        for attribute in (op.static_offsets, op.static_sizes, op.static_strides)
    )
    return tuple(
        slice(offset, offset + (size - 1) * stride + 1, stride)
        for offset, size, stride in zip(offsets, sizes, strides, strict=True)
    )


def _extract_slice(op: tensor.ExtractSliceOp, data: list[Data], _run: RunRegion) -> Data:
    at, shape = _slices(op, data[1:]), shape_of(op.results[0].type)
    _require_inside(op, at, data[0].values.shape)
    mask = data[0].defined
    return Data(np.array(data[0].values[at]).reshape(shape), None if mask is None else mask[at].reshape(shape))


def _insert_slice(op: tensor.InsertSliceOp, data: list[Data], _run: RunRegion) -> Data:
    at = _slices(op, data[2:])
    _require_inside(op, at, data[1].values.shape)
    values, source = np.array(data[1].values), data[0]
    shape = values[at].shape
    values[at] = source.values.reshape(shape)
    if data[1].defined is None and source.defined is None:
        return Data(values)
    mask = np.ones(values.shape, np.bool_) if data[1].defined is None else np.array(data[1].defined)
    mask[at] = True if source.defined is None else source.defined.reshape(shape)
    return Data(values, None if mask.all() else mask)


def _require_inside(op: Operation, at: Sequence[slice], shape: Sequence[int]) -> None:
    for place, (one, extent) in enumerate(zip(at, shape, strict=True)):
        if one.start < 0 or one.stop > extent:
            message = f"elements {one.start} to {one.stop - 1} along d{place} of a tensor of {extent}"
            raise fault(FaultKind.OUT_OF_BOUNDS, message, op)


def _extract(op: tensor.ExtractOp, data: list[Data], _run: RunRegion) -> Data:
    at = tuple(one.number for one in data[1:])
    _require_inside(op, [slice(i, i + 1) for i in at], data[0].values.shape)
    mask = data[0].defined
    return Data(np.asarray(data[0].values[at]), None if mask is None else np.asarray(mask[at]))


def _splat(op: Operation, data: list[Data], _run: RunRegion) -> Data:
    shape, mask = shape_of(op.results[0].type), data[0].defined
    return Data(np.full(shape, data[0].values), None if mask is None else np.broadcast_to(mask, shape))


def _from_elements(op: Operation, data: list[Data], _run: RunRegion) -> Data:
    values = [known(one, op, f"element {number}") for number, one in enumerate(data)]
    return Data(np.asarray(values, dtype_of(op.results[0].type)).reshape(shape_of(op.results[0].type)))


_RULES: Mapping[str, Callable[[Any, list[Data], RunRegion], Data]] = {
    "linalg.fill": fill,
    "linalg.broadcast": broadcast,
    "linalg.transpose": transpose,
    "linalg.matmul": matmul,
    "linalg.batch_matmul": matmul,
    "linalg.reduce": reduce,
    "tensor.empty": lambda op, _data, _run: undefined(op.results[0].type),
    "tensor.expand_shape": _reshaped,
    "tensor.collapse_shape": _reshaped,
    "tensor.reshape": _reshaped,
    "tensor.extract_slice": _extract_slice,
    "tensor.insert_slice": _insert_slice,
    "tensor.extract": _extract,
    "tensor.splat": _splat,
    "tensor.from_elements": _from_elements,
}


def compute(op: Operation, data: list[Data], run: RunRegion) -> list[Data]:
    """Return the result of an op on tensors or scalars.

    Args:
        op: of arith, math, linalg or tensor.
        data: its operands.
        run: runs a region of the op on arguments.

    Raises:
        UnsupportedError: the op has no rule here.
    """
    if isinstance(op, linalg.GenericOp):
        return generic(op, data, run)
    rule = _RULES.get(op.name)
    if rule is not None:
        return [rule(op, data, run)]
    if op.name.startswith("linalg.") and op.name in ELEMENTWISE:
        return [elementwise(op, data[: _inputs(op)])]
    return [elementwise(op, data)]


def _inputs(op: Operation) -> int:
    """Operands that an element-wise linalg op reads; the rest say where the result goes."""
    return len(op.operands) - len(op.results)


def destinations(op: Operation) -> Sequence[SSAValue]:
    """Return the operands whose room the results may take over."""
    if not op.name.startswith("linalg.") or not op.results:
        return ()
    return tuple(op.operands)[_inputs(op) :]
